"""The command `augment-phrase-table`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature import __version__
from moses_feature.cli.common.command import Command, command_line
from moses_feature.cli.common.groups import OptionGroup, taking
from moses_feature.cli.common.options import (
    DeviceOptions,
    device_options,
    table_name_option,
    table_word_options,
)
from moses_feature.cli.common.paths import (
    READ_TABLE,
    WRITE,
    WRITE_TABLE,
    named_models,
)
from moses_feature.cli.common.progress import AugmentReporter, Progress
from moses_feature.cli.common.vocabulary import option
from moses_feature.cli.models.train import train_model
from moses_feature.cli.models.training_options import (
    TrainingOptions,
    plan_option,
    resume_option,
    short_training_options,
)
from moses_feature.cli.systems.add import report_ini
from moses_feature.cli.tables.augment_checks import check_files, check_inis
from moses_feature.cli.tables.refined import TableText, train_refined
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.system_directory import INI
from moses_feature.moses.words import WordOptions
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, without_compression_suffix
from moses_feature.tables.features_json import add_facts
from moses_feature.tables.settings import AugmentSettings

if TYPE_CHECKING:
    from moses_feature.refining.judge import Verdict
    from moses_feature.tables.augment import AugmentProgress

MANY_CLIPPED = 0.1
"""A warning says so if more scores than this share of the lines are below Moses' least one."""


@dataclass(frozen=True)
class IniOptions:
    """A moses.ini to change, and where to write it."""

    ini: str | None
    ini_out: str | None
    table_name: str | None

    def of_system(self, system: str | None) -> IniOptions:
        """Return the same with the ini of a system, if no other is given."""
        if system is None or self.ini or not self.ini_out:
            return self
        return replace(self, ini=str(Path(system) / INI))


@click.command("augment-phrase-table", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_TABLE)
@click.argument("output", type=WRITE_TABLE)
@option(
    "model",
    "Score with this model; none is trained, but with the text of the table it is refined. "
    "Repeatable: each has columns of its own, but for those of one name, which are averaged.",
    to="models",
    many=True,
)
@OptionGroup(
    "The text of the table, to refine the network for BLEU",
    "text",
    taking(TableText),
    option("system", "The system of moses-feature system build whose table it is."),
    option("source", "Or the text that any other table is of: the source language …"),
    option("target", "… and its translation, tokenised as the table is."),
    option("alignment", "Links of each sentence pair, such as 0-0 1-2; made if not given."),
    option(
        "documents",
        "The document of each line, a name a line: whole documents are held out. New texts are "
        "seldom from documents that the table has seen.",
    ),
)
@option(
    "phrases-of", "Keep only lines whose source phrase occurs in this text. Repeatable.", many=True
)
@OptionGroup(
    "moses.ini",
    "change",
    taking(IniOptions),
    option("ini", "A moses.ini that reads TABLE …"),
    option("ini-out", "… and where to write one that reads OUTPUT.", within=WRITE),
    table_name_option,
)
@option("no-unknown", "Append no exp(-unknown target words), which is 1 where all are known.")
@option("source-unknown", "Append exp(-unknown source words) too.")
@table_word_options
@option(
    "ray",
    "Score on a Ray cluster: local (this machine alone), auto (the cluster it belongs to),"
    " or another address that Ray takes. A worker for each GPU, or for each 4 (or --threads) "
    "CPU cores.",
)
@resume_option
@plan_option
@short_training_options
@device_options
@click.version_option(__version__)
def augment_phrase_table(
    table: str,
    output: str,
    models: tuple[str, ...],
    text: TableText,
    phrases_of: tuple[str, ...],
    change: IniOptions,
    no_unknown: bool,
    source_unknown: bool,
    words: TableWords,
    ray: str | None,
    resume: bool,
    plan: bool,
    training: TrainingOptions,
    device: DeviceOptions,
) -> None:
    """Append p(target | source) of an RNN Encoder-Decoder to every line of a phrase table.

    Writes TABLE with two more scores to OUTPUT, and beside it *.features.json, which says what
    they are. Without --model, a model is trained on TABLE first and kept in *.model. With the text
    of the table, it is also refined: on n-best lists of a held-out part of the text, for BLEU.

    Files may be plain text, .gz, .bz2, .xz or .zst; - is the standard input or output. A TABLE that
    is there with .gz alone may be named without it; OUTPUT then gets a .gz, too.

    \b
    Example:
      augment-phrase-table phrase-table.gz augmented.gz --minutes 60 \\
          --source train.en --target train.fr --alignment aligned.grow-diag-final-and \\
          --ini moses.ini --ini-out moses.augmented.ini
    """
    from moses_feature.refining.run import verdict_of

    directory = Path(f"{without_compression_suffix(output)}.model")
    has_text = text.given()
    change = change.of_system(text.system)
    given = named_models(models)
    settings = AugmentSettings(
        **vars(words),
        inputs=phrases_of,
        unknown_target=not no_unknown,
        unknown_source=source_unknown,
        scoring_dtype=training.run.dtype,
    )
    refines, trains = has_text, not models
    if refines and (len(given) > 1 or any(len(of) > 1 for _, of in given)):
        raise UsageError("the text of the table refines one network: expected one --model")
    _check_command(table, output, trains or refines, change, ray, settings, resume)
    if plan:
        _plan(table, output, given, training, words, settings, device)
        return
    story: Json = {}
    verdict = None
    if refines:
        start = given[0][1][0] if given else None
        refined = train_refined(table, directory, text, training, words, device, resume, start)
        story = {"refined": refined}
    elif trains:
        train_model((table,), directory, training, _trained_on(words), device.prepare(), resume)
        click.echo(
            "with the text of the table (--system, or --source and --target), the network would be "
            "refined for BLEU, which brings more",
            err=True,
        )
    scoring = [("", [directory])] if refines or trains else given
    _augment(table, output, scoring, settings, ray, device, resume)
    if story:
        add_facts(output, story)
        verdict = verdict_of(story["refined"])
        click.echo(verdict or "too few sentences to judge the column on: compare it yourself")
    if change.ini and change.ini_out:
        _write_ini(change.ini, change.ini_out, output, change.table_name, verdict)
    if story:
        click.echo(f"{directory.with_suffix('.work')} may be removed", err=True)


def _write_ini(
    ini: str, ini_out: str, table: str, name: str | None, verdict: Verdict | None
) -> None:
    """Write an ini that reads the new table, or the old ini if the column loses."""
    from moses_feature.tables.add_to_ini import add_to_ini

    if verdict and verdict.loses:
        MosesIni.read(ini).write(Path(ini_out))
        click.echo(
            f"{ini_out} is {ini} without the column, which loses; "
            f"moses-feature system add --table {table} would add it all the same",
            err=True,
        )
    else:
        report_ini(ini_out, add_to_ini(Path(ini), Path(ini_out), Path(table), name))


def _plan(
    table: str,
    output: str,
    given: Sequence[tuple[str, Sequence[Path]]],
    training: TrainingOptions,
    words: TableWords,
    settings: AugmentSettings,
    device: DeviceOptions,
) -> None:
    """Print how long training, unless models are given, and scoring will take."""
    from moses_feature.cli.tables.plan import plan_augmenting

    on = device.prepare()
    data = training.data((table,), _trained_on(words))
    sizes_follow = not training.size.given()
    plan_augmenting(output, given, data, training.settings(on), settings, on, fits=sizes_follow)


def _trained_on(words: TableWords) -> WordOptions:
    """Return how the tokens of a table become words for training."""
    return WordOptions(words.source_factor, words.target_factor, words.hierarchical)


def _check_command(
    table: str,
    output: str,
    makes_model: bool,
    change: IniOptions,
    ray: str | None,
    settings: AugmentSettings,
    resume: bool,
) -> None:
    """Refuse contradictory options before anything is read, trained or written."""
    from moses_feature.training.ranks import started_by_torchrun

    if started_by_torchrun():
        raise UsageError(
            "torchrun is for training: torchrun … -m moses_feature model train TABLE DIR, then "
            "augment-phrase-table --model DIR"
        )
    if not makes_model:
        for name in short_training_options.given():
            if name == "dtype":
                continue
            raise UsageError(f"--model only scores: --{name.replace('_', '-')} is for training")
    check_files(table, output, makes_model, resume)
    check_inis(output, change.ini, change.ini_out, change.table_name)
    settings.check()
    if ray is not None and makes_model:
        raise UsageError("--ray only scores: train first, then give --model")


def _augment(
    table: str,
    output: str,
    given: Sequence[tuple[str, Sequence[Path]]],
    settings: AugmentSettings,
    ray: str | None,
    device: DeviceOptions,
    resume: bool,
) -> None:
    """Write the table with the scores of models, show the progress, and report the result."""
    from moses_feature.tables.augment import augment
    from moses_feature.tables.column_models import load_column_models
    from moses_feature.tables.pipeline import local_pools
    from moses_feature.tables.ray_pool import ray_pools

    models = load_column_models(given)
    with ExitStack() as stack:
        if ray is not None:
            dtype = settings.scoring_dtype
            pools = ray_pools(ray, models, dtype, device.device, device.threads)
        else:
            on = device.prepare()
            pools = local_pools([of.scorer(on, settings.scoring_dtype) for of in models])
        open_pool = stack.enter_context(pools)
        progress = stack.enter_context(Progress(has_end=table != STANDARD_STREAM))
        reporter = AugmentReporter(progress)
        done = augment(
            table,
            output,
            models,
            open_pool,
            settings,
            resume=resume,
            command=command_line(),
            report=reporter,
        )
        seconds, rate = progress.seconds(), reporter.pairs_per_second(done)
    _report(done, seconds, rate)
    if settings.inputs:
        texts = ", ".join(settings.inputs)
        click.echo(f"{output} has the phrases of {texts} alone: it is for no other text", err=True)
    if settings.unknown_target and done.written and not done.unknown_target_words:
        click.echo(
            "all target words are known: the penalty for unknown words is 1 in every line "
            "(--no-unknown leaves it out)",
            err=True,
        )


def _report(done: AugmentProgress, seconds: float, rate: float) -> None:
    click.echo(
        f"{done.written:,} of {done.lines:,} lines written in {seconds:.0f} s "
        f"({rate:,.0f} pairs/s); {done.clipped:,} scores clipped, "
        f"{done.unknown_target_words:,} unknown target words",
        err=True,
    )
    if done.clipped > MANY_CLIPPED * done.written:
        click.echo(
            f"warning: {done.clipped:,} of the new scores are Moses' least probability, exp(-100), "
            "and cannot tell these pairs apart: the network has learnt too little, or was refined "
            "with a column of nearly no weight",
            err=True,
        )
