"""The command `moses-feature model score`."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.groups import typed
from moses_feature.cli.common.options import DeviceOptions, device_options, escaped_option
from moses_feature.cli.common.paths import READ_MODEL
from moses_feature.cli.common.vocabulary import option
from moses_feature.moses.lines import LineReader, sentences_together
from moses_feature.moses.words import WordError, WordOptions
from moses_feature.networks.vocabulary import UNKNOWN
from moses_feature.phrases.table_words import Escaped, TableWords
from moses_feature.runtime.errors import FormatError, UsageError, shown
from moses_feature.runtime.files import STANDARD_STREAM
from moses_feature.sentences.settings import MOST_PIECES

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from moses_feature.cslm.scorer import NeuralLM
    from moses_feature.networks.vocabulary import Vocabulary
    from moses_feature.phrases.packing import WordPair
    from moses_feature.phrases.table_words import AnyModel
    from moses_feature.runtime.arrays import Floats

PAIRS_TOGETHER, SENTENCES_TOGETHER = 4096, 256


@click.command("score", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@option("per-word", "Also log p of every target word and of the end.")
@option("normalised", "Subtract log Z of a self-normalised model, or NPLM's, too.")
@escaped_option
@device_options
def score_command(
    model: str,
    per_word: bool,
    normalised: bool,
    escaped: Escaped,
    device: DeviceOptions,
) -> None:
    """Score phrase pairs, or sentences, line by line.

    Of a network for pairs, a line of the standard input is a source and a target, tab-separated.
    Writes log p(target | source), the natural log, the end included, one line for each; with
    --per-word a tab and the log probability of each target word and of the end.

    Of a neural language model (a model directory or a file in NPLM's format), a line is a sentence.
    Words outside the shortlist are scored as UNK. Says the perplexity of the text, with all words
    and without those outside the shortlist.

    \b
    Example:
      printf 'a black dog\\tun chien noir\\n' | moses-feature model score my.model --per-word
      moses-feature model score french.cslm < test.fr
    """
    from moses_feature.cslm.settings import LM_ARCHITECTURE
    from moses_feature.networks.files import CONFIG, architecture_of

    directory = Path(model)
    kind = architecture_of(directory) if (directory / CONFIG).is_file() else None
    if kind == LM_ARCHITECTURE or directory.is_file():
        _refuse_options_of_pairs()
        _score_sentences(model, per_word, normalised)
    else:
        _score_pairs(directory, kind, per_word, normalised, TableWords(escaped=escaped), device)


def _refuse_options_of_pairs() -> None:
    if given := [*typed(("escaped",)), *device_options.given()]:
        raise UsageError(f"--{given[0]} is for networks for pairs")


def _score_pairs(
    directory: Path,
    kind: str | None,
    per_word: bool,
    normalised: bool,
    words: TableWords,
    device: DeviceOptions,
) -> None:
    from moses_feature.networks.architectures import SENTENCE_ARCHITECTURES
    from moses_feature.sentences.scorer import SentenceModel

    model: AnyModel
    score: Callable[[list[WordPair]], list[Floats]]
    if kind in SENTENCE_ARCHITECTURES:
        for name in device_options.given():
            raise UsageError(f"--{name}: a network for sentences is scored on the CPU")
        model = of_sentences = SentenceModel(directory, normalised=normalised)
        score = of_sentences.token_log_probs
    else:
        model, score = _phrase_network(directory, normalised, device)
    pair_words = words.words(model)
    with LineReader(STANDARD_STREAM) as reader:
        lines = iter(reader)
        while batch := list(islice(lines, PAIRS_TOGETHER)):
            first = reader.line_number - len(batch) + 1
            pairs = [
                _tab_separated_words(line, pair_words, n) for n, line in enumerate(batch, first)
            ]
            _refuse_too_long(pairs, (model.source, model.target), first)
            for of_words in score(pairs):
                _print_scores(float(of_words.sum(dtype="f8")), of_words, per_word)


def _phrase_network(
    directory: Path, normalised: bool, device: DeviceOptions
) -> tuple[AnyModel, Callable[[list[WordPair]], list[Floats]]]:
    """Return a network for phrases, and what scores the words of pairs with it."""
    import numpy as np

    from moses_feature.phrases.model import load_model
    from moses_feature.phrases.scorer import scorer_of

    model = load_model(directory)
    scorer = scorer_of(model, device.prepare(), "float32", normalised=normalised)

    def score(pairs: list[WordPair]) -> list[Floats]:
        scores = scorer.score(pairs)
        return np.split(scores.word_log_probs, scores.offsets[1:-1])

    return model, score


def _refuse_too_long(
    pairs: list[WordPair], sides: tuple[Vocabulary, Vocabulary], first: int
) -> None:
    """Refuse a pair with a side of too many subwords; `first` is the line of the first pair."""
    for number, pair in enumerate(pairs, first):
        for words, of_side in zip(pair, sides, strict=True):
            if (found := sum(of_side.lengths(words))) > MOST_PIECES:
                expected = f"{MOST_PIECES} words or subwords at most"
                raise FormatError("standard input", expected, f"{found}", number)


def _print_scores(log_prob: float, of_words: np.ndarray, per_word: bool) -> None:
    line = f"{log_prob:.6f}"
    if per_word:
        line += "\t" + " ".join(f"{score:.6f}" for score in of_words.tolist())
    click.echo(line)


def _tab_separated_words(line: bytes, words: WordOptions, line_number: int) -> WordPair:
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


def _score_sentences(model: str, per_word: bool, normalised: bool) -> None:
    from moses_feature.cslm.nplm import load_neural_lm

    network = load_neural_lm(model)
    network.normalised |= normalised
    perplexity = _Perplexity()
    for sentences in sentences_together(SENTENCES_TOGETHER):
        scored = network.sentence_log_probs(sentences)
        for sentence, log_probs in zip(sentences, scored, strict=True):
            _print_scores(float(log_probs.sum(dtype="f8")), log_probs, per_word)
            perplexity.add(network, sentence, log_probs)
    click.echo(perplexity.report(network), err=True)


class _Perplexity:
    """The perplexity of a text, sentence by sentence."""

    def __init__(self) -> None:
        self._sentences = self._words = self._unknown = 0
        self._sum = self._sum_of_unknown = 0.0

    def add(self, network: NeuralLM, sentence: list[bytes], log_probs: np.ndarray) -> None:
        """Add a sentence and log p of its words and its end."""
        unknown = [word == UNKNOWN for word in (*network.ids(sentence), 0)]
        self._sentences += 1
        self._words += len(sentence)
        self._unknown += sum(unknown)
        self._sum += float(log_probs.sum(dtype="f8"))
        self._sum_of_unknown += float(log_probs[unknown].sum(dtype="f8"))

    def report(self, network: NeuralLM) -> str:
        """Return the report at the end."""
        scored = self._words + self._sentences
        known = scored - self._unknown
        kind = "" if network.normalised else "; not --normalised, so this is no true perplexity"
        return (
            f"{self._sentences:,} sentences, {self._words:,} words, {self._unknown:,} unknown; "
            f"perplexity {_perplexity(self._sum, scored):.2f}, without unknown words "
            f"{_perplexity(self._sum - self._sum_of_unknown, known):.2f} (ends of sentences "
            f"counted){kind}"
        )


def _perplexity(log_prob: float, words: int) -> float:
    return math.exp(-log_prob / words) if words else math.nan
