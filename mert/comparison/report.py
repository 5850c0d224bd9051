"""The paper's Table 1 as text."""

from __future__ import annotations

import numpy as np

from mert.comparison.results import Comparison


def table(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the rows of the paper's Table 1, names of the columns first."""
    rows: list[tuple[str, ...]] = [
        ("system", "dev BLEU", "test BLEU", "difference", "p (randomisation)", "p (bootstrap)")
    ]
    for system in comparison.systems:
        compared: tuple[str, ...] = ("", "", "")
        if system.difference is not None:
            compared = (
                f"{system.difference:+.2f}",
                f"{system.p_randomisation:.4f}",
                f"{system.p_bootstrap:.4f}",
            )
        means = tuple(_mean(system.bleu(part)) for part in ("dev", "test"))
        rows.append((system.name, *means, *compared))
    return rows


def notes(comparison: Comparison) -> list[str]:
    """Return what should be known before the table is believed."""
    found = []
    if len(comparison.systems[0].runs) == 1:
        found.append(
            "One run of each system cannot tell a better system from a luckier tuning: the "
            "p-values know nothing of the tuner's own variance. Use three seeds or more."
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
    runs = len(comparison.systems[0].runs)
    of_runs = "1 tuning run a system"
    if runs > 1:
        of_runs = f"{runs} tuning runs a system; mean and standard deviation over the runs"
    lines += ["", f"{of_runs}; BLEU: {comparison.signature}", *notes(comparison)]
    return "\n".join(lines)


def _mean(bleu: np.ndarray) -> str:
    spread = f" ± {bleu.std(ddof=1):.2f}" if len(bleu) > 1 else ""
    return f"{bleu.mean():.2f}{spread}"
