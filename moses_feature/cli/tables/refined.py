"""`augment-phrase-table` with the text of the table: its network is refined for BLEU."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.command import command_line
from moses_feature.cli.common.options import DeviceOptions
from moses_feature.cli.common.progress import building_progress
from moses_feature.cli.models.training_options import TrainingOptions
from moses_feature.moses.words import WordOptions
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import Json
from moses_feature.tables.settings import AugmentSettings
from moses_feature.training.settings import BUDGETS, RunSettings

if TYPE_CHECKING:
    from moses_feature.building.built_text import BuiltText
    from moses_feature.phrases.refinement.lists import RefineData
    from moses_feature.phrases.settings import RefineSettings
    from moses_feature.refining.run import RefiningActions, Report


@dataclass(frozen=True)
class TableText:
    """The text of a table: a system of `system build`, or the files of its text."""

    system: str | None
    source: str | None
    target: str | None
    alignment: str | None
    documents: str | None

    def given(self) -> bool:
        """Return whether there is a text; check that its files belong together.

        Raises:
            UsageError: they do not.
        """
        if self.system and (self.source or self.target or self.alignment):
            raise UsageError("--system knows its text: not with --source, --target, --alignment")
        if bool(self.source) != bool(self.target):
            raise UsageError("--source and --target go together")
        others = self.alignment or self.documents
        if others and not (self.system or self.source):
            raise UsageError("--alignment and --documents go with --source and --target")
        return bool(self.system or self.source)


def _text_of(options: TableText) -> BuiltText:
    """Return the text that the options name."""
    from moses_feature.building.built_text import BuiltText, text_of_system
    from moses_feature.building.held_out import AlignedText
    from moses_feature.building.settings import BuildSettings

    if options.system:
        return text_of_system(Path(options.system), options.documents)
    source, target = options.source or "", options.target or ""
    files = AlignedText(source, target, options.alignment, options.documents)
    return BuiltText(files, BuildSettings(aligner="eflomal"))  # once, as for the given table


def train_refined(
    table: str,
    directory: Path,
    options: TableText,
    training: TrainingOptions,
    words: TableWords,
    device: DeviceOptions,
    resume: bool,
    start: Path | None = None,
) -> Json:
    """Train a network for the table of a text, and refine it; return the story of the run.

    Args:
        table: the table.
        directory: the model directory.
        options: the text.
        training: how to train; its minutes are those of all stages together.
        words: how the tokens of the table become words.
        device: where to train.
        resume: whether to continue a run that is there.
        start: the network to refine; None to train one.
    """
    from moses_feature.refining.run import RefiningSettings, refine_for_table

    _check(training, words)
    run = training.run
    of_budget = (*BUDGETS, "cooldown")
    of_run = {f.name: getattr(run, f.name) for f in fields(RunSettings) if f.name not in of_budget}
    of_network = {name: value for name, value in vars(training).items() if name != "run"}
    of_network |= {"size": asdict(training.size), "sample": run.sample}
    identity = {"training": of_run, "network": of_network}
    settings = RefiningSettings(run.seed, run.dropout, run.dtype, run.minutes, identity)
    return refine_for_table(
        table,
        directory,
        _text_of(options),
        settings,
        _actions(table, directory, training, words, device),
        resume=resume,
        start=start,
    )


def _check(training: TrainingOptions, words: TableWords) -> None:
    """Refuse what lists of an embedded decoder cannot refine."""
    given = {
        "--reverse": training.reverse,
        "--hierarchical": words.hierarchical,
        "--source-factor": words.source_factor is not None,
        "--target-factor": words.target_factor is not None,
    }
    for option in (name for name, value in given.items() if value):
        raise UsageError(f"{option}: not for a network that is refined on the table's text")


def _actions(
    table: str,
    directory: Path,
    training: TrainingOptions,
    words: TableWords,
    device: DeviceOptions,
) -> RefiningActions:
    """Return how networks are trained and refined here, and how progress is shown."""
    from moses_feature.cli.models.train import train_model
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.phrases.refinement.refine import refine
    from moses_feature.refining.run import RefiningActions
    from moses_feature.tables.augment import augment
    from moses_feature.tables.column_models import load_column_models
    from moses_feature.tables.pipeline import local_pools
    from moses_feature.training.trainer import holds_model

    def train_for(model: Path, minutes: float | None) -> None:
        of_run = replace(training, run=replace(training.run, minutes=minutes))
        on = device.prepare()
        train_model((table,), model, of_run, WordOptions(), on, holds_model(model))

    def refine_with(data: RefineData, settings: RefineSettings) -> None:
        on = device.prepare()
        train_and_show(refine, data, settings, directory, on, holds_model(directory), "sentences")

    def score_for(system: str, output: str, text: str) -> None:
        settings = AugmentSettings(**vars(words), inputs=(text,), unknown_target=False)
        models = load_column_models([("", [directory])])
        pools = local_pools([of.scorer(device.prepare(), settings.scoring_dtype) for of in models])
        with pools as open_pool:
            augment(system, output, models, open_pool, settings)

    return RefiningActions(
        train_for, refine_with, score_for, building_progress, _decoding, _say, command_line()
    )


def _say(line: str) -> None:
    click.echo(line, err=True)


def _decoding(sentences: int) -> AbstractContextManager[Report]:
    """Show the progress of decoding."""
    from moses_feature.cli.tuning.options import decoding_progress

    return decoding_progress({"decoding": sentences})
