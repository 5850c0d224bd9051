"""Tables as the embedded decoder reads them, against plain Python, line by line."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence

import numpy as np
import pytest
from helpers.files import SHARED, needs_shared

from moses_feature.decoder.reordering import ReorderingType
from moses_feature.decoder.source_phrases import Sentence, SourcePhrases, surface_words
from moses_feature.decoder.system import PhraseTable, ReorderingTable
from moses_feature.decoder.table_index import TableIndex
from moses_feature.decoder.tables import TargetPhrases, read_reordering, read_table
from moses_feature.moses import lines
from moses_feature.moses.features import log_score
from moses_feature.moses.lines import LineReader
from moses_feature.runtime.errors import DataError, FormatError

SENTENCES = [b"a b c d".split(), b"c a".split(), [], b"d d \xc3\xa9".split()]
LONGEST = 3


def plain_rows(
    content: bytes, sentences: Sequence[Sentence] = SENTENCES, longest: int = LONGEST
) -> list[tuple[bytes, bytes, list[float]]]:
    """Return source and target phrase and scores of the lines that the sentences can use."""
    wanted = {
        b" ".join(sentence[start : start + length])
        for sentence in sentences
        for length in range(1, longest + 1)
        for start in range(len(sentence) - length + 1)
    }
    rows = []
    for line in content.splitlines(keepends=True):
        fields = line.split(b"|||")
        source = b" ".join(surface_words(fields[0]))
        if source in wanted:
            target = b" ".join(surface_words(fields[1]))
            rows.append((source, target, [log_score(value) for value in fields[2].split()]))
    return rows


def number_text(generator: random.Random) -> str:
    """Return a number as it may be written in a table."""
    value = generator.choice([generator.random(), 10.0 ** generator.uniform(-40, 3), 0.0, 1.0])
    form = generator.choice(["{:.6g}", "{!r}", "{:.3e}", "{:f}", "{:.17g}", "{:.0f}", "+{:.2E}"])
    return form.format(value)


def random_table(generator: random.Random, count: int) -> bytes:
    """Return lines in all ways in which they may be written."""
    rows = []
    source_words = ["a", "b", "c", "d", "x", "\u00e9", "a|N"]
    for _ in range(count):
        words = generator.choices(source_words, k=generator.randint(1, 4))
        target = generator.choices(["A", "B", "l'", "C|V|x", "\u00e9"], k=generator.randint(0, 3))
        space = generator.choice([" ", " ", " ", "  ", "\t"])
        scores = space.join(number_text(generator) for _ in range(2))
        around = generator.choice([" ||| ", " ||| ", "|||", "\t||| "])
        fields = [space.join(words), space.join(target), scores, f"0-{len(rows)}", "1 1 1"]
        line = around.join(fields[: generator.randint(3, 5)])
        rows.append(line + generator.choice(["", "", " ", "\t", "\r"]) + "\n")
    return "".join(rows).encode()


def as_text(rows, sources: SourcePhrases, targets: TargetPhrases):
    return [
        (sources.phrase(source), targets.phrases.of(target), scores)
        for source, target, scores in zip(*(part.tolist() for part in rows[:3]), strict=True)
    ]


def read(table: PhraseTable, sentences: Sequence[Sentence] = SENTENCES):
    """Return the lines of a table for some sentences."""
    sources = SourcePhrases(sentences, LONGEST)
    return read_table(table, TableIndex(table.path), sources, TargetPhrases())


@pytest.mark.parametrize("seed", range(6))
def test_phrase_table_against_plain_python(tmp_path, monkeypatch, seed):
    generator = random.Random(seed)
    content = random_table(generator, 400)
    if seed % 2:
        content = content[:-1]  # no line feed at the end
        monkeypatch.setattr(lines, "BLOCK", 256)
    (tmp_path / "t").write_bytes(content)
    sources, targets = SourcePhrases(SENTENCES, LONGEST), TargetPhrases()
    table = PhraseTable(str(tmp_path / "t"), "T", 2, 20)
    rows = read_table(table, TableIndex(table.path), sources, targets, with_links=True)
    found = as_text(rows, sources, targets)
    expected = plain_rows(content)
    assert len(expected) > 50
    assert found == expected  # to the bit
    lines_wanted = [line for line in content.split(b"\n") if plain_rows(line + b"\n")]
    assert rows.links.tolist() == [
        fields[3].strip() if len(fields := line.split(b"|||")) > 3 else b"" for line in lines_wanted
    ]
    words, offsets = targets.split()
    for number in range(len(offsets) - 1):
        mine = [targets.words.of(word) for word in words[offsets[number] : offsets[number + 1]]]
        assert mine == targets.phrases.of(number).split()
    assert len(offsets) - 1 == len({target for _, target, _ in expected})


@pytest.mark.parametrize("seed", range(3))
def test_reordering_table_against_plain_python(tmp_path, seed):
    """Lines of target phrases that no option has are left out."""
    generator = random.Random(seed)
    content = random_table(generator, 300)
    (tmp_path / "r").write_bytes(content)
    kind = ReorderingType.parse("monotonicity-forward-fe")
    sources, targets = SourcePhrases(SENTENCES, LONGEST), TargetPhrases()
    for phrase in (b"A", b"B C", b"l' A"):
        targets.number(phrase)
    model = ReorderingTable(str(tmp_path / "r"), "R", kind, True, None)
    rows = read_reordering(model, TableIndex(model.path), sources, targets)
    found = as_text(rows, sources, targets)
    assert found == [row for row in plain_rows(content) if row[1] in (b"A", b"B C", b"l' A")]


def test_spans_are_the_phrases_of_the_text():
    sources = SourcePhrases(SENTENCES, LONGEST)
    sources.gather(LONGEST)
    assert sources.number_of(b"a b") >= 0
    assert sources.number_of(b"b a") == sources.number_of(b"a b c d") == -1
    spans = sources.spans()
    assert [len(rows) for rows in spans] == [len(sentence) for sentence in SENTENCES]
    for sentence, rows in zip(SENTENCES, spans, strict=True):
        for (start, before), number in np.ndenumerate(rows):
            phrase = sentence[start : start + before + 1]
            if len(phrase) == before + 1:
                assert sources.phrase(int(number)) == b" ".join(phrase)
            else:
                assert number == -1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"a ||| A ||| 0.5\n", "2 scores, as the ini says"),
        (b"a ||| A ||| 0.5 0.5 0.5\n", "2 scores, as the ini says"),
        (b"a ||| A ||| 0.5 -1\n", "scores of 0 or more"),
        (b"a ||| A ||| 0.5 0.5e\n", "scores of 0 or more"),
        (b"a ||| A ||| 0.5 1_0\n", "scores of 0 or more"),
        (b"a ||| A\n", "3 to 7 fields"),
        (b"a\n", "3 to 7 fields"),
        (b"a ||| A ||| 1 1" + b" ||| 1" * 5 + b"\n", "3 to 7 fields"),
        (b"a ||| A ||| 1 1 ||| " + b"x" * lines.LONGEST_LINE + b"\n", "lines of at most"),
        (b"x" * lines.LONGEST_LINE + b" ||| A ||| 1 1\n", "lines of at most"),
        (b"x" * (5 << 20), "lines of at most"),
    ],
)
def test_damaged_lines_are_named(tmp_path, line, message):
    (tmp_path / "t").write_bytes(b"x ||| A ||| 1 1\na ||| A ||| 1 1\n" + line)
    table = PhraseTable(str(tmp_path / "t"), "T", 2, 20)
    with pytest.raises(FormatError, match=message) as error:
        read(table)
    assert "at line 3" in str(error.value)


def test_lines_are_counted_where_all_are_odd(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK", 512)
    good = b"a|N ||| A|V ||| 1 1e-30\n"
    (tmp_path / "t").write_bytes(100 * good + b"a|N ||| A|V ||| 1 x\n")
    table = PhraseTable(str(tmp_path / "t"), "T", 2, 20)
    with pytest.raises(FormatError, match="at line 101"):
        read(table)


def test_a_table_that_ends_too_early(tmp_path):
    content = gzip.compress(random_table(random.Random(1), 400))
    (tmp_path / "t.gz").write_bytes(content[:-40])
    table = PhraseTable(str(tmp_path / "t.gz"), "T", 2, 20)
    with pytest.raises(DataError, match="a damaged or truncated file"):
        read(table)


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("name", ["alignment-and-counts", "latin1-3fields-5scores"])
def test_real_tables_against_plain_python(tmp_path, name):
    path = SHARED / "moses-regression" / "phrase-tables" / f"{name}.gz"
    with LineReader(path) as reader:
        content = list(reader)
    sentences = [surface_words(line.partition(b"|||")[0]) for line in content[::7]]
    expected = plain_rows(b"".join(content), sentences, 20)
    scores = len(content[0].split(b"|||")[2].split())
    sources, targets = SourcePhrases(sentences, 20), TargetPhrases()
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    table = PhraseTable(str(copy), "T", scores, 20)
    rows = read_table(table, TableIndex(table.path), sources, targets)
    assert as_text(rows, sources, targets) == expected
    assert len(expected) > len(content) / 10


@pytest.mark.parametrize(
    "content", ["a ||| b ||| 1 1\n".encode("utf-16"), b"words\n", b"\n", b"a ||| b\n"]
)
def test_what_is_no_table_is_refused_whatever_is_wanted(tmp_path, content):
    """Else a text would come out as it went in, and nobody would know why."""
    (tmp_path / "table").write_bytes(content)
    table = PhraseTable(str(tmp_path / "table"), "T", 2, 0)
    with pytest.raises(FormatError, match="line 1: expected"):
        read(table, [(b"z",)])


def test_an_empty_table_is_mentioned(tmp_path, caplog):
    (tmp_path / "table").write_bytes(b"")
    table = PhraseTable(str(tmp_path / "table"), "T", 2, 0)
    assert len(read(table, [(b"z",)]).source) == 0
    assert "expected phrase pairs, found an empty file" in caplog.text
