"""Lines looked up in an index: those of a plain search, whatever is in the table."""

from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from helpers.toy import make_toy

from moses_feature.decoder import table_index
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.resources import Resources
from moses_feature.decoder.source_phrases import SourcePhrases, surface_words
from moses_feature.decoder.system import PhraseTable, System
from moses_feature.decoder.table_index import TableIndex
from moses_feature.decoder.tables import TargetPhrases, read_table
from moses_feature.moses.features import log_score
from moses_feature.runtime.errors import FormatError, MosesFeatureError, OutputError

TABLE = (
    b"a ||| A ||| 0.5 0.1\n"
    b"a b ||| A B ||| 0.5 0.2\n"
    b"  a\tb  ||| A  B ||| 0.5 0.3\n"  # Python must parse these two
    b"a|x b|y ||| A|z B ||| 0.5 0.4\n"
    b"c ||| C ||| 1e-3 0.5\n"
    b"a ||| A2 ||| 0.5 0.6\n"  # a second run of the same phrase
    b"d e f g ||| D ||| 0.5 0.7\n"
    b"q ||| Q ||| 0.5 0.8"
)
SENTENCES = [[b"a", b"b", b"x"], [b"d", b"e", b"f", b"g"], [b"z"]]


@pytest.fixture
def table(tmp_path) -> PhraseTable:
    path = tmp_path / "table.gz"
    path.write_bytes(gzip.compress(TABLE))
    return PhraseTable(str(path), "TM0", 2, 20)


def plain(sentences, content: bytes = TABLE):
    """Return phrases, targets and logs of scores of the lines that the sentences can use."""
    phrases = {
        b" ".join(sentence[first:last])
        for sentence in sentences
        for first, last in combinations(range(len(sentence) + 1), 2)
    }
    found = []
    for line in content.splitlines():
        source, target, scores = line.split(b"|||")
        words = b" ".join(surface_words(source))
        if words in phrases:
            found.append(
                (words, b" ".join(surface_words(target)), [*map(log_score, scores.split())])
            )
    return tuple(map(list, zip(*found, strict=True))) if found else ([], [], [])


def rows(table: PhraseTable, sentences, index: TableIndex):
    sources, targets = SourcePhrases(sentences, 20), TargetPhrases()
    found = read_table(table, index, sources, targets, with_links=True)
    phrases = [sources.phrase(number) for number in found.source]
    return phrases, [targets.phrases.of(n) for n in found.target], found.scores.tolist()


@pytest.mark.parametrize("sentences", [SENTENCES, [[b"z"]], [[]], [[b"c"], [b"q", b"a"]]])
def test_the_lines_that_reading_gives(table, sentences):
    index = TableIndex(table.path)
    assert rows(table, sentences, index) == plain(sentences)


def test_an_index_is_made_once_and_again_for_another_table(table, caplog):
    caplog.set_level("INFO", logger="moses_feature")
    TableIndex(table.path)
    assert rows(table, SENTENCES, TableIndex(table.path)) == plain(SENTENCES)
    assert caplog.text.count("making an index") == 1
    Path(table.path).write_bytes(gzip.compress(TABLE.replace(b"C", b"C2")))
    assert rows(table, [[b"c"]], TableIndex(table.path))[1] == [b"C2"]
    index = Path(f"{table.path}.index")
    facts, lines, runs = (index / name for name in ("index.json", "lines", "runs.npy"))
    of = json.loads(facts.read_text())
    damages = [
        lambda: facts.write_text(facts.read_text()[:20]),
        lambda: facts.write_text(json.dumps({**of, "longest": 10**12})),
        lines.unlink,
        lambda: lines.write_bytes(lines.read_bytes()[:-1]),
        runs.unlink,
        lambda: runs.write_bytes(runs.read_bytes()[:90]),
        lambda: runs.write_bytes(b""),
    ]
    for number, damage in enumerate(damages, start=3):
        damage()
        assert rows(table, [[b"c"]], TableIndex(table.path))[1] == [b"C2"]
        assert caplog.text.count("making an index") == number


def test_one_run_waits_for_the_index_of_another(table):
    with ThreadPoolExecutor(4) as pool:
        indexes = list(pool.map(lambda _: TableIndex(table.path), range(4)))
    for index in indexes:
        assert rows(table, SENTENCES, index) == plain(SENTENCES)


def test_where_no_index_can_be_written(table, caplog, tmp_path, monkeypatch):
    """It is in the user's cache folder, also for later runs."""
    caplog.set_level("INFO", logger="moses_feature")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path(f"{table.path}.index").write_bytes(b"a file")
    for _ in range(2):
        assert rows(table, SENTENCES, TableIndex(table.path)) == plain(SENTENCES)
    assert caplog.text.count("making an index") == 1
    (kept,) = (tmp_path / "cache" / "moses-feature" / "indexes").iterdir()
    assert f"expected a directory: File exists; the index is {kept}" in caplog.text
    monkeypatch.setenv("XDG_CACHE_HOME", table.path)
    with pytest.raises(OutputError, match="expected a directory"):
        TableIndex(table.path)


def test_a_damaged_line_hides_no_other(tmp_path):
    lines = b"a|x b|y\na|x b|y ||| A ||| 0.5\na|x b|y ||| B ||| 0.5\n"
    (tmp_path / "t").write_bytes(b"c ||| C ||| 1\n" + lines)
    table = PhraseTable(str(tmp_path / "t"), "TM0", 1, 20)
    with pytest.raises(FormatError, match="at line 2: expected 3 to 7 fields"):
        rows(table, [[b"a", b"b"]], TableIndex(table.path))


def test_a_table_that_changes_while_it_is_read(table, monkeypatch):
    found = iter(["one", "other"])
    monkeypatch.setattr(table_index, "_digest", lambda _: next(found))
    with pytest.raises(MosesFeatureError, match="has changed while it was read"):
        TableIndex(table.path)


def test_phrases_of_one_hash_are_told_apart(table, monkeypatch):
    monkeypatch.setattr(table_index, "_hashes", lambda strings: np.zeros(strings.used[0], np.int64))
    index = TableIndex(table.path)
    index._hashes = np.zeros_like(index._hashes)
    assert rows(table, SENTENCES, index) == plain(SENTENCES)


def test_damaged_lines_and_files_that_are_no_tables(table):
    Path(table.path).write_bytes(gzip.compress(TABLE.replace(b"1e-3", b"x")))
    index = TableIndex(table.path)
    assert rows(table, [[b"a"]], index)[0]
    with pytest.raises(FormatError, match=r"table.gz at line 5: expected scores"):
        rows(table, [[b"c"]], index)
    Path(table.path).write_bytes(gzip.compress(b"no table\n"))
    with pytest.raises(FormatError, match="3 to 7 fields"):
        rows(table, [[b"a"]], TableIndex(table.path))
    Path(table.path).write_bytes(gzip.compress(b""))
    assert rows(table, [[b"a"]], TableIndex(table.path))[0] == []


def test_resources_serve_one_text_after_the_other(tmp_path):
    system = System.of_ini(make_toy(tmp_path, options=3).ini)
    resources = Resources.of(system)
    sentences = [text.split() for text in (b"a b c", b"d a", b"", b"b x a")]
    together = EmbeddedDecoder(system, sentences)
    for number, sentence in enumerate(sentences):
        alone = EmbeddedDecoder(system, [sentence], resources=resources)
        for one, other in zip(alone.translate(0, 5), together.translate(number, 5), strict=True):
            assert one.words == other.words
            np.testing.assert_allclose(one.features, other.features, atol=1e-9)
