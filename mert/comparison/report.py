"""The paper's Table 1 as text."""

from __future__ import annotations

import numpy as np

from mert.comparison.results import Comparison, SystemResult, different


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
            *("difference", "p (randomisation)", "p (bootstrap)"),
        )
    ]
    for system in comparison.systems:
        compared: tuple[str, ...] = ("", "", "")
        if system.difference is not None:
            p_values = system.p_randomisation, system.p_bootstrap
            shown = ("none" if p is None else f"{p:.4f}" for p in p_values)
            compared = (f"{system.difference:+.2f}", *shown)
        means = tuple(_mean(system.scores(part)) for part in parts)
        rows.append((system.name, _runs(system), *means, *compared))
    return rows


def _runs(system: SystemResult) -> str:
    """Say how many runs there are, and what is odd about how many of them."""
    count = len(system.runs)
    odd = {
        "different": len(different(system.runs)) if count > 1 else count,
        "not tuned to the end": sum(not run.has_converged for run in system.runs),
        "start weights kept": sum(run.kept_start for run in system.runs),
    }
    said = [f"{n} {what}" for what, n in odd.items() if n != (count if what == "different" else 0)]
    return f"{count}{': ' if said else ''}{', '.join(said)}"


def notes(comparison: Comparison) -> list[str]:
    """Return what should be known before the table is believed."""
    systems = comparison.systems
    found = []
    tuned = [system for system in systems if any(run.weights for run in system.runs)]
    if min(len(system.runs) for system in systems) == 1:
        found.append(
            "One run of a system cannot tell a better system from a luckier one: the variance of "
            "tuning and training is not known. Use three runs or more."
        )
    elif any(len(different(system.runs)) < 2 for system in tuned):
        found.append(
            "Runs that are equal count once: there is no p-value without two different runs of "
            "either system."
        )
    if any(not run.has_converged for system in systems for run in system.runs):
        found.append(
            "Some runs were not tuned to their end: the same command with more --max-iterations "
            "goes on with them."
        )
    if any(all(run.kept_start for run in system.runs) for system in systems):
        found.append(
            "Where all runs kept the start weights nothing was tuned: was the ini tuned before? "
            "Then begin with its weights from before, or use more iterations."
        )
    return found + [f"{system.name}: {note}" for system in systems for note in system.notes]


def as_markdown(comparison: Comparison) -> str:
    """Return the paper's Table 1 and its caveats."""
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
