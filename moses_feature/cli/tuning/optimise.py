"""The command `mert-optimize`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature import __version__
from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_ONCE
from moses_feature.cli.common.vocabulary import option
from moses_feature.cli.tuning.options import TUNING, algorithm_option
from moses_feature.runtime.files import write_whole

if TYPE_CHECKING:
    from mert.optimisers.candidates import Candidates, SearchSpace


@click.command("mert-optimize", cls=Command, no_args_is_help=True)
@click.argument("features", type=READ_ONCE)
@click.argument("scores", type=READ_ONCE)
@option("init", "Start weights and the range of restarts: an init.opt of Moses.")
@algorithm_option
@option("restarts", "Random start points of mert.", default=TUNING.restarts)
@option("seed", "Of what is random.", default=TUNING.seed)
@option("output", "Write the weights to this file, one line: name value.")
@click.version_option(__version__)
def mert_optimize(
    features: str,
    scores: str,
    init: str | None,
    algorithm: str,
    restarts: int,
    seed: int,
    output: str | None,
) -> None:
    """Optimise weights on Moses' feature and score files, text or compressed.

    Prints the best point as Moses' mert does, its corpus BLEU, and why the search ended. Names
    are those of the feature file, such as LM0_0. Weights are divided by the sum of their absolute
    values.

    \b
    Example:
      mert-optimize features.dat scores.dat --init init.opt --output weights.txt
    """
    from mert.optimisers import choice
    from mert.optimisers.moses_files import read_candidates

    candidates = read_candidates(features, scores)
    space = _search_space(candidates, init)
    start = time.perf_counter()
    optimum = choice.optimizer(algorithm, restarts, TUNING.random_directions)(
        candidates, space, seed
    )
    seconds = time.perf_counter() - start
    values = " ".join(f"{weight:.6g}" for weight in optimum.weights)
    click.echo(f"Best point: {values}  => {optimum.quality:.6g}")
    click.echo(
        f"{optimum.reason}; BLEU {optimum.start_quality:.6g} at the start; "
        f"{len(candidates.features):,} hypotheses of {len(candidates.offsets) - 1:,} sentences, "
        f"{seconds:.1f} s",
        err=True,
    )
    if output:
        lines = zip(candidates.names, optimum.weights, strict=True)
        write_whole(Path(output), "".join(f"{n} {w:.6g}\n" for n, w in lines).encode())


def _search_space(candidates: Candidates, init: str | None) -> SearchSpace:

    import numpy as np

    from mert.optimisers.candidates import SearchSpace
    from mert.optimisers.moses_files import read_init

    names = candidates.names
    if init is None:
        space = SearchSpace.around(np.full(len(names), 1 / len(names)))
    else:
        start, least, greatest = read_init(init, len(names))
        space = replace(SearchSpace.around(start), draw_lowest=least, draw_highest=greatest)
    return space
