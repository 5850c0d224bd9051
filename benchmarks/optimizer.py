"""The optimiser's speed against Moses' own `mert`, on the same files in one run.

    python benchmarks/optimizer.py FEATURES SCORES [INIT] [--mert PATH]

Both have 20 restarts and one core. Without an init file both start from equal weights, which
nothing has tuned, and draw restarts between -1 and 1. Without Moses' `mert` (by default in
$MOSES_HOME/bin or on the PATH) only ours is timed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from xopen import xopen

from mert.optimisers.candidates import Candidates, SearchSpace
from mert.optimisers.mert import mert
from mert.optimisers.moses_files import read_candidates, read_init

RESTARTS = 20
SEEDS = (1, 2, 3)


def find_mert(given: str | None) -> str | None:
    """Return the path of Moses' mert, if there is one."""
    places = [given] if given else [os.environ.get("MOSES_HOME", "") + "/bin/mert", "mert"]
    return next((path for place in places if (path := shutil.which(place))), None)


def time_moses(
    binary: str, arguments: argparse.Namespace, space: SearchSpace, seed: int
) -> tuple[float, float]:
    """Return seconds and BLEU of a run of Moses' mert."""
    with tempfile.TemporaryDirectory() as scratch:
        names = {}
        for option, path in (("--ffile", arguments.features), ("--scfile", arguments.scores)):
            names[option] = Path(scratch) / Path(path).name.removesuffix(".gz")
            with xopen(path, "rb") as content:
                names[option].write_bytes(content.read())
        init = Path(scratch) / "init.opt"
        rows = (space.start, space.draw_lowest, space.draw_highest)
        init.write_text("".join(" ".join(map(str, row.tolist())) + "\n" for row in rows))
        command = [
            binary,
            "-d",
            str(len(space.start)),
            "-n",
            str(RESTARTS),
            "-r",
            str(seed),
            "--ifile",
            str(init),
            *(str(part) for pair in names.items() for part in pair),
        ]
        start = time.perf_counter()
        done = subprocess.run(  # noqa: S603
            command, cwd=scratch, capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - start
    best = re.search(r"Best point:.*=> ([0-9.]+)", done.stdout + done.stderr)
    assert best is not None
    return seconds, float(best[1])


def time_ours(candidates: Candidates, space: SearchSpace, seed: int) -> tuple[float, float]:
    """Return seconds and BLEU of a run of ours."""
    start = time.perf_counter()
    optimum = mert(candidates, space, RESTARTS, seed=seed)
    return time.perf_counter() - start, optimum.quality


def main() -> None:
    """Time both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features")
    parser.add_argument("scores")
    parser.add_argument("init", nargs="?")
    parser.add_argument("--mert", help="Moses' mert binary")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    candidates = read_candidates(arguments.features, arguments.scores)
    size = len(candidates.names)
    start, least, greatest = np.ones(size), np.full(size, -1.0), np.ones(size)
    if arguments.init:
        start, least, greatest = read_init(arguments.init, size)
    space = replace(SearchSpace.around(start), draw_lowest=least, draw_highest=greatest)
    mert(candidates, space, 0)  # compiles
    binary = find_mert(arguments.mert)
    print(f"{len(candidates.features):,} hypotheses, {RESTARTS} restarts, one core")
    print(f"BLEU of the start weights {candidates.quality(start):.6f}")
    for seed in SEEDS:
        ours, bleu = time_ours(candidates, space, seed)
        line = f"seed {seed}: ours {ours:5.2f} s, BLEU {bleu:.6f}"
        if binary:
            theirs, their_bleu = time_moses(binary, arguments, space, seed)
            line += f"; Moses {theirs:5.2f} s, BLEU {their_bleu:.6f}; {theirs / ours:.1f} times"
        print(line)


if __name__ == "__main__":
    main()
