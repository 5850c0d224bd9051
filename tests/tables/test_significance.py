"""The filter by Fisher's test: against the sum of the distribution, and sets of sentences."""

from __future__ import annotations

import gzip
import math
import random
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest

from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.tables.significance import filter_table, negative_log_p, threshold_of

N = 40


def plain_p(together: int, source: int, target: int, sentences: int) -> float:
    """Return the probability of so many sentences with both or more, exactly."""
    most = min(source, target)
    ways = sum(
        comb(source, both) * comb(sentences - source, target - both)
        for both in range(together, most + 1)
    )
    return float(Fraction(ways, comb(sentences, target)))


def test_fishers_test():
    for source in range(1, 15):
        for target in range(1, 15):
            for together in range(max(1, source + target - N), min(source, target) + 1):
                expected = -math.log(plain_p(together, source, target, N))
                found = negative_log_p(together, source, target, N)
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert negative_log_p(0, 5, 5, N) == 0
    assert negative_log_p(1, 1, 1, 1000) == pytest.approx(math.log(1000))
    assert 0 < negative_log_p(1, 400_000, 400_000, 800_000) < 1e-6  # p is 1, no overflow


@pytest.fixture
def texts(tmp_path: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of letters, the target ones of capital letters that often follow the source."""
    rng = random.Random(3)
    source = [[rng.choice("abcdef") for _ in range(rng.randint(1, 5))] for _ in range(N)]
    target = [[w.upper() if rng.random() < 0.8 else "X" for w in s] for s in source]
    for name, text in (("source", source), ("target", target)):
        (tmp_path / name).write_text("".join(" ".join(s) + "\n" for s in text))
    return source, target


def phrases_of(sentence: list[str]) -> set[str]:
    places = range(len(sentence) + 1)
    return {" ".join(sentence[a:b]) for a in places for b in places if a < b <= a + 3}


@pytest.mark.parametrize("significance", ["a+e", "a-e", "2.5", "0"])
def test_what_stays(texts, run, tmp_path, significance):
    source, target = texts
    lines = sorted(
        {
            f"{s} ||| {t} ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1 |||\n"
            for one, other in zip(source, target, strict=True)
            for s in phrases_of(one)
            for t in phrases_of(other)
        }
    )
    lines.append("zz ||| ZZ ||| 0.1 0.1 0.1 0.1\n")  # of another text
    (tmp_path / "table").write_text("".join(lines))
    done = run(
        "table", "filter", "table", "out.gz", "--source", "source", "--target", "target",
        "--significance", significance,
    )  # fmt: skip
    least = threshold_of(significance, N)
    expected, words = [], set()
    for line in lines:
        s, t = line.split(" ||| ")[:2]
        with_s = {n for n, sentence in enumerate(source) if s in phrases_of(sentence)}
        with_t = {n for n, sentence in enumerate(target) if t in phrases_of(sentence)}
        p = plain_p(len(with_s & with_t), len(with_s), len(with_t), N) if with_s & with_t else 1.0
        if -math.log(p) >= least - 1e-9:
            expected.append(line)
            words.add(s)
    lost = {line.split()[0] for line in lines if line.split()[1] == "|||"} - words
    expected += [next(line for line in lines if line.startswith(f"{w} ||| ")) for w in lost]
    expected.sort()
    assert gzip.decompress(Path("out.gz").read_bytes()).decode() == "".join(expected)
    assert f"{len(expected):,} of {len(lines):,} lines" in done.stderr
    assert "the phrases of 1 never stand together" in done.stderr
    if significance in ("a+e", "a-e"):
        once = [line for line in lines if line in expected]
        assert 0 < len(once) < len(lines)


def test_the_threshold():
    assert threshold_of("a+e", 100) > math.log(100) > threshold_of("a-e", 100)
    for bad in ("b", "-1", "nan", "inf", "1_0"):
        with pytest.raises(UsageError, match=r"expected a\+e, a-e or a number"):
            threshold_of(bad, 100)


def test_bad_input(texts, tmp_path):
    assert texts
    given = [str(tmp_path / name) for name in ("table", "source", "target")]
    output = tmp_path / "out"
    (tmp_path / "table").write_text("q ||| Q ||| 1\nr ||| R ||| 1\n")
    with pytest.raises(MosesFeatureError, match="phrases of 2 of 2 lines never stand together"):
        filter_table(*given, "a+e", output)
    (tmp_path / "table").write_text("q ||| Q\n")
    with pytest.raises(FormatError, match="at line 1"):
        filter_table(*given, "a+e", output)
    (tmp_path / "table").write_text("a |||  ||| 1\n")
    with pytest.raises(FormatError, match="at line 1: expected two phrases, found an empty one"):
        filter_table(*given, "a+e", output)
    (tmp_path / "table").write_text("")
    with pytest.raises(MosesFeatureError, match="found an empty file"):
        filter_table(*given, "a+e", output)
    with pytest.raises(UsageError, match="expected a file, which is read twice"):
        filter_table("/dev/null", *given[1:], "a+e", output)
    (tmp_path / "table").write_text("a ||| A ||| 1\n")
    (tmp_path / "target").write_text("A\n")
    with pytest.raises(FormatError, match="both texts"):
        filter_table(*given, "a+e", output)
    assert not output.exists()
