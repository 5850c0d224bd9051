"""The paper's Table 1 as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mert.comparison.results import Comparison, SystemResult, different

FEWEST_OF_MANY = 3
"""Systems whose pairs are all shown."""
SMALLEST = 0.0001
"""The smallest p-value that is shown as a number."""
ALONE = "(*)"
"""Marks a p-value that does not cover the luck of tuning."""


def table(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the rows of the paper's Table 1, the header first.

    There is no column for the development set if nothing was tuned.
    """
    of_dev = any(not np.isnan(system.scores("dev")).any() for system in comparison.systems)
    parts = ("dev", "test") if of_dev else ("test",)
    label = comparison.metric.label
    rows: list[tuple[str, ...]] = [
        (
            "system",
            "runs",
            *(f"{part} {label}" for part in parts),
            *("difference", "p"),
        )
    ]
    for system in comparison.systems:
        compared: tuple[str, ...] = ("", "")
        if system.difference is not None:
            compared = (f"{system.difference:+.2f}", _p_value(system))
        means = tuple(_mean(system.scores(part)) for part in parts)
        rows.append((system.name, _runs(system), *means, *compared))
    return rows


def pairs(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the differences of all pairs of systems, with p-values; empty without a third system.

    A row has the system less that of the column.
    """
    baseline, *others = comparison.systems
    if len(others) < FEWEST_OF_MANY - 1:
        return []
    rows: list[tuple[str, ...]] = [("", *(system.name for system in comparison.systems[:-1]))]
    for system in others:
        of_baseline = baseline.name, system.difference, system.p, system.covers_tuning
        cells = [
            f"{difference:+.2f} ({_shown(p)}{'' if covers else f' {ALONE}'})"
            for _, difference, p, covers in (of_baseline, *system.against)
            if difference is not None and p is not None
        ]
        rows.append((system.name, *cells, *[""] * (len(others) - len(cells))))
    return rows


def on_many(comparison: Comparison) -> str:
    """Return what to know about many comparisons."""
    count = len(comparison.systems) * (len(comparison.systems) - 1) // 2
    return (
        f"All pairs: the system of the row less that of the column, p in brackets. Of {count} "
        f"comparisons the smallest p is small by chance; multiplied by {count} it is a safe one."
    )


def _p_value(system: SystemResult) -> str:
    """Return the p-value, with a mark if it is of the sentences alone."""
    shown = _shown(system.p or 0.0)
    return shown if system.covers_tuning else f"{shown} {ALONE}"


def _shown(p: float) -> str:
    return f"<{SMALLEST}" if p < SMALLEST else f"{p:.4f}"


def _runs(system: SystemResult) -> str:
    """Say how many runs there are, and what is odd about how many of them."""
    count = len(system.runs)
    odd = {
        "different": len(different(system.runs)) if count > 1 else count,
        "not tuned to the end": sum(not run.has_converged for run in system.runs),
        "start weights kept": sum(run.kept_start for run in system.runs),
        "baseline's weights kept": sum(run.kept_baseline for run in system.runs),
    }
    said = [f"{n} {what}" for what, n in odd.items() if n != (count if what == "different" else 0)]
    return f"{count}{': ' if said else ''}{', '.join(said)}"


def notes(comparison: Comparison) -> list[str]:
    """Return what should be known before the table is believed."""
    systems = comparison.systems
    found = []
    tuned = [system for system in systems if any(run.weights for run in system.runs)]
    covered = (system.covers_tuning for system in systems if system.p is not None)
    of_pairs = (covers for system in systems for *_, covers in system.against)
    if not all((*covered, *of_pairs)):
        found.append(
            f"{ALONE} The p-value covers the choice of sentences, and not the luck of tuning and "
            "training, which one run of each system cannot show. Use three runs or more."
        )
    if any(1 < len(system.runs) != len(different(system.runs)) for system in tuned):
        found.append("Runs that are equal count once.")
    if any(not run.has_converged for system in systems for run in system.runs):
        found.append(
            "Some runs were not tuned to their end: the same command with more --max-iterations "
            "continues them."
        )
    if any(all(run.kept_start for run in system.runs) for system in systems):
        found.append(
            "Where all runs kept the start weights nothing was tuned: was the ini tuned before? "
            "Then begin with its weights from before, or use more iterations."
        )
    found += [
        f"{system.name}: what it adds to {systems[0].name} did not help on the development set in "
        f"{kept} of {len(system.runs)} runs, which kept the baseline's weights"
        for system in systems
        if (kept := sum(run.kept_baseline for run in system.runs))
    ]
    found += [
        f"{system.name}: what rescores its lists did not help on the development set in {kept} of "
        f"{len(system.runs)} runs, which kept the order of the search"
        for system in systems
        if (kept := sum(run.kept_order for run in system.runs))
    ]
    return found


def new_weights(comparison: Comparison) -> list[str]:
    """Return the weights of features that the baseline does not have, run by run."""
    return [f"{of.name}: {note}" for of in comparison.systems for note in of.notes]


def as_markdown(comparison: Comparison) -> str:
    """Return the paper's Table 1 and its caveats."""
    said = f"{number_of_runs(comparison)}; {comparison.metric.label}: {comparison.signature}"
    lines = [*_markdown(table(comparison)), "", said, *notes(comparison)]
    if of_pairs := pairs(comparison):
        lines += ["", on_many(comparison), "", *_markdown(of_pairs)]
    if weights := new_weights(comparison):
        lines += ["", NEW_WEIGHTS, *weights]
    return "\n".join(lines)


NEW_WEIGHTS = (
    "Weights of the features that the baseline does not have, run by run (scaled so that all "
    "absolute weights of a run sum to 1; an ini may have another scale, which changes nothing):"
)


def _markdown(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a table as lines, the header first."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines


def number_of_runs(comparison: Comparison) -> str:
    """Return how many runs the systems have, in words."""
    runs = [len(system.runs) for system in comparison.systems]
    if len(set(runs)) == 1:
        of_runs = f"{runs[0]} run{'s' if runs[0] > 1 else ''} a system"
    else:
        each = zip(comparison.systems, runs, strict=True)
        of_runs = f"runs: {', '.join(f'{system.name} {count}' for system, count in each)}"
    spread = "; mean and standard deviation over the runs" if max(runs) > 1 else ""
    return of_runs + spread


def _mean(scores: np.ndarray) -> str:
    if np.isnan(scores).any():
        return ""
    spread = f" ± {scores.std(ddof=1):.2f}" if len(scores) > 1 else ""
    return f"{scores.mean():.2f}{spread}"
