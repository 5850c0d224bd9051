"""The command `moses-feature rescore`: new features for n-best lists."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.paths import READ, READ_NAMED_MODEL, WRITE
from moses_feature.cli.progress import Progress
from moses_feature.errors import UsageError
from moses_feature.files import STANDARD_STREAM, open_output
from moses_feature.lm.nplm import load_neural_lm
from moses_feature.moses.lines import LineReader
from moses_feature.rescoring.nbest import (
    CslmScorer,
    SentenceScorer,
    check_names,
    named,
    read_weights,
    rescore,
)


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
    help="Weights of all features, lines like LM0= 0.1 (mert-tune --rescore writes them): the "
    "totals are computed anew, and the lists put in their order.",
)
@debug_option
def rescore_command(
    n_best: str,
    output: str,
    cslms: tuple[str, ...],
    rnns: tuple[str, ...],
    source: str | None,
    weights_file: str | None,
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
    if output == STANDARD_STREAM:
        raise UsageError("n-best lists are written to a file, found -")
    weights = read_weights(weights_file) if weights_file else None
    scorers: list[SentenceScorer] = [
        CslmScorer(name, load_neural_lm(path))
        for name, path in (named(text, "CSLM0") for text in cslms)
    ]
    for name, path in (named(text, "RNN0") for text in rnns):
        from moses_feature.rescoring.rnn import RnnScorer

        scorers.append(RnnScorer(name, path, source or ""))
    check_names(scorers)
    lines = 0
    with (
        LineReader(n_best) as reader,
        open_output(Path(output)) as file,
        Progress(has_end=n_best != STANDARD_STREAM) as progress,
    ):
        for line in rescore(reader, scorers, weights):
            file.write(line)
            lines += 1
            progress.show(f"{lines:,} translations", reader.fraction())
    names = ", ".join(scorer.name for scorer in scorers) or "a new order"
    click.echo(f"{output}: {names} of {lines:,} translations", err=True)
