"""The paper's Table 1 as text."""

from __future__ import annotations

import numpy as np

from mert.comparison.results import Comparison


def table(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the rows of the paper's Table 1, names of the columns first.

    There is no column for the development set if nothing was tuned.
    """
    of_dev = any(not np.isnan(system.scores("dev")).any() for system in comparison.systems)
    parts = ("dev", "test") if of_dev else ("test",)
    label = comparison.metric.label
    rows: list[tuple[str, ...]] = [
        (
            "system",
            *(f"{part} {label}" for part in parts),
            *("difference", "p (randomisation)", "p (bootstrap)"),
        )
    ]
    for system in comparison.systems:
        compared: tuple[str, ...] = ("", "", "")
        if system.difference is not None:
            compared = (
                f"{system.difference:+.2f}",
                f"{system.p_randomisation:.4f}",
                f"{system.p_bootstrap:.4f}",
            )
        means = tuple(_mean(system.scores(part)) for part in parts)
        rows.append((system.name, *means, *compared))
    return rows


def notes(comparison: Comparison) -> list[str]:
    """Return what should be known before the table is believed."""
    found = []
    if min(len(system.runs) for system in comparison.systems) == 1:
        found.append(
            "One run of a system cannot tell a better system from a luckier one: the p-values know "
            "nothing of the variance of tuning and training. Use three runs or more."
        )
    return found + [
        f"{system.name}: {note}" for system in comparison.systems for note in system.notes
    ]


def as_markdown(comparison: Comparison) -> str:
    """Return the paper's Table 1 and what to think of it."""
    rows = table(comparison)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    said = f"{number_of_runs(comparison)}; {comparison.metric.label}: {comparison.signature}"
    return "\n".join([*lines, "", said, *notes(comparison)])


def number_of_runs(comparison: Comparison) -> str:
    """Say how many runs the systems have."""
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
