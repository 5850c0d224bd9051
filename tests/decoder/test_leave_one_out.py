"""Counts of a training sentence taken off, against tables that were extracted without it."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mert.cli.decode import mert_decode
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.records import SearchLimits
from moses_feature.decoder.system import System
from moses_feature.moses.ini import MosesIni
from moses_feature.runtime.errors import UsageError

WORDS = "abcdef"
LONGEST = 3
LIMITS = SearchLimits(2000, 2000)


def corpus(size: int) -> list[tuple[list[str], list[str]]]:
    """Return sentence pairs that are aligned word by word, no word twice in one of them."""
    generator = np.random.default_rng(5)
    pairs = []
    for _ in range(size):
        source = generator.permutation(list(WORDS))[: generator.integers(3, 6)].tolist()
        forms = [word.upper() + str(generator.integers(3)) for word in source]
        pairs.append((source, forms))
    return pairs


def extracted(pairs: list[tuple[list[str], list[str]]]) -> Counter[tuple[str, str]]:
    return Counter(
        (" ".join(source[first:last]), " ".join(target[first:last]))
        for source, target in pairs
        for first in range(len(source))
        for last in range(first + 1, min(first + LONGEST, len(source)) + 1)
    )


def write_system(folder: Path, joint: Counter[tuple[str, str]], tables: int = 1) -> MosesIni:
    """Write phrase tables, the pairs dealt out among them, and a moses.ini."""
    folder.mkdir()
    lines = [""] * tables
    of_source: Counter[tuple[int, str]] = Counter()
    of_target: Counter[tuple[int, str]] = Counter()

    def table_of(source: str) -> int:
        return len(source) % tables

    for (source, target), count in joint.items():
        of_source[table_of(source), source] += count
        of_target[table_of(source), target] += count
    for (source, target), count in sorted(joint.items()):
        t = table_of(source)
        n_source, n_target = of_source[t, source], of_target[t, target]
        scores = f"{count / n_target:.9f} 0.5 {count / n_source:.9f} 0.25"
        links = " ".join(f"{n}-{n}" for n in range(len(source.split())))
        counts = f"{n_target} {n_source} {count}"
        lines[t] += f"{source} ||| {target} ||| {scores} ||| {links} ||| {counts} ||| |||\n"
    features = ["UnknownWordPenalty", "WordPenalty", "PhrasePenalty", "Distortion"]
    weights = ["UnknownWordPenalty0= 1", "WordPenalty0= -0.3", "PhrasePenalty0= 0.2"]
    weights.append("Distortion0= 0.4")
    for t in range(tables):
        (folder / f"table{t}").write_text(lines[t])
        features.append(
            f"PhraseDictionaryMemory name=TM{t} num-features=4 path={folder}/table{t} "
            "input-factor=0 output-factor=0 table-limit=5"
        )
        weights.append(f"TM{t}= 0.3 0.2 0.4 0.1")
    path = folder / "moses.ini"
    path.write_text(
        "[input-factors]\n0\n[mapping]\n"
        + "".join(f"{t} T {t}\n" for t in range(tables))
        + "[distortion-limit]\n2\n[feature]\n"
        + "\n".join(features)
        + "\n[weight]\n"
        + "\n".join(weights)
        + "\n"
    )
    return MosesIni.read(path)


def stdin(content: str) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(content.encode()))


def tokens(words: list[str]) -> list[bytes]:
    return [word.encode() for word in words]


@pytest.mark.parametrize("tables", [1, 2])
def test_the_same_as_a_table_without_the_sentence(tmp_path, tables):
    """The words come in one form a sentence, so that all that stands there was extracted."""
    pairs = corpus(14)
    ini = write_system(tmp_path / "all", extracted(pairs), tables)
    system = replace(System.of_ini(ini), counts=True, segmentation=True)
    sources, references = ([tokens(pair[side]) for pair in pairs] for side in (0, 1))
    decoder = EmbeddedDecoder(system, sources, LIMITS, references=references)
    plain = EmbeddedDecoder(System.of_ini(ini), sources, LIMITS)
    changed = lost = 0
    for number, source in enumerate(sources):
        rest = extracted(pairs[:number] + pairs[number + 1 :])
        without = write_system(tmp_path / f"without-{number}", rest, tables)
        expected = EmbeddedDecoder(System.of_ini(without), [source], LIMITS).translate(0, 50)
        found = decoder.translate(number, 50)
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.score == pytest.approx(theirs.score, abs=1e-6)
        for mine, theirs in zip(found[:5], expected[:5], strict=True):
            if mine.words == theirs.words:
                np.testing.assert_allclose(mine.features, theirs.features, atol=1e-6)
        changed += abs(found[0].score - plain.translate(number)[0].score) > 0.01
        lost += any(word.decode() in WORDS for word in found[0].words)
    assert changed > 10
    again = [decoder.translate(number)[0].score for number in range(len(sources))]
    assert [decoder.translate(n)[0].score for n in range(len(sources))] == again  # all is put back
    assert lost < len(sources)


def test_a_word_that_only_the_sentence_has_is_unknown(tmp_path):
    pairs = [*corpus(5), (["zz", "a"], ["ZZ", "A0"])]
    ini = write_system(tmp_path / "all", extracted(pairs))
    system = replace(System.of_ini(ini), counts=True)
    source, reference = (tokens(side) for side in pairs[-1])
    (found,) = EmbeddedDecoder(system, [source], LIMITS, references=[reference]).translate(0)
    assert b"zz" in found.words
    (other,) = EmbeddedDecoder(system, [source], LIMITS, references=[[b"A0"]]).translate(0)
    assert b"ZZ" in other.words


def test_pairs_that_no_corpus_has_counted_stay(tmp_path):
    pairs = corpus(9)
    ini = write_system(tmp_path / "s", extracted(pairs))
    table = tmp_path / "s" / "table0"
    table.write_text(table.read_text() + "zz ||| ZZ ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 0 0 0\n")
    system = replace(System.of_ini(ini), counts=True)
    (found,) = EmbeddedDecoder(system, [[b"zz"]], LIMITS, references=[[b"ZZ"]]).translate(0)
    assert found.words == (b"ZZ",)
    np.testing.assert_allclose(found.features[-4:], np.log(0.5))


def test_columns_in_another_order(tmp_path):
    pairs = corpus(14)
    ini = write_system(tmp_path / "s", extracted(pairs))
    table = tmp_path / "s" / "table0"
    lines = [line.split(" ||| ") for line in table.read_text().splitlines()]
    for fields in lines:
        a, _, c, _ = fields[2].split()
        fields[2] = f"0.001 {a} 0.002 {c}"
    table.write_text("".join(" ||| ".join(fields) + "\n" for fields in lines))
    system = replace(System.of_ini(ini), counts=True)
    source, reference = (tokens(side) for side in pairs[0])
    with pytest.raises(UsageError, match="found scores that its counts do not give"):
        EmbeddedDecoder(system, [source], LIMITS, references=[reference])


def test_no_model_is_overwritten(tmp_path):
    pairs = corpus(3)
    ini = write_system(tmp_path / "s", extracted(pairs))
    table = tmp_path / "s" / "table0"
    before = table.read_bytes()
    for output, message in (
        (table, "would be overwritten"),
        (tmp_path / "no" / "x", "there is no"),
    ):
        arguments = [str(ini.path), "--lists", str(output), "--list-size", "5"]
        result = CliRunner().invoke(mert_decode, arguments, input=stdin("a b\n"))
        assert result.exit_code == 2
        assert message in result.stderr
    assert table.read_bytes() == before


def test_the_command(tmp_path):
    pairs = corpus(9)
    ini = write_system(tmp_path / "s", extracted(pairs))
    for name, side in (("in", 0), ("references", 1)):
        (tmp_path / name).write_text("".join(" ".join(pair[side]) + "\n" for pair in pairs))
    text = (tmp_path / "in").read_text()
    arguments = [str(ini.path), "--leave-one-out", str(tmp_path / "references")]
    outputs = []
    for jobs in (1, 2):
        result = CliRunner().invoke(
            mert_decode, [*arguments, "--jobs", str(jobs)], input=stdin(text)
        )
        assert result.exit_code == 0, result.output
        outputs.append(result.stdout)
    assert outputs[0] == outputs[1]
    plain = CliRunner().invoke(mert_decode, [str(ini.path)], input=stdin(text)).stdout
    assert plain != outputs[0]


@pytest.mark.parametrize(
    ("change", "options", "exit_code", "message"),
    [
        (lambda t: t.replace(" ||| 0-0 |||", " ||| 0-0 ||| x"), [], 1, "expected counts of target"),
        (lambda t: t.split(" ||| 0-0 |||")[0] + " ||| 0-0\n", [], 1, "line 1: expected counts of"),
        (lambda t: t, ["--constraint", "references"], 2, "do not go together: expected one"),
    ],
)
def test_errors(tmp_path, monkeypatch, change, options, exit_code, message):
    monkeypatch.chdir(tmp_path)
    pairs = corpus(3)
    ini = write_system(tmp_path / "s", extracted(pairs))
    table = tmp_path / "s" / "table0"
    table.write_text(change(table.read_text()))
    Path("references").write_text("".join(" ".join(pair[1]) + "\n" for pair in pairs))
    text = "".join(" ".join(pair[0]) + "\n" for pair in pairs)
    arguments = [str(ini.path), "--leave-one-out", "references", *options]
    result = CliRunner().invoke(mert_decode, arguments, input=stdin(text))
    assert result.exit_code == exit_code
    assert message in result.stderr
    short = CliRunner().invoke(mert_decode, arguments[:3], input=stdin(text + "a\n"))
    assert "references: expected 4 lines as in the input, found 3" in short.stderr
