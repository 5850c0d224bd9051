"""Time a whole comparison against an older checkout of this package.

    python benchmarks/comparison.py OLDER_CHECKOUT NAME=INI... --dev D --dev-reference D \\
        --test T --test-reference T [OPTION...]

The options are those of `mert-compare`; --work-dir is given here. Each checkout compares once, in
processes of its own, with compiled code that an earlier run has left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
COMMAND = "from moses_feature.cli.common.start import compare; compare()"


def time_comparison(checkout: Path, options: list[str]) -> tuple[float, dict[str, float]]:
    """Return the seconds of a comparison, and the mean test BLEU of each system."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-c", COMMAND, *options, "--work-dir", f"{scratch}/run"]
        start = time.perf_counter()
        subprocess.run(  # noqa: S603
            command, env={**os.environ, "PYTHONPATH": str(checkout)}, check=True
        )
        seconds = time.perf_counter() - start
        content = json.loads((Path(scratch) / "run" / "comparison.json").read_text())
    return seconds, {system["name"]: system["test_mean"] for system in content["systems"]}


def main() -> None:
    """Time both and print the ratio."""
    older, *options = sys.argv[1:]
    (before, old_bleu), (now, bleu) = (
        time_comparison(checkout, options) for checkout in (Path(older).resolve(), HERE)
    )
    print(f"before {before:.0f} s, now {now:.0f} s: {before / now:.2f} times as fast")
    for name, value in bleu.items():
        print(f"{name}: test BLEU {old_bleu[name]:.2f} before, {value:.2f} now")


if __name__ == "__main__":
    main()
