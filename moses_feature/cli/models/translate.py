"""The command `moses-feature model translate`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_MODEL
from moses_feature.cli.common.vocabulary import WholeRange, option
from moses_feature.moses.lines import sentences_together
from moses_feature.networks.known_words import KnownWords
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import open_output
from moses_feature.runtime.processes import cores
from moses_feature.sentences.settings import MOST_PIECES

if TYPE_CHECKING:
    from moses_feature.runtime.arrays import Floats32
    from moses_feature.sentences.scorer import SentenceModel

SENTENCES_TOGETHER, LARGE_BATCH = 16, 512
"""Sentences that are translated together, by our networks and by CTranslate2."""
LARGEST_BEAM = 1000
TEXT = "the text to translate"


@click.command("translate", cls=Command, no_args_is_help=True)
@click.argument("models", type=READ_MODEL, nargs=-1, required=True)
@option("beam", "Hypotheses of a sentence.", default=12, within=WholeRange(1, LARGEST_BEAM))
@option(
    "alignment-out",
    "Also write what each target word is aligned to: a JSON object a line, with source, "
    "target and alignment, a row for each target word and the end, a probability for each source "
    "word and the end.",
)
def translate_command(models: tuple[str, ...], beam: int, alignment_out: str | None) -> None:
    """Translate the standard input with sentence networks alone.

    A model is an RNNsearch, a Transformer, or a model of CTranslate2. The translation has the best
    log p, divided by its length to the power of 1.4; of several networks of the same texts, p is
    the mean (an ensemble). With RNNsearch, an unknown word is the source word that it is aligned to
    most. One core does the work.

    \b
    Example:
      moses-feature model translate en-fr.search < test.en > test.out
    """
    from moses_feature.networks.files import is_ctranslate2
    from moses_feature.rescoring.ctranslate2 import CTranslate2Model

    if model := next(filter(is_ctranslate2, models), None):
        if len(models) > 1:
            raise UsageError(f"{model}: a model of CTranslate2 translates alone")
        if alignment_out is not None:
            raise UsageError(f"--alignment-out is for RNNsearch of whole words: found {model}")
        converted = CTranslate2Model(Path(model), cores())
        known = KnownWords(model, TEXT, converted.source, converted.target)
        for some in _sentences(LARGE_BATCH, converted.length):
            for words in some:
                known.add(words)
            for text in converted.translate(some, beam):
                click.echo(text)
        known.check()
    else:
        _translate(models, beam, alignment_out)


def _translate(models: Sequence[str], beam: int, alignment_out: str | None) -> None:
    """Translate the standard input with networks of ours."""
    from moses_feature.networks.pieces import PieceVocabulary
    from moses_feature.sentences.translate import ensemble, translate, words_of

    scorer, empty = ensemble([Path(model) for model in models])
    if alignment_out is not None and (
        empty([[]]).alignments is None or isinstance(scorer.source, PieceVocabulary)
    ):
        names = ", ".join(models)
        raise UsageError(f"--alignment-out is for RNNsearch of whole words: found {names}")
    known = KnownWords(models[0], TEXT, scorer.source, scorer.target)
    with ExitStack() as stack:
        file = None
        if alignment_out is not None:
            file = stack.enter_context(open_output(Path(alignment_out)))
        for some in _sentences(SENTENCES_TOGETHER, lambda words: len(scorer.source.ids(words))):
            for words in some:
                known.add(words)
            found = translate(empty, [scorer.source.ids(words) for words in some], beam)
            for source, translations in zip(some, found, strict=True):
                words = words_of(scorer, translations[0], source) if source else []
                click.echo(b" ".join(words))
                alignment = translations[0].alignment
                if file is not None and alignment is not None:
                    _write_alignment(file, source, words, alignment, scorer)
        known.check()


def _sentences(count: int, length: Callable[[list[bytes]], int]) -> Iterator[list[list[bytes]]]:
    """Yield the sentences of the standard input; those before a too long one are translated."""
    done = 0
    for some in sentences_together(count):
        for place, words in enumerate(some):
            if (found := length(words)) > MOST_PIECES:
                yield some[:place]
                raise MosesFeatureError(
                    f"standard input at line {done + place + 1}: expected {MOST_PIECES} words or "
                    f"subwords at most, found {found}"
                )
        yield some
        done += len(some)


def _write_alignment(
    file: BinaryIO,
    source: list[bytes],
    words: list[bytes],
    alignment: Floats32,
    scorer: SentenceModel,
) -> None:
    """Write a line; rows are in the order of the words."""
    rows = alignment[: len(words) + 1].astype(float).round(4).tolist()
    if scorer.direction.right_to_left:
        rows = [*rows[-2::-1], rows[-1]]
    content = {
        "source": [word.decode(errors="replace") for word in source],
        "target": [word.decode(errors="replace") for word in words],
        "alignment": rows,
    }
    file.write(json.dumps(content, ensure_ascii=False).encode() + b"\n")
