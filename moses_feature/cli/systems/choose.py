"""`moses-feature system build --minutes`: the best system that the time allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.building.settings import SMALL
from moses_feature.cli.common.command import command_line
from moses_feature.cli.common.options import DeviceOptions
from moses_feature.cli.common.progress import building_progress
from moses_feature.cli.common.start import INTERRUPTED
from moses_feature.runtime.errors import UsageError

if TYPE_CHECKING:
    from moses_feature.building.held_out import TextPart
    from moses_feature.building.settings import BuildSettings
    from moses_feature.building.system import BuildData

NETWORK = "transformer"
SUBWORDS = ((SMALL, 1_000), (100_000, 4_000))
"""Sentence pairs, and the subwords of a network for fewer; for more, those of its recipe."""
OF_SMALL = {"batch_size": 32, "warmup": 200, "learning_rate": 0.002}
"""How a network is trained on a small text; its recipe's batches would make few updates."""


def choose_system(
    data: BuildData,
    settings: BuildSettings,
    directory: Path,
    minutes: float,
    dev: tuple[str, Sequence[str]] | None,
) -> None:
    """Build the best system that the time allows, and print what was tried."""
    from moses_feature.choosing.inputs import Choosing
    from moses_feature.choosing.run import ChoosingActions, choose

    if settings.osm:
        raise UsageError("--minutes decides about an operation sequence model: not with --osm")
    paths = (data.source, data.target, data.alignment, data.documents)
    source, target, alignment, documents = (of and str(Path(of).absolute()) for of in paths)
    data = replace(
        data,
        source=source or "",
        target=target or "",
        alignment=alignment,
        documents=documents,
        model_texts=[str(Path(of).absolute()) for of in data.model_texts],
    )
    task = Choosing(data, settings, directory, minutes, dev, settings.seed)
    actions = ChoosingActions(
        lambda part, left, model: _train(part, left, model, settings.seed),
        building_progress,
        _comparing,
        lambda line: click.echo(line, err=True),
        command_line(),
    )
    found = choose(task, actions)
    click.echo("| part | BLEU without | with | p | |\n|---|---|---|---|---|")
    for stage in found["stages"]:
        if "kept" in stage:
            kept = "kept" if stage["kept"] else "left out"
            row = f"{stage['before']:.2f} | {stage['after']:.2f} | {stage['p']:.3f} | {kept}"
            click.echo(f"| {stage['stage']} | {row} |")
    click.echo(
        f"{directory} is tuned: moses-feature translate {directory} < text (BLEU: on text held "
        "out, means of three tuning runs)",
        err=True,
    )


def _train(part: TextPart, minutes: float, model: Path, seed: int) -> None:
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.sentences.settings import SentenceData, recipes
    from moses_feature.sentences.training import train_sentences
    from moses_feature.training.trainer import holds_model

    recipe = recipes()[NETWORK]
    with part.source.open("rb") as text:
        pairs = sum(1 for _ in text)
    subwords = next((size for most, size in SUBWORDS if pairs < most), recipe.subwords)
    data = SentenceData(
        str(part.source),
        str(part.target),
        subwords=subwords,
        subwords_from=recipe.subwords_from,
    )
    sizes = recipe.presets[recipe.preset or "small"]
    of_size = OF_SMALL if pairs < SMALL else {}
    run = recipe.of_run({"minutes": minutes, "seed": seed, **of_size}, sizes)
    on = DeviceOptions("auto", None).prepare()
    given = data, run, model, on, holds_model(model), "sentence pairs"
    try:
        train_and_show(train_sentences, *given, again="the same command")
    except SystemExit as error:
        if error.code == INTERRUPTED:
            raise KeyboardInterrupt from None
        raise


def _comparing(dev: int, judged: int) -> AbstractContextManager[Callable[[str, int], None]]:
    from moses_feature.cli.tuning.options import decoding_progress

    return decoding_progress({"test": judged, "decoding": dev})
