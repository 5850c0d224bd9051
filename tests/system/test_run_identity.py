"""Whether a run that goes on is the one that was begun."""

from __future__ import annotations

from moses_feature.runtime.json_files import DifferentFact, difference


def test_equal_runs():
    assert difference({"a": 1, "b": (1, 2)}, {"a": 1, "b": [1, 2], "c": 3}) is None
    assert difference({"a": None, "s": {"x": 1, "new": None}}, {"s": {"x": 1}}) is None
    assert difference({"s": {"x": 1}}, {"s": {"x": 1, "old": None}}) is None


def test_the_first_difference_and_only_that():
    found = difference({"a": 1, "s": {"x": 1, "y": 2}}, {"a": 1, "s": {"x": 1, "y": 3}})
    assert found == DifferentFact("s", "y 2", "y 3")
    assert difference({"s": {"x": 1, "new": 5}}, {"s": {"x": 1}}) == DifferentFact(
        "s", "new 5", "no new"
    )
    assert difference({"a": 2}, {}) == DifferentFact("a", "2", "not given")
