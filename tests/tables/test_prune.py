"""Smaller tables: what is kept, to the byte, and what is not."""

from __future__ import annotations

import gzip
import json
import math

from moses_feature.tables.score_lines import network_column, phrases_of_table

TABLE = b"".join(
    b"%b ||| %b ||| 0.5 0.5 0.3 0.5 ||| 0-0 ||| 9 9 9 ||| |||\n" % (source, target)
    for source in (b"a", b"a b", b"the dog", b"zzz")
    for target in (b"A", b"A B", b"B C", b"le chien noir", b"zz")
)


def augmented(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLE)
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    lines = (tmp_path / "out").read_bytes().splitlines(keepends=True)
    column = network_column("out")
    scores = [math.log(float(line.split(b" ||| ")[2].split()[column])) for line in lines]
    return lines, scores


def test_the_best_targets(run, tmp_path, model_directory):
    lines, scores = augmented(run, tmp_path, model_directory)
    result = run("prune", "out", "small.gz", "--best", 2)
    assert "small.gz: 8 of 20 lines" in result.stderr
    expected = b""
    for first in range(0, 20, 5):
        best = sorted(range(first, first + 5), key=lambda place: -scores[place])[:2]
        expected += b"".join(lines[place] for place in sorted(best))
    assert gzip.decompress((tmp_path / "small.gz").read_bytes()) == expected
    facts = json.loads((tmp_path / "small.features.json").read_text())
    assert facts["output"] == "small.gz"
    assert facts["lines_written"] == 8
    assert facts["pruned"] == {"best": 2, "least": None}
    assert run("favourites", "small.gz", "--phrase", "a b").output.startswith("a b")


def test_likely_targets_and_a_target_for_each_word(run, tmp_path, model_directory):
    lines, scores = augmented(run, tmp_path, model_directory)
    per_word = [
        score / (len(line.split(b" ||| ")[1].split()) + 1)
        for line, score in zip(lines, scores, strict=True)
    ]
    for least in (min(per_word) - 1, sorted(per_word)[10], max(per_word) + 1):
        run("prune", "out", "small", "--least", least)
        kept = (tmp_path / "small").read_bytes().splitlines(keepends=True)
        expected = {line for line, score in zip(lines, per_word, strict=True) if score >= least}
        assert expected <= set(kept)
        for line in set(kept) - expected:  # the best of a word that has no other
            source = line.split(b" ||| ")[0]
            assert b" " not in source
            assert sum(other.startswith(source + b" |||") for other in kept) == 1
        assert [line for line in lines if line in set(kept)] == kept
    sources = [source for source, _ in phrases_of_table("small", network_column("small"))]
    assert sources == [b"a", b"zzz"]


def test_errors(run, tmp_path, model_directory):
    augmented(run, tmp_path, model_directory)
    assert "what is to be left out?" in run("prune", "out", "x", exit_code=2).stderr
    assert "is in an augmented" in run("prune", "in", "x", "--best", 1, exit_code=1).stderr
    assert run("prune", "out", "out", "--best", 1, exit_code=2).stderr
    (tmp_path / "out").write_bytes((tmp_path / "out").read_bytes() + b"x\n")
    assert "expected" in run("prune", "out", "y", "--best", 1, exit_code=1).stderr
    assert not (tmp_path / "y").exists()
