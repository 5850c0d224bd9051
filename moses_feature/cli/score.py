"""The command `moses-feature score`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.option_types import BATCH
from moses_feature.cli.options import (
    DeviceOptions,
    device_options,
    scoring_dtype_option,
    table_word_options,
)
from moses_feature.cli.paths import READ_MODEL
from moses_feature.moses.lines import LineReader
from moses_feature.moses.words import WordError, WordOptions
from moses_feature.networks.architectures import Dtype
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import FormatError, shown
from moses_feature.runtime.files import STANDARD_STREAM


@click.command("score", cls=Command, no_args_is_help=True)
@click.argument("model_directory", type=READ_MODEL)
@click.option("--per-word", is_flag=True, help="Also the score of every target word and of </s>.")
@click.option(
    "--batch-size",
    type=BATCH,
    default=4096,
    show_default=True,
    help="Pairs scored together.",
)
@click.option(
    "--normalised", is_flag=True, help="Subtract log Z of a self-normalised network, too."
)
@table_word_options
@scoring_dtype_option
@device_options
@debug_option
def score_command(
    model_directory: str,
    per_word: bool,
    batch_size: int,
    normalised: bool,
    words: TableWords,
    scoring_dtype: Dtype,
    device: DeviceOptions,
) -> None:
    """Score phrase pairs: source and target, tab-separated, on the standard input.

    Writes log p(target | source), the natural log, end-of-phrase included, one pair per line;
    with --per-word a tab and the log probability of each target word and of the end of the phrase.

    \b
    Example:
      printf 'a black dog\\tun chien noir\\n' | moses-feature score my.model --per-word
    """
    from moses_feature.phrases.cross_fitting import load_any_model
    from moses_feature.phrases.scorer import scorer_of

    model = load_any_model(Path(model_directory))
    scorer = scorer_of(model, device.prepare(), scoring_dtype, normalised=normalised)
    pair_words = words.words(model)
    with LineReader(STANDARD_STREAM) as reader:
        lines = iter(reader)
        while batch := list(islice(lines, batch_size)):
            first = reader.line_number - len(batch) + 1
            scores = scorer.score(
                [_tab_separated_words(line, pair_words, n) for n, line in enumerate(batch, first)]
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
