"""A tuning run's time, now and in an older checkout of this project, on the same text.

    python benchmarks/tuning.py OLDER_CHECKOUT INI INPUT REFERENCE [--iterations 3] [OPTION …]

Other options are for `mert-tune`. Both run it with the same options, one after the other, in
processes of their own and with what is installed for this Python. Run it where relative paths in
the ini hold; the checkout is named by an absolute path.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
COMMAND = "from moses_feature.cli.common.start import tune; tune()"


def time_tuning(checkout: Path, options: list[str]) -> tuple[float, float, float, float]:
    """Return seconds of a run: all, decoding, optimising; and its best BLEU, 0 to 100."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-c", COMMAND, *options, "--work-dir", f"{scratch}/run"]
        start = time.perf_counter()
        subprocess.run(  # noqa: S603
            command,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            capture_output=True,
            check=True,
        )
        seconds = time.perf_counter() - start
        state = json.loads((Path(scratch) / "run" / "state.json").read_text())
    decoding, optimising = (
        sum(iteration["seconds"][part] for iteration in state["iterations"]) for part in (0, 1)
    )
    best = max(iteration["bleu"] for iteration in state["iterations"])
    return seconds, decoding, optimising, 100 * best


def main() -> None:
    """Time both and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("older", type=Path)
    parser.add_argument("ini")
    parser.add_argument("input")
    parser.add_argument("reference")
    parser.add_argument("--iterations", type=int, default=3)
    given, more = parser.parse_known_args()
    options = [given.ini, "--dev", given.input, "--dev-reference", given.reference]
    options += ["--max-iterations", str(given.iterations), *more]
    for checkout in (given.older, HERE):  # compiles
        time_tuning(checkout, [*options, "--max-iterations", "1"])
    older, now = (time_tuning(checkout, options) for checkout in (given.older, HERE))
    print(f"{'':10} {'before':>8} {'now':>8} {'ratio':>6}")
    for name, before, after in zip(("all", "decoding", "optimising"), older, now, strict=False):
        print(f"{name:10} {before:6.1f} s {after:6.1f} s {before / after:6.1f}")
    print(f"{'best BLEU':10} {older[3]:8.2f} {now[3]:8.2f}")


if __name__ == "__main__":
    main()
