"""The command `moses-feature list rescore`: new features for n-best lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.options import format_option
from moses_feature.cli.common.paths import READ_ONCE, WRITE
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.vocabulary import option
from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.moses.marked_models import split_mark
from moses_feature.moses.nbest_formats.reader import MOSES, NbestReader
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM, open_output
from moses_feature.runtime.processes import cores

if TYPE_CHECKING:
    from moses_feature.rescoring.nbest import RescoredLine
    from moses_feature.rescoring.one_best import OneBest, Outcome


@click.command("rescore", cls=Command, no_args_is_help=True)
@click.argument("lists", type=READ_ONCE)
@click.argument("output", type=WRITE)
@format_option
@option(
    "model",
    "Add log p by this model: of the translation by a neural language model (CSLM0 unless "
    "named), or given the source sentence by an RNNsearch (RNNsearch0) or a Transformer "
    "(Transformer0; one that reads the other direction scores the source; several of one name are "
    "averaged). mbr: before a sentence network: expected BLEU against its own n-best list "
    "(Mbr0). Repeatable.",
    to="models",
    many=True,
)
@option("source", "The text that was translated, for all models but neural language models.")
@option(
    "weights",
    "Weights of all features, lines like LM0= 0.1 (mert-tune --rescore writes them) or a "
    "moses.ini: the totals are computed anew, and the lists put in their order.",
)
@option(
    "one-best",
    "Also write the translation with the highest total of each sentence, one a line; an "
    "empty line for a sentence without a list (after the last one, with --reference or --source).",
)
@option(
    "reference",
    "Print BLEU against this translation of the text, before and after. Repeatable.",
    to="references",
    many=True,
)
def rescore_command(
    lists: str,
    output: str,
    form: str,
    models: tuple[str, ...],
    source: str | None,
    weights: str | None,
    one_best: str | None,
    references: tuple[str, ...],
) -> None:
    """Add features to the n-best lists of any decoder.

    Lists come out in Moses' format.

    \b
    Example:
      moses-feature list rescore test.nbest.gz rescored.gz --model french.cslm \\
          --model en-fr.search --source test.en --weights tuned/rescoring.weights
      moses-feature list rescore dev.marian lists.gz --format marian --model french.cslm
    """
    from moses_feature.rescoring.features import model_kind, named_model, scorers_of
    from moses_feature.rescoring.nbest import read_weights, rescore
    from moses_feature.rescoring.one_best import OneBest
    from moses_feature.rescoring.source import SourceText

    if not any((models, weights, form != MOSES, one_best, references)):
        raise UsageError("expected --model, --weights, --one-best, --reference, or a --format")
    named_models = [named_model(model) for model in models]
    for _, path in named_models:
        _, unmarked = split_mark(path)
        if unmarked and not Path(unmarked).exists():
            raise MosesFeatureError(f"{path}: expected a model directory, found none")
    kinds = {model_kind(path) for _, path in named_models}
    if bool(kinds - {LM_ARCHITECTURE}) != (source is not None):
        raise UsageError(
            "--source is for models that read it"
            if source is not None
            else "expected --source, the text that the models read"
        )
    of_file = read_weights(weights) if weights is not None else None
    text = SourceText.read(source) if source is not None else SourceText([], "")
    scorers = scorers_of(named_models, text)
    first = None
    if one_best is not None or references:
        first = OneBest(references, lists, len(text) if source is not None else None)
    with NbestReader(lists, form) as reader:
        rescored = rescore(reader, scorers, of_file, cores())
        lines = _write(reader, rescored, output, one_best, first)
    what = "in a new order" if weights else "as they were" if form == MOSES else f"from {form}"
    if scorers:
        what = f"now with {', '.join(scorer.name for scorer in scorers)}"
    click.echo(f"{output}: {lines:,} translations, {what}", err=True)
    if unasked := text.unasked():
        where = f"{source} at line {unasked[0] + 1}"
        click.echo(f"{where}: the first of {len(unasked):,} sentences without a list", err=True)
    if first is not None:
        _report(first.outcome())


def _write(
    reader: NbestReader,
    lists: Iterator[list[RescoredLine]],
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
    """Report the effect of reranking."""
    changed = f"{outcome.changed:,} of {outcome.sentences:,} first translations have changed"
    if outcome.bleu_before is None:
        click.echo(changed, err=True)
    else:
        if outcome.missing:
            said = f"{outcome.missing:,} sentences of the references have no list: BLEU takes them"
            click.echo(f"{said} for translations without a word", err=True)
        bleu = f"BLEU {outcome.bleu_before:.2f} before, {outcome.bleu_after:.2f} after"
        click.echo(f"{bleu}; {changed}")
