"""Training by several processes of one machine against one process with as many threads.

    python benchmarks/ranks.py TABLE [--processes 2] [--presets small paper] [--batches 64 256 1024]

Both sides take turns; the ratio is what counts. Held-out losses show that they do the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from safetensors import safe_open

from moses_feature.phrases.settings import PRESETS
from moses_feature.training.checkpoint import CHECKPOINT

PAIRS = {"small": 12_800, "paper": 3_200, "supplement": 1_600}
FEWEST_UPDATES = {"small": 25, "paper": 8, "supplement": 8}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=["small", "paper"])
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 256, 1024])
    arguments = parser.parse_args()
    for preset in arguments.presets:
        for batch in arguments.batches:
            updates = max(PAIRS[preset] // batch, FEWEST_UPDATES[preset])
            (one, loss), (several, other) = (
                train(arguments.table, preset, batch, updates, processes, arguments.processes)
                for processes in (1, arguments.processes)
            )
            print(
                f"{preset:<10} batch {batch:>5}: {several:8,.0f} pairs/s by {arguments.processes} "
                f"processes, {one:8,.0f} by one, ratio {several / one:.2f}; held-out losses "
                f"{other:.4f} and {loss:.4f}"
            )


def train(
    table: str, preset: str, batch: int, updates: int, processes: int, cores: int
) -> tuple[float, float]:
    """Train from the start; return pairs a second and the held-out loss at the end."""
    launcher = []
    if processes > 1:
        launcher = [
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(processes),
        ]
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "model"
        subprocess.run(  # noqa: S603
            [
                sys.executable,
                *launcher,
                "-m",
                "moses_feature",
                "train",
                table,
                str(model),
                "--preset",
                preset,
                "--batch-size",
                str(batch),
                "--updates",
                str(updates),
                "--evaluate-every",
                str(updates + 1),
                "--device",
                "cpu",
            ],
            env={**os.environ, "OMP_NUM_THREADS": str(cores // processes)},
            stderr=subprocess.DEVNULL,
            check=True,
        )
        with safe_open(model / CHECKPOINT, "pt") as file:
            state = json.loads(file.metadata()["state"])
    return updates * batch / state["seconds"], state["history"][-1]["held_out_loss"]


if __name__ == "__main__":
    main()
