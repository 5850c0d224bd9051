"""The commands `augment-phrase-table` and `moses-feature`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
import torch

from moses_feature import __version__
from moses_feature.cli.checks import check_distribution, check_files, check_inis
from moses_feature.cli.command import Command, command_line, debug_option
from moses_feature.cli.cslm import cslm_group
from moses_feature.cli.memory import keep_freed_memory
from moses_feature.cli.options import (
    device_options,
    escaped_option,
    prepare_device,
    refuse_training_options,
    scoring_dtype_option,
    training_data,
    training_options,
    training_settings,
    word_options,
)
from moses_feature.cli.progress import AugmentReporter, Progress
from moses_feature.cli.rescore import rescore_command
from moses_feature.cli.select import select_command
from moses_feature.cli.training_run import training_run
from moses_feature.errors import FormatError, MosesFeatureError, UsageError, shown
from moses_feature.files import STANDARD_STREAM, without_compression_suffix
from moses_feature.lm.nplm import load_neural_lm
from moses_feature.lm.scorer import ARCHITECTURE as LANGUAGE_MODEL
from moses_feature.lm.scorer import NeuralLM
from moses_feature.models.cross_fitting import CrossFittedModel, load_any_model
from moses_feature.models.files import CONFIG, architecture_of
from moses_feature.models.phrase_model import PhraseModel
from moses_feature.models.sizes import Dtype
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import WordError, WordOptions
from moses_feature.scoring.of_model import scorer_of
from moses_feature.tables.add_to_ini import START_WEIGHT, add_language_model, add_to_ini
from moses_feature.tables.augment import (
    PROBABILITY_COLUMN,
    AugmentSettings,
    augment,
)
from moses_feature.tables.check import check_table
from moses_feature.tables.favourites import (
    FEWEST_TARGETS,
    as_text,
    favourites,
    favourites_of_long_phrases,
)
from moses_feature.tables.features_json import features_json, read_columns
from moses_feature.tables.pipeline import local_pools
from moses_feature.tables.ray_pool import ray_pools
from moses_feature.tables.shards import Shard, merge
from moses_feature.training.phrases import train
from moses_feature.training.ranks import started_by_torchrun


@click.command(cls=Command, no_args_is_help=True)
@click.argument("table")
@click.argument("output")
@click.option("--model", "model_directory", help="Score with this model; nothing is trained.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    help="Keep only lines whose source phrase occurs in this text. Repeatable.",
)
@click.option("--ini", help="A moses.ini that reads TABLE …")
@click.option("--ini-out", help="… and where to write one that reads OUTPUT.")
@click.option("--table-name", help="Name of the phrase table in the ini, if it has several.")
@click.option("--source-unknown", is_flag=True, help="Append exp(-unknown source words) too.")
@escaped_option
@word_options
@scoring_dtype_option
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Score on a Ray cluster: local (this machine alone), auto (the cluster it belongs to), or "
    "another address that Ray takes. A worker for each GPU, or for each 4 (or --threads) CPU "
    "cores.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Write only the I-th of N shards of the table; moses-feature merge joins them.",
)
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted or killed.")
@training_options
@device_options
@debug_option
@click.version_option(__version__)
def augment_phrase_table(
    table: str,
    output: str,
    model_directory: str | None,
    inputs: tuple[str, ...],
    ini: str | None,
    ini_out: str | None,
    table_name: str | None,
    source_unknown: bool,
    escaped: Literal["auto", "yes", "no"],
    scoring_dtype: Dtype,
    ray: str | None,
    shard: str | None,
    resume: bool,
    device: str,
    threads: int | None,
    **options: Any,
) -> None:
    """Append p(target | source) of an RNN Encoder-Decoder to every line of a phrase table.

    Writes TABLE with two more scores to OUTPUT, and beside it *.features.json, which says what
    they are. Without --model, a model is trained on TABLE first and kept in *.model.

    Files may be plain text, .gz, .bz2, .xz or .zst; - is the standard input or output.

    \b
    Example:
      augment-phrase-table phrase-table.gz augmented.gz --minutes 60 \\
          --ini moses.ini --ini-out moses.augmented.ini
    """
    if started_by_torchrun():
        raise UsageError(
            "torchrun is for training: torchrun … -m moses_feature.training.phrases TABLE DIR, "
            "then augment-phrase-table --model DIR"
        )
    directory = Path(model_directory or f"{without_compression_suffix(output)}.model")
    check_files(table, output, directory, model_directory is None, resume)
    check_inis(table, output, ini, ini_out, table_name)
    settings = AugmentSettings(
        inputs=inputs,
        unknown_source=source_unknown,
        escaped=escaped,
        source_factor=options["source_factor"],
        target_factor=options["target_factor"],
        hierarchical=options["hierarchical"],
        scoring_dtype=scoring_dtype,
    )
    settings.check()
    own_shard = None if shard is None else Shard.parse(shard)
    check_distribution(output, model_directory, ini, ray, shard)
    if model_directory is None:
        _train((table,), directory, prepare_device(device, threads), resume, options)
    else:
        refuse_training_options()
    model = load_any_model(directory)
    with ExitStack() as stack:
        if ray is not None:
            pools = ray_pools(ray, model, scoring_dtype, device, threads)
        else:
            torch_device = prepare_device(device, threads)
            pools = local_pools(scorer_of(model, torch_device, scoring_dtype))
        open_pool = stack.enter_context(pools)
        progress = stack.enter_context(Progress(has_end=table != STANDARD_STREAM))
        reporter = AugmentReporter(progress)
        done = augment(
            table, output, model, open_pool, settings,
            shard=own_shard, resume=resume, command=command_line(), report=reporter,
        )  # fmt: skip
        seconds, rate = progress.seconds(), reporter.pairs_per_second(done)
    which = f"shard {shard}: " if shard else ""
    click.echo(
        f"{which}{done.written:,} of {done.lines:,} lines written in {seconds:.0f} s "
        f"({rate:,.0f} pairs/s); {done.clipped:,} scores clipped, "
        f"{done.unknown_target_words:,} unknown target words",
        err=True,
    )
    if ini and ini_out:
        _report_ini(ini_out, add_to_ini(Path(ini), Path(ini_out), Path(output), table_name))


@click.group()
@click.version_option(__version__)
def moses_feature() -> None:
    """Neural scores for Moses phrase tables."""


moses_feature.add_command(cslm_group)
moses_feature.add_command(rescore_command)
moses_feature.add_command(select_command)


@moses_feature.command("train", cls=Command, no_args_is_help=True)
@click.argument("tables", nargs=-1, required=True)
@click.argument("model_directory")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in MODEL_DIRECTORY.")
@training_options
@word_options
@device_options
@debug_option
def train_command(
    tables: tuple[str, ...],
    model_directory: str,
    resume: bool,
    device: str,
    threads: int | None,
    **options: Any,
) -> None:
    """Train a model on phrase tables, or on tab-separated files of phrase pairs.

    The best model, by the loss on held-out source phrases, is kept in MODEL_DIRECTORY. The first
    of the budgets that is spent (--updates, --epochs, --minutes, --patience) ends the training.

    \b
    Example:
      moses-feature train phrase-table.gz my.model --preset small --minutes 60
    """
    directory = Path(model_directory)
    _train(tables, directory, prepare_device(device, threads), resume, options)


def _train(
    tables: tuple[str, ...],
    directory: Path,
    device: torch.device,
    resume: bool,
    options: dict[str, Any],
) -> None:
    keep_freed_memory()
    settings = training_settings(device, options)
    data = training_data(tables, options)
    with training_run(directory, settings, device, "pairs") as run:
        train(
            data, settings, directory, device,
            resume=resume, command=command_line(),
            stop=run.stop, report=run.report, ranks=run.ranks,
        )  # fmt: skip


@moses_feature.command("merge", cls=Command, no_args_is_help=True)
@click.argument("shards", nargs=-1, required=True)
@click.argument("output")
@debug_option
def merge_command(shards: tuple[str, ...], output: str) -> None:
    """Join the shards that augment-phrase-table --shard wrote, given in any order.

    OUTPUT and its *.features.json are, to the byte, what a run without --shard would have written
    (but for the commands in the latter).

    \b
    Example:
      moses-feature merge augmented.1.gz augmented.2.gz augmented.gz
    """
    facts = merge(shards, output, command_line())
    click.echo(f"{output}: {facts['lines_written']:,} lines of {len(shards)} shards", err=True)


@moses_feature.command("score", cls=Command, no_args_is_help=True)
@click.argument("model_directory")
@click.option("--per-word", is_flag=True, help="Also the score of every target word and of </s>.")
@click.option(
    "--batch-size", type=click.IntRange(min=1), default=4096, show_default=True,
    help="Pairs scored together.",
)  # fmt: skip
@escaped_option
@word_options
@scoring_dtype_option
@device_options
@debug_option
def score_command(
    model_directory: str,
    per_word: bool,
    batch_size: int,
    scoring_dtype: Dtype,
    device: str,
    threads: int | None,
    **options: Any,
) -> None:
    """Score phrase pairs: source and target, tab-separated, on the standard input.

    Writes log p(target | source), the natural log, end-of-phrase included, one pair per line;
    with --per-word a tab and the log probability of each target word and of the end of the phrase.

    \b
    Example:
      printf 'a black dog\\tun chien noir\\n' | moses-feature score my.model --per-word
    """
    model = load_any_model(Path(model_directory))
    scorer = scorer_of(model, prepare_device(device, threads), scoring_dtype)
    words = AugmentSettings(**options).words(model)
    with LineReader(STANDARD_STREAM) as reader:
        lines = iter(reader)
        while batch := list(islice(lines, batch_size)):
            first = reader.line_number - len(batch) + 1
            scores = scorer.score(
                [_tab_separated_words(line, words, n) for n, line in enumerate(batch, first)]
            )
            for row, log_prob in enumerate(scores.log_probs.tolist()):
                line = f"{log_prob:.6f}"
                if per_word:
                    of_words = scores.word_log_probs[scores.offsets[row] : scores.offsets[row + 1]]
                    line += "\t" + " ".join(f"{word:.6f}" for word in of_words.tolist())
                click.echo(line)


def _tab_separated_words(
    line: bytes, words: WordOptions, line_number: int
) -> tuple[list[bytes], list[bytes]]:
    columns = line.rstrip(b"\r\n").split(b"\t")
    where = "standard input"
    if len(columns) != 2:
        raise FormatError(
            where, "a source and a target phrase, separated by a tab", shown(line), line_number
        )
    try:
        return words.pair(*columns)
    except WordError as error:
        raise WordError(f"{where} at line {line_number}: {error}") from None


@moses_feature.group("ini")
def ini_group() -> None:
    """Change a moses.ini."""


@ini_group.command("add", cls=Command, no_args_is_help=True)
@click.argument("ini")
@click.argument("output")
@click.option("--table", help="An augmented table, text or compressed.")
@click.option("--cslm", help="A neural language model: a model directory, or an NPLM file.")
@click.option("--name", help="Name of the phrase table in the ini, if it has several.")
@click.option(
    "--weight", "weights", type=float, multiple=True,
    help="Start weight of a new score, in order; 0.1 each by default. A score of weight 0 is not "
    "tuned and takes no part. Repeatable.",
)  # fmt: skip
@click.option("--cslm-weight", type=float, default=START_WEIGHT, show_default=True)
@debug_option
def ini_add_command(
    ini: str,
    output: str,
    table: str | None,
    cslm: str | None,
    name: str | None,
    weights: tuple[float, ...],
    cslm_weight: float,
) -> None:
    """Rewrite a moses.ini for an augmented table, or with a neural language model.

    All else stays as it is, to the byte.

    \b
    Example:
      moses-feature ini add moses.ini moses.augmented.ini --table augmented.gz
      moses-feature ini add moses.ini rnn.ini --table augmented.gz --weight 0.1 --weight 0
      moses-feature ini add rnn.ini cslm+rnn.ini --cslm french.cslm
    """
    if (table is None) == (cslm is None):
        raise UsageError("expected --table or --cslm, one of them")
    if cslm is None:
        _report_ini(output, add_to_ini(Path(ini), Path(output), Path(table or ""), name, weights))
    elif name or weights:
        raise UsageError("--name and --weight are for --table")
    else:
        feature = add_language_model(Path(ini), Path(output), Path(cslm), cslm_weight)
        click.echo(f"{output}: {feature} with start weight {cslm_weight:g}", err=True)


def _report_ini(output: str, weights: list[float]) -> None:
    values = " ".join(f"{weight:g}" for weight in weights)
    click.echo(f"{output}: {len(weights)} new scores with start weights {values}", err=True)


@moses_feature.command("check", cls=Command, no_args_is_help=True)
@click.argument("table")
@click.option("--ini", help="The moses.ini that reads it.")
@debug_option
def check_command(table: str, ini: str | None) -> None:
    """Find what would poison Moses in a phrase table; exit code 1 if there is anything.

    Notes on what does not hinder Moses are printed too, and do not change the exit code.

    \b
    Example:
      moses-feature check augmented.gz --ini moses.augmented.ini
    """
    findings = check_table(table, ini)
    problems = [finding for finding in findings if not finding.harmless]
    for finding in findings:
        click.echo(f"{'note' if finding.harmless else 'problem'}: {finding}")
    if problems:
        sys.exit(1)
    click.echo(f"{table}: nothing that would poison Moses")


@moses_feature.command("favourites", cls=Command, no_args_is_help=True)
@click.argument("table")
@click.option("--phrase", "phrases", multiple=True, help="A source phrase. Repeatable.")
@click.option(
    "--kind", type=click.Choice(["frequent", "rare"]), default="frequent", show_default=True,
    help="Without --phrase: which long source phrases.",
)  # fmt: skip
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True,
              help="Without --phrase: how many.")  # fmt: skip
@click.option("--words", type=click.IntRange(min=1), default=4, show_default=True,
              help="Without --phrase: the fewest words.")  # fmt: skip
@click.option("--best", type=click.IntRange(min=1), default=3, show_default=True,
              help="Targets of each.")  # fmt: skip
@debug_option
def favourites_command(
    table: str,
    phrases: tuple[str, ...],
    kind: Literal["frequent", "rare"],
    count: int,
    words: int,
    best: int,
) -> None:
    """Show the targets that the table and the network prefer (the paper's Table 2).

    Ranks by p(target | source): the table's third score, and the network's.

    \b
    Example:
      moses-feature favourites augmented.gz --kind rare --words 5
    """
    columns = read_columns(table)
    if PROBABILITY_COLUMN not in columns:
        found = ", ".join(columns)
        raise FormatError(features_json(table), f"a column {PROBABILITY_COLUMN}", found)
    column = columns[PROBABILITY_COLUMN]
    if phrases:
        wanted = [b" ".join(tokens(phrase.encode(errors="surrogateescape"))) for phrase in phrases]
        rows = favourites(table, column, wanted, best)
        for phrase in set(wanted) - {row.source for row in rows}:
            raise MosesFeatureError(f"{table}: no source phrase {shown(phrase)}")
    else:
        rows = favourites_of_long_phrases(table, column, kind, count, words, best)
        if not rows:
            raise MosesFeatureError(
                f"{table}: no source phrase of {words} words or more has {FEWEST_TARGETS} targets"
            )
    click.echo(as_text(rows))


@moses_feature.command("describe", cls=Command, no_args_is_help=True)
@click.argument("model_directory")
@debug_option
def describe_command(model_directory: str) -> None:
    """Say what a model is: sizes, vocabularies, training, where it comes from.

    \b
    Example:
      moses-feature describe my.model
    """
    directory = Path(model_directory)
    is_model = (directory / CONFIG).is_file()
    if directory.is_file() or (is_model and architecture_of(directory) == LANGUAGE_MODEL):
        lines = _lm_description(load_neural_lm(directory))
    else:
        lines = _description(load_any_model(directory))
    for name, value in lines:
        click.echo(f"{name:<22} {value}")


def _lm_description(model: NeuralLM) -> Iterator[tuple[str, Any]]:
    yield "order", model.sizes.order
    yield "projection", model.sizes.projection
    yield "rectified layers", f"{model.sizes.first}, {model.sizes.second}"
    yield "parameters", f"{sum(array.size for array in model.weights.values()):,}"
    yield "words", f"{len(model.vocabulary.shortlist):,}"
    yield "self-normalised", "no" if model.normalised else "yes: log Z is not subtracted"
    if isinstance(loss := model.training.get("held_out_loss"), float):
        yield "held-out perplexity", f"{math.exp(min(loss, 700.0)):.2f}"
    if isinstance(norm := model.training.get("mean_absolute_log_norm"), float):
        yield "mean |log Z|", f"{norm:.3f}"
    yield from _provenance(model.training, ("sentences",))


def _description(model: PhraseModel | CrossFittedModel) -> Iterator[tuple[str, Any]]:
    networks = model.networks if isinstance(model, CrossFittedModel) else (model,)
    network = networks[0].network
    sizes = network.sizes
    yield "networks", f"{len(networks)}{', cross-fitted' if len(networks) > 1 else ''}"
    yield "hidden units", sizes.hidden
    yield "embedding", sizes.embedding
    yield "maxout units", sizes.maxout
    yield "output rank", sizes.rank
    yield "parameters", f"{sum(p.numel() for p in network.parameters()):,}"
    yield "source words", f"{len(model.source.shortlist):,}"
    yield "target words", f"{len(model.target.shortlist):,}"
    yield "escaped", "yes" if model.escaped else "no"
    yield "weights SHA-256", model.digest
    yield from _provenance(model.training, ("pairs", "held_out_loss"))


def _provenance(training: dict[str, Any], results: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield results and provenance from a model's training."""
    for name in (*results, "command", "version"):
        if name in training:
            value = training[name]
            yield name.replace("_", " "), f"{value:.4f}" if isinstance(value, float) else value
    inputs = training.get("inputs")
    for entry in inputs if isinstance(inputs, list) else []:
        if isinstance(entry, dict):
            yield "trained on", f"{entry.get('path')} ({entry.get('lines')} lines)"
