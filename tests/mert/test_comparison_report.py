"""The table of a comparison and its caveats, of results made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mert.comparison.report import as_markdown, notes, table
from mert.comparison.results import Comparison, Seconds, SystemResult, TimeLeft, TuningRun, as_json

WEIGHTS = {"LM0_0": 0.5, "TM0_0": 0.25, "TM0_1": -0.25}


def run_of(seed: int, dev: float, test: float, **others) -> TuningRun:
    statistics = np.full((2, 9), seed)
    run = TuningRun(seed, dev, test, 7, "", True, False, WEIGHTS, (), statistics, Path("lists"))
    return replace(run, **others)


def system_of(name: str, runs, difference=None, p=None, covers=True, **others) -> SystemResult:
    values = {"notes": (), **others}
    return SystemResult(name, tuple(runs), Seconds(), difference, p, covers, **values)


def runs_of(*scores: float, **others) -> list[TuningRun]:
    return [run_of(n, 20 + score, score, **others) for n, score in enumerate(scores, 1)]


BASELINE = system_of("base", runs_of(10, 11, 12))
BETTER = system_of("better", runs_of(12, 14, 13), 2.0, 0.00009, notes=("TM0: odd",))
ONE = system_of(
    "one", runs_of(11.5), 0.5, 0.25, covers=False, against=(("better", -1.5, 0.03, False),)
)


def test_the_table():
    page = as_markdown(Comparison((BASELINE, BETTER, ONE), "nrefs:1"))
    assert page.split("\n") == [
        "| system | runs | dev BLEU     | test BLEU    | difference | p          |",
        "|--------|------|--------------|--------------|------------|------------|",
        "| base   | 3    | 31.00 ± 1.00 | 11.00 ± 1.00 |            |            |",
        "| better | 3    | 33.00 ± 1.00 | 13.00 ± 1.00 | +2.00      | <0.0001    |",
        "| one    | 1    | 31.50        | 11.50        | +0.50      | 0.2500 (*) |",
        "",
        "runs: base 3, better 3, one 1; mean and standard deviation over the runs; BLEU: nrefs:1",
        "(*) The p-value covers the choice of sentences, and not the luck of tuning and training, "
        "which one run of each system cannot show. Use three runs or more.",
        "",
        "All pairs: the system of the row less that of the column, p in brackets. Of 3 "
        "comparisons the smallest p is small by chance; multiplied by 3 it is a safe one.",
        "",
        "|        | base               | better             |",
        "|--------|--------------------|--------------------|",
        "| better | +2.00 (<0.0001)    |                    |",
        "| one    | +0.50 (0.2500 (*)) | -1.50 (0.0300 (*)) |",
        "",
        "Weights of the features that the baseline does not have, run by run (scaled so that all "
        "absolute weights of a run sum to 1; an ini may have another scale, which changes "
        "nothing):",
        "better: TM0: odd",
    ]


def test_two_systems_have_neither_pairs_nor_notes():
    *rows, empty, said = as_markdown(Comparison((BASELINE, BETTER), "x")).split("\n")[:6]
    assert len(rows) == 4
    assert (empty, said) == (
        "",
        "3 runs a system; mean and standard deviation over the runs; BLEU: x",
    )
    assert not notes(Comparison((BASELINE, BETTER), "x"))
    single = Comparison((replace(BASELINE, runs=BASELINE.runs[:1]),), "x")
    assert as_markdown(single).endswith("1 run a system; BLEU: x")


def test_smallest_p():
    shown = [replace(BETTER, p=p) for p in (0.0001, 0.00009, 1.0)]
    assert [row[-1] for row in table(Comparison((BASELINE, *shown), ""))[2:]] == [
        "0.0001",
        "<0.0001",
        "1.0000",
    ]


def test_nothing_was_tuned():
    outputs = [system_of(name, runs_of(30), *of) for name, *of in (("a",), ("b", 1.0, 0.5))]
    finished = [
        replace(of, runs=tuple(replace(run, dev_score=math.nan, weights={}) for run in of.runs))
        for of in outputs
    ]
    comparison = Comparison(tuple(finished), "")
    assert [row[:3] for row in table(comparison)] == [
        ("system", "runs", "test BLEU"),
        ("a", "1", "30.00"),
        ("b", "1", "30.00"),
    ]
    assert not notes(comparison)
    content = as_json(comparison, "the command")
    assert content["command"] == "the command"
    assert [of["dev_mean"] for of in content["systems"]] == [None, None]
    assert [of["test_mean"] for of in content["systems"]] == [30, 30]
    assert [of["test_std"] for of in content["systems"]] == [None, None]
    assert content["systems"][0]["runs"][0]["dev_score"] is None


def test_results_as_json():
    first, second = as_json(Comparison((BASELINE, BETTER), ""), "")["systems"]
    assert (first["dev_mean"], first["dev_std"]) == (31, 1)
    assert (second["test_mean"], second["test_std"]) == (13, 1)
    assert second["runs"][2]["test_score"] == 13


@pytest.mark.parametrize(
    ("of_runs", "in_table", "said"),
    [
        (
            {"has_converged": False},
            "3: 3 not tuned to the end",
            "Some runs were not tuned to",
        ),
        ({"kept_start": True}, "3: 3 start weights kept", "Where all runs kept the start weights"),
        (
            {"kept_baseline": True},
            "3: 3 baseline's weights kept",
            "odd: what it adds to base did not help on the development set in 3 of 3 runs",
        ),
        (
            {"kept_order": True},
            "3",
            "odd: what rescores its lists did not help on the development set in 3 of 3 runs",
        ),
        (
            {"test_statistics": np.ones((2, 9))},
            "3: 1 different",
            "Runs that are equal count once.",
        ),
    ],
)
def test_what_is_odd(of_runs, in_table, said):
    odd = system_of("odd", runs_of(1, 2, 3, **of_runs), 1.0, 0.5)
    comparison = Comparison((BASELINE, odd), "")
    (note,) = notes(comparison)
    assert note.startswith(said)
    assert table(comparison)[2][1] == in_table


def test_one_odd_run_of_three():
    runs = BETTER.runs[0], replace(BETTER.runs[1], kept_start=True), BETTER.runs[2]
    comparison = Comparison((BASELINE, replace(BETTER, runs=runs)), "")
    assert table(comparison)[2][1] == "3: 1 start weights kept"
    assert not notes(comparison)


def test_the_time_that_is_left():
    left = TimeLeft(5)
    assert str(left) == ""
    left.add(1.0, True)
    assert str(left) == ""
    left.add(100.0, False)
    left.add(140.0, False)
    assert str(left) == "; about 4 min left for all"
    left.add(30.0, False)
    assert str(left) == "; about 2 min left for all"
    left.add(1.0, False)
    assert str(left) == ""
