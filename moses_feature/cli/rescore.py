"""The command `moses-feature rescore`: new features for n-best lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.option_types import format_option
from moses_feature.cli.options import DeviceOptions, device_options
from moses_feature.cli.paths import READ, READ_NAMED_MODEL, WRITE
from moses_feature.cli.progress import Progress
from moses_feature.cslm.nplm import load_neural_lm
from moses_feature.moses.nbest_formats.reader import MOSES, NbestReader
from moses_feature.rescoring.features import CSLM, JOINT, RNNSEARCH, JointFeature, search_features
from moses_feature.rescoring.nbest import (
    CslmScorer,
    SentenceScorer,
    Translation,
    check_names,
    named,
    read_weights,
    rescore,
)
from moses_feature.rescoring.one_best import OneBest, Outcome
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM, open_output


@click.command("rescore", cls=Command, no_args_is_help=True)
@click.argument("n_best", metavar="N-BEST", type=READ)
@click.argument("output", type=WRITE)
@format_option
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
@click.option(
    "--rnnsearch",
    "searches",
    multiple=True,
    type=READ_NAMED_MODEL,
    help="An RNNsearch: log p of the translation, or with a network of the other direction that of "
    "the source; RNNsearch0 by default. Several of one name are averaged. Repeatable.",
)
@click.option(
    "--joint",
    "joints",
    multiple=True,
    type=READ_NAMED_MODEL,
    help="A joint language model: log p of the translation, for lists with word alignments (Moses' "
    "-print-alignment-info-in-n-best); NNJM0 by default. Repeatable.",
)
@click.option(
    "--source",
    type=READ,
    help="The text that was translated, for --rnn, --rnnsearch and --joint.",
)
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
    "empty line for a sentence without a list (after the last one, with --reference or --source).",
)
@click.option(
    "--reference",
    "references",
    type=READ,
    multiple=True,
    help="Print BLEU against this translation of the text, before and after. Repeatable.",
)
@device_options
@debug_option
def rescore_command(
    n_best: str,
    output: str,
    form: str,
    cslms: tuple[str, ...],
    rnns: tuple[str, ...],
    searches: tuple[str, ...],
    joints: tuple[str, ...],
    source: str | None,
    weights_file: str | None,
    best: str | None,
    references: tuple[str, ...],
    device: DeviceOptions,
) -> None:
    """Add features to the n-best lists of any decoder, in Moses' format.

    \b
    Example:
      moses-feature rescore test.nbest.gz rescored.gz --cslm french.cslm \\
          --rnnsearch en-fr.search --source test.en --weights tuned/rescoring.weights
      moses-feature rescore fairseq.out lists.gz --format fairseq --cslm french.cslm
    """
    if not (cslms or rnns or searches or joints or weights_file or form != MOSES):
        raise UsageError("expected --cslm, --rnn, --rnnsearch, --joint, --weights or --format")
    if bool(rnns or searches or joints) != (source is not None):
        raise UsageError("--rnn, --rnnsearch or --joint, and --source, go together")
    if not rnns:
        for name in device_options.given():
            raise UsageError(f"--{name} is for --rnn")
    if STANDARD_STREAM in (output, best):
        raise UsageError("n-best lists are written to a file, found -")
    weights = read_weights(weights_file) if weights_file else None
    text = SourceText.read(source) if source is not None else SourceText([], "")
    scorers: list[SentenceScorer] = [
        CslmScorer(name, load_neural_lm(path))
        for name, path in (named(cslm, CSLM) for cslm in cslms)
    ]
    scorers += search_features([named(search, RNNSEARCH) for search in searches], text)
    scorers += [JointFeature(*named(joint, JOINT), text) for joint in joints]
    for name, path in (named(rnn, "RNN0") for rnn in rnns):
        from moses_feature.rescoring.rnn import RnnScorer

        scorers.append(RnnScorer(name, path, text, device.prepare()))
    check_names(scorers)
    one_best = None
    if best is not None or references:
        one_best = OneBest(references, n_best, len(text) if source is not None else None)
    with NbestReader(n_best, form) as reader:
        lists = rescore(reader, scorers, weights)
        lines = _write(reader, lists, output, best, one_best)
    what = "a new order" if weights else f"Moses' format of {form} lists"
    names = ", ".join(scorer.name for scorer in scorers) or what
    click.echo(f"{output}: {names} of {lines:,} translations", err=True)
    if unasked := text.unasked():
        where = f"{source} at line {unasked[0] + 1}"
        click.echo(f"{where}: the first of {len(unasked):,} sentences without a list", err=True)
    if one_best is not None:
        _report(one_best.outcome())


def _write(
    reader: NbestReader,
    lists: Iterator[list[Translation]],
    output: str,
    best: str | None,
    one_best: OneBest | None,
) -> int:
    """Write lists, and their best translations, and return how many translations there are."""
    lines = 0
    with ExitStack() as stack:
        file = stack.enter_context(open_output(Path(output)))
        best_file = stack.enter_context(open_output(Path(best))) if best is not None else None
        progress = stack.enter_context(Progress(has_end=reader.path != STANDARD_STREAM))
        for translations in lists:
            for translation in translations:
                file.write(translation.content())
            best_line = one_best.add(translations) if one_best is not None else b""
            if best_file is not None:
                best_file.write(best_line)
            lines += len(translations)
            progress.show(f"{lines:,} translations", reader.fraction())
        if best_file is not None and one_best is not None:
            best_file.write(one_best.rest())
    return lines


def _report(outcome: Outcome) -> None:
    """Say what a new order has changed."""
    changed = f"{outcome.changed:,} of {outcome.sentences:,} first translations have changed"
    if outcome.bleu_before is None:
        click.echo(changed, err=True)
    else:
        if outcome.missing:
            said = f"{outcome.missing:,} sentences of the references have no list: BLEU takes them"
            click.echo(f"{said} for translations without a word", err=True)
        bleu = f"BLEU {outcome.bleu_before:.2f} before, {outcome.bleu_after:.2f} after"
        click.echo(f"{bleu}; {changed}")
