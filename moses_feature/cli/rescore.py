"""The command `moses-feature rescore`: new features for n-best lists."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.options import DeviceOptions, device_options
from moses_feature.cli.paths import READ, READ_NAMED_MODEL, WRITE
from moses_feature.cli.progress import Progress
from moses_feature.errors import DataError, UsageError
from moses_feature.files import STANDARD_STREAM, open_output, write_whole
from moses_feature.lm.nplm import load_neural_lm
from moses_feature.moses.lines import LineReader
from moses_feature.rescoring.nbest import (
    CslmScorer,
    SentenceScorer,
    Translation,
    check_names,
    named,
    read_weights,
    rescore,
)

MOST_MISSING = 100_000
"""Sentences without a list, one after the other, that `--best` takes for empty ones."""


@click.command("rescore", cls=Command, no_args_is_help=True)
@click.argument("n_best", metavar="N-BEST", type=READ)
@click.argument("output", type=WRITE)
@click.option(
    "--cslm",
    "cslms",
    multiple=True,
    type=READ_NAMED_MODEL,
    help="A neural language model: log p of the translation; CSLM0 by default. Repeatable.",
)
@click.option(
    "--rnn",
    "rnns",
    multiple=True,
    type=READ_NAMED_MODEL,
    help="An encoder-decoder: log p(translation | source sentence), each as one phrase; RNN0 by "
    "default. Repeatable.",
)
@click.option("--source", type=READ, help="The text that was translated, for --rnn.")
@click.option(
    "--weights",
    "weights_file",
    type=READ,
    help="Weights of all features, lines like LM0= 0.1 (mert-tune --rescore writes them) or a "
    "moses.ini: the totals are computed anew, and the lists put in their order.",
)
@click.option(
    "--best",
    type=WRITE,
    help="Also write the translation with the highest total of each sentence, one a line; an "
    "empty line for a sentence without a list.",
)
@device_options
@debug_option
def rescore_command(
    n_best: str,
    output: str,
    cslms: tuple[str, ...],
    rnns: tuple[str, ...],
    source: str | None,
    weights_file: str | None,
    best: str | None,
    device: DeviceOptions,
) -> None:
    """Add features to the n-best lists of any decoder, in Moses' format.

    \b
    Example:
      moses-feature rescore test.nbest.gz rescored.gz --cslm french.cslm \\
          --weights tuned/rescoring.weights
    """
    if not cslms and not rnns and not weights_file:
        raise UsageError("expected --cslm, --rnn or --weights")
    if bool(rnns) != (source is not None):
        raise UsageError("--rnn and --source go together")
    if STANDARD_STREAM in (output, best):
        raise UsageError("n-best lists are written to a file, found -")
    weights = read_weights(weights_file) if weights_file else None
    scorers: list[SentenceScorer] = [
        CslmScorer(name, load_neural_lm(path))
        for name, path in (named(text, "CSLM0") for text in cslms)
    ]
    for name, path in (named(text, "RNN0") for text in rnns):
        from moses_feature.rescoring.rnn import RnnScorer

        scorers.append(RnnScorer(name, path, source or "", device.prepare()))
    check_names(scorers)
    lines = 0
    best_translations: list[bytes] = []
    with (
        LineReader(n_best) as reader,
        open_output(Path(output)) as file,
        Progress(has_end=n_best != STANDARD_STREAM) as progress,
    ):
        for translations in rescore(reader, scorers, weights):
            for translation in translations:
                file.write(translation.content())
            _keep_best(translations, best_translations)
            lines += len(translations)
            progress.show(f"{lines:,} translations", reader.fraction())
    if best is not None:
        write_whole(Path(best), b"".join(best_translations))
    names = ", ".join(scorer.name for scorer in scorers) or "a new order"
    click.echo(f"{output}: {names} of {lines:,} translations", err=True)


def _keep_best(translations: list[Translation], kept: list[bytes]) -> None:
    """Append the line of a sentence, after empty lines for those that have no list."""
    best = max(translations, key=lambda translation: translation.total)
    if not len(kept) <= best.sentence <= len(kept) + MOST_MISSING:
        raise DataError(
            f"--best: expected lists in the order of the sentences, found one of sentence "
            f"{best.sentence} (from 0) after {len(kept)} of them"
        )
    kept.extend([b"\n"] * (best.sentence - len(kept)))
    kept.append(b" ".join(best.words) + b"\n")
