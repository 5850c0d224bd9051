"""Predictions from lists alone: a column that knows the reference, one of noise, bad input."""

from __future__ import annotations

import gzip
import math
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mert.cli.what_if import what_if_command
from mert.comparison.what_if import ColumnSums
from moses_feature.runtime.errors import DataError

SENTENCES = 60
WORDS = [b"w%d" % n for n in range(12)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Lists in which the first two phrases of a sentence are translated well or badly.

    The table's old score is noise; of the new ones the first is high for good phrases.
    """
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(3)
    noise = {(w, side): generator.uniform(0.1, 0.9) for w in WORDS for side in (b"G", b"B")}
    table, seen = [], set()
    sources, references, lines = [], [], []
    for number in range(SENTENCES):
        source = generator.choice(len(WORDS), 6, replace=False).tolist()
        sources.append(b" ".join(WORDS[n] for n in source) + b" zz\n")
        references.append(b" ".join(WORDS[n] + b"G" for n in source) + b" zz\n")
        choices = [generator.integers(0, 2, 6).tolist() for _ in range(8)]
        choices.append([1] * 6)
        for choice in choices:
            sides = [b"G" if good else b"B" for good in choice]
            words = [WORDS[n] + side for n, side in zip(source, sides, strict=True)] + [b"zz"]
            score = sum(math.log(noise[WORDS[n], s]) for n, s in zip(source, sides, strict=True))
            segmentation = b" ".join(b"%d=%d" % (n, n) for n in range(7))
            values = b"TM0= %.6g LM0= %.6g" % (score, generator.normal())
            line = b"%d ||| %b  ||| %b ||| 0 ||| %b\n"
            lines.append(line % (number, b" ".join(words), values, segmentation))
        seen.update(WORDS[n] for n in source)
    for word in sorted(seen):
        for side in (b"B", b"G"):
            new = b"0.9 0.5" if side == b"G" else b"0.3 0.5"
            scores = b"%.6g %b" % (noise[word, side], new)
            table.append(b"%b ||| %b%b ||| %b ||| 0-0\n" % (word, word, side, scores))
    Path("table").write_bytes(b"".join(table))
    Path("dev").write_bytes(b"".join(sources))
    Path("reference").write_bytes(b"".join(references))
    Path("lists.gz").write_bytes(gzip.compress(b"".join(lines)))
    Path("moses.ini").write_text(
        "[feature]\nKENLM name=LM0 factor=0 order=3 path=lm\nPhraseDictionaryMemory name=TM0 "
        "num-features=1 path=old input-factor=0 output-factor=0\n[weight]\nLM0= 0.5\nTM0= 0.5\n"
    )
    return tmp_path


def run(*options: str, exit_code: int = 0):
    texts = "--source", "dev", "--reference", "reference", "--seeds", "2", "--restarts", "3"
    arguments = ["moses.ini", "lists.gz", "--table", "table", *texts, *options]
    result = CliRunner().invoke(what_if_command, arguments)
    assert result.exit_code == exit_code, result.output
    return result


def numbers(output: str) -> list[float]:
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+", output.splitlines()[0])]


@pytest.mark.usefixtures("files")
def test_a_column_that_knows():
    first, *weights = run().stdout.splitlines()
    before, after, difference, low, high, p = numbers(first)
    assert after > 99
    assert difference == pytest.approx(after - before, abs=0.011)
    assert 10 < low < difference < high
    assert p < 0.01
    assert [line.split(":")[0] for line in weights] == ["weights of score 2", "weights of score 3"]
    assert run().stdout.splitlines() == [first, *weights]


@pytest.mark.usefixtures("files")
def test_a_column_that_is_the_same_for_all(files):
    table = (files / "table").read_bytes()
    (files / "table").write_bytes(re.sub(rb" 0\.[93] 0\.5 ", b" 0.7 ", table))
    before, after, difference, low, high, _ = numbers(run().stdout)
    assert abs(difference) < 3
    assert low <= difference <= high
    assert before > 0 < after


def test_sums_of_columns(files):
    columns = ColumnSums(str(files / "table"), 1, {(b"w1", b"w1G"), (b"w2", b"w2B")})
    assert columns.count == 2
    found = columns.of([(b"w1", b"w1G"), (b"w2", b"w2B"), (b"w2", b"w2B"), (b"zz", b"zz")])
    np.testing.assert_allclose(found, np.log([0.9 * 0.3 * 0.3, 0.5**3]))
    with pytest.raises(DataError, match="expected a line for each phrase pair"):
        columns.of([(b"w1", b"w1B")])


@pytest.mark.usefixtures("files")
def test_errors(files):
    table = (files / "table").read_bytes()
    (files / "table").write_bytes(re.sub(rb" 0\.[93] 0\.5 ", b" ", table))
    refused = run(exit_code=1).stderr
    assert "table at line 1: expected more than the 1 scores of the ini's table" in refused
    (files / "table").write_bytes(table.replace(b" 0.9 0.5 ", b" -1 0.5 ", 1))
    assert "expected scores of 0 or more" in run(exit_code=1).stderr
    (files / "table").write_bytes(table.replace(b" 0.9 0.5 ", b" 0.9 ", 1))
    assert "expected 2 new scores in all lines" in run(exit_code=1).stderr
    (files / "table").write_bytes(b"".join(table.splitlines(keepends=True)[2:]))
    assert "expected a line for each phrase pair of the lists" in run(exit_code=1).stderr
    (files / "table").write_bytes(table)
    lists = gzip.decompress((files / "lists.gz").read_bytes())
    (files / "lists.gz").write_bytes(gzip.compress(re.sub(rb" \|\|\| 0=0.*", b"", lists)))
    assert "sentence 0: expected the phrases behind the total" in run(exit_code=1).stderr
    (files / "lists.gz").write_bytes(gzip.compress(lists.replace(b"0=0 1=1 ", b"0=0 ")))
    assert "expected phrases that cover 7 source and 7 target words" in run(exit_code=1).stderr
    (files / "lists.gz").write_bytes(gzip.compress(b""))
    assert "expected lists of 2 sentences and more" in run(exit_code=1).stderr
