"""For Python programs: read phrase tables, and score phrase pairs.

Phrases are text, or bytes in the encoding of the table that the model was trained on (text is
encoded as UTF-8); their words are separated by spaces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import SCORES, SOURCE, TARGET, count_scores, split_fields
from moses_feature.moses.words import WordError
from moses_feature.phrases.cross_fitting import load_any_model
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import FormatError, shown
from moses_feature.training.objective import choose_device

Phrase = str | bytes

PAIRS_TOGETHER = 4096


@dataclass(frozen=True)
class TableEntry:
    """A line of a phrase table.

    Attributes:
        source, target: the phrases; bytes that are not UTF-8 are kept as surrogates.
        scores: as in the table, usually probabilities.
    """

    source: str
    target: str
    scores: tuple[float, ...]


def read_table(path: str | Path) -> Iterator[TableEntry]:
    """Yield the lines of a phrase table, compressed or not.

    Raises:
        FormatError: a line that is not of a phrase table.
        MosesFeatureError: the table cannot be read.
    """
    with LineReader(path) as reader:
        for line in reader:
            fields = split_fields(line, reader.path, reader.line_number)
            count_scores(fields[SCORES], reader.path, reader.line_number)
            source, target = (_text(fields[side]) for side in (SOURCE, TARGET))
            scores = tuple(map(float, fields[SCORES].split()))
            if not all(map(math.isfinite, scores)):
                raise FormatError(
                    reader.path, "finite scores", shown(fields[SCORES]), reader.line_number
                )
            yield TableEntry(source, target, scores)


def load_model(
    directory: str | Path, device: str = "auto", words: TableWords | None = None
) -> PhraseScorer:
    """Load a model trained by `moses-feature model train` or `augment-phrase-table`.

    Args:
        directory: the directory of one network, or of cross-fitted ones.
        device: auto, cpu, cuda, cuda:1, …
        words: how tokens become words of the model; None for tokens that are escaped like Moses'
            (`&apos;`), with the factors of the training.

    Raises:
        MosesFeatureError: there is no model, its files are damaged, or there is no such device.
    """
    return PhraseScorer(Path(directory), device, words or TableWords())


class PhraseScorer:
    """A model that scores phrase pairs; see `load_model`."""

    def __init__(self, directory: Path, device: str, words: TableWords) -> None:
        model = load_any_model(directory)
        self._words = words.words(model)
        self._scorer = scorer_of(model, choose_device(device))

    def log_probs(self, pairs: Iterable[tuple[Phrase, Phrase]]) -> NDArray[np.float64]:
        """Return log p(target | source) of pairs of a source and a target phrase.

        Returns:
            (pairs,) natural logs, the end of the phrase included.

        Raises:
            WordError: a phrase that cannot be turned into words of the model.
        """
        scores = [np.zeros(0)]
        rest = iter(pairs)
        while batch := list(islice(rest, PAIRS_TOGETHER)):
            words = [self._words.pair(_bytes(source), _bytes(target)) for source, target in batch]
            scores.append(self._scorer.score(words).log_probs)
        return np.concatenate(scores)


def _bytes(phrase: Phrase) -> bytes:
    try:
        return phrase if isinstance(phrase, bytes) else phrase.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise WordError(f"expected text, found {phrase!r}") from error


def _text(field: bytes) -> str:
    return field.strip(b" \t").decode(errors="surrogateescape")
