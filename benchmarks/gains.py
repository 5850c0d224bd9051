"""Draw what each model gains over the baseline, from benchmarks/results/gains.json.

    python benchmarks/gains.py [--output docs/pictures/gains.svg]

The numbers are copied from the pages of benchmarks/results that the file names.
"""

from __future__ import annotations

import argparse
import json
import math
from html import escape
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NUMBERS = HERE / "results" / "gains.json"
PICTURE = HERE.parent / "docs" / "pictures" / "gains.svg"

WIDTH, LEFT, RIGHT = 800, 285, 160  # pixels; the names stand on the left, p-values on the right
ROW, HEAD, FOOT = 25, 44, 62
LEAST, MOST = -0.5, 5.0  # BLEU
INK, GREY, LINE, BLUE, HOLLOW = "#222222", "#666666", "#dddddd", "#1f5fa8", "#ffffff"
CERTAIN = 0.05


def column_of(bleu: float) -> float:
    """Return the place of a difference along the picture, in pixels."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (bleu - LEAST) / (MOST - LEAST)


def text(x: float, y: float, content: str, style: str = "") -> str:
    """Return a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(content)}</text>'


def signed(number: float, form: str) -> str:
    """Return a number with its sign, a minus as long as a plus."""
    return f"{number:+{form}}".replace("-", "−")


def is_certain(system: dict[str, Any]) -> bool:
    """Return whether both p-values are below 0.05."""
    both = (system["p_randomisation"], system["p_bootstrap"])
    return all(not p.startswith(">") and float(p) < CERTAIN for p in both)


def row(system: dict[str, Any], y: float) -> list[str]:
    """Return a system's name, its gain with an error bar, and its p-values."""
    gain = system["difference"]
    spread = math.hypot(system["deviation"], system["baseline_deviation"])
    low, middle, high = (column_of(gain + change) for change in (-spread, 0, spread))
    filled = BLUE if is_certain(system) else HOLLOW
    p_values = f"{system['p_randomisation']} / {system['p_bootstrap']}"
    return [
        text(LEFT - 12, y + 4, system["system"], f'text-anchor="end" fill="{INK}"'),
        f'<path d="M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 4}v8M{high:.1f} {y - 4}v8" '
        f'stroke="{BLUE}" stroke-width="1.5" fill="none"/>',
        f'<circle cx="{middle:.1f}" cy="{y}" r="4.5" fill="{filled}" stroke="{BLUE}" '
        'stroke-width="1.5"/>',
        text(WIDTH - RIGHT + 14, y + 4, signed(gain, ".2f"), f'fill="{INK}" font-weight="bold"'),
        text(WIDTH - RIGHT + 62, y + 4, p_values, f'fill="{GREY}" font-size="10"'),
    ]


def drawing(corpora: list[dict[str, Any]]) -> str:
    """Return the picture."""
    rows = sum(len(corpus["systems"]) for corpus in corpora)
    height = HEAD + rows * ROW + len(corpora) * 34 + FOOT
    top, bottom = HEAD, height - FOOT
    parts = [
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        text(20, 26, "What each model gains over the baseline", f'fill="{INK}" font-size="16"'),
        text(WIDTH - RIGHT + 14, top + 8, "gain", f'fill="{GREY}" font-size="10"'),
        text(WIDTH - RIGHT + 62, top + 8, "p (two tests)", f'fill="{GREY}" font-size="10"'),
    ]
    for half in range(math.ceil(LEAST * 2), math.floor(MOST * 2) + 1):
        x, colour = column_of(half / 2), (INK if half == 0 else LINE)
        parts.append(f'<path d="M{x:.1f} {top + 32}V{bottom}" stroke="{colour}"/>')
        label = signed(half / 2, "g") if half else "0"
        parts.append(text(x, bottom + 16, label, f'text-anchor="middle" fill="{GREY}"'))
    y = float(top)
    for corpus in corpora:
        y += 24
        parts.append(f'<rect x="18" y="{y - 14}" width="470" height="20" fill="white"/>')
        parts.append(text(20, y, corpus["corpus"], f'fill="{INK}" font-weight="bold"'))
        y += 20
        for system in corpus["systems"]:
            parts += row(system, y)
            y += ROW
        y -= 10
    axis = "difference in BLEU on the test text from the baseline of the same comparison"
    parts.append(
        text((LEFT + WIDTH - RIGHT) / 2, bottom + 36, axis, f'text-anchor="middle" fill="{INK}"')
    )
    key = "filled: both p-values of version 0.2 are below 0.05"
    parts.append(
        text((LEFT + WIDTH - RIGHT) / 2, bottom + 52, key, f'text-anchor="middle" fill="{GREY}"')
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=PICTURE)
    corpora = json.loads(NUMBERS.read_text())
    parser.parse_args().output.write_text(drawing(corpora))


if __name__ == "__main__":
    main()
