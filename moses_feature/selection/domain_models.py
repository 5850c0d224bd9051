"""KenLM models for data selection: read, or estimated from texts."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from moses_feature.moses.language_model import LOG_10, is_binary, load_kenlm
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.errors import MosesFeatureError

ARPA = b"\\data\\"
FEWEST_IN_DOMAIN = 2
"""The least count of a word of the in-domain vocabulary (Moore and Lewis 2010, section 3)."""


class DomainModel:
    """A KenLM model as a measure of sentences."""

    def __init__(self, path: str | Path) -> None:
        self._model = load_kenlm(path)

    def cross_entropy(self, words: list[bytes]) -> float:
        """Return -log p per word in nats, the end of the sentence counted as a word."""
        text = b" ".join(words).decode(errors="replace")
        return -float(self._model.score(text)) * LOG_10 / (len(words) + 1)

    def of_text(self, sentences: Iterable[list[bytes]], path: str) -> float:
        """Return -log p per word of a text, in nats.

        Raises:
            MosesFeatureError: it has no words.
        """
        total, words, ends = 0.0, 0, 0
        for sentence in sentences:
            total += self.cross_entropy(sentence) * (len(sentence) + 1)
            words += len(sentence)
            ends += 1
        if not words:
            raise no_words(path)
        return total / (words + ends)


def is_model(path: str) -> bool:
    """Return whether a file is a KenLM model (binary, or ARPA, compressed or not), not a text."""
    if is_binary(Path(path)):
        return True
    with LineReader(path) as reader:
        first = next((line for line in reader if line.strip()), b"")
    return first.strip() == ARPA


def read_sentences(path: str) -> Iterable[list[bytes]]:
    """Yield the words of each line."""
    with LineReader(path) as reader:
        for line in reader:
            yield tokens(line)


def vocabulary_of(path: str) -> set[bytes]:
    """Return the words that occur twice or more in a text; all words if there are none."""
    counts = Counter(word for words in read_sentences(path) for word in words)
    if not counts:
        raise no_words(path)
    frequent = {word for word, count in counts.items() if count >= FEWEST_IN_DOMAIN}
    return frequent or set(counts)


def no_words(path: str) -> MosesFeatureError:
    """Return the error of a text without words."""
    return MosesFeatureError(f"{path}: expected words, found none")


def estimated(
    sentences: Iterable[list[bytes]], path: str, vocabulary: set[bytes] | None, order: int
) -> DomainModel:
    """Estimate a model.

    Args:
        sentences: as words; marks of sentences and of unknown words in them are left out.
        path: the file that they are from, for errors.
        vocabulary: the words that it knows; None for all.
        order: words of an n-gram.

    Raises:
        MosesFeatureError: the sentences have no words.
    """
    from moses_feature.building.bitext import MARKS  # the help of commands needs no numba
    from moses_feature.building.language_model import estimate

    words = ([word for word in of if word not in MARKS] for of in sentences)
    with_words = (of for of in words if of)
    if (first := next(with_words, None)) is None:
        raise no_words(path)
    with tempfile.TemporaryDirectory(prefix="moses-feature-lm-") as name:
        folder = Path(name)
        sentences = chain([first], with_words)
        model = estimate(sentences, order, vocabulary=vocabulary, folder=folder)
        arpa = folder / "arpa"
        with arpa.open("wb") as file:
            file.writelines(model.arpa())
        return DomainModel(arpa)
