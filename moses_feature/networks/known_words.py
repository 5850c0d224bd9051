"""Check by the share of known words that a model and a text have the same language."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

from moses_feature.runtime.errors import MosesFeatureError

logger = logging.getLogger(__name__)

LEAST_KNOWN = 0.5
"""The least share of known running words; shortlists have 0.9 or more in their own language."""
MORE_KNOWN = 0.1
"""A model is refused if its other side knows a share of the words larger by this much.

On European laws each side knows 0.98 of its own language, and 0.70 and 0.79 of the other: names,
numbers, punctuation and quotations.
"""
FEWEST, ENOUGH = 50, 500
"""The fewest words to judge a text by, at its end and before its end."""


class KnowsWords(Protocol):
    """The words of a language that a model has."""

    def knows(self, word: bytes) -> bool:
        """Return whether it has a word."""

    @property
    def can_tell(self) -> bool:
        """Whether it knows most words of its own language."""


class KnownWords:
    """Counts the words of a text that a model knows; thread-safe.

    Args:
        model: its path or name.
        text: a description of the text, for the error.
        vocabulary: the vocabulary of the text's language.
        other: for a model of two languages, the vocabulary of the other one.
        warns: whether another language is a warning, given once, and not an error.
    """

    def __init__(
        self,
        model: str,
        text: str,
        vocabulary: KnowsWords,
        other: KnowsWords | None = None,
        warns: bool = False,
    ) -> None:
        self._warns, self._warned = warns, False
        self._model = model
        self._text = text
        self._vocabulary = vocabulary
        self._other = other
        self._words = self._known = self._known_to_other = 0
        self._lock = Lock()

    def add(self, words: Sequence[bytes]) -> None:
        """Count the words of a sentence.

        Raises:
            MosesFeatureError: too few of many words are known.
        """
        known = sum(map(self._vocabulary.knows, words))
        to_other = sum(map(self._other.knows, words)) if self._other is not None else 0
        with self._lock:
            self._words += len(words)
            self._known += known
            self._known_to_other += to_other
            if self._words >= ENOUGH and not self._warned:
                self.check()

    @property
    def share(self) -> float:
        """The share of known words, 0 to 1."""
        return self._known / max(self._words, 1)

    def check(self) -> None:
        """Check that most words are known, and that the other side does not know more.

        A text of very few words always passes.

        Raises:
            MosesFeatureError: the model is of another language.
        """
        if self._words < FEWEST:
            return
        found = f"knows {self._known:,} of {self._words:,} words of {self._text}"
        more = self._known_to_other - self._known
        if self._other is not None and more > MORE_KNOWN * self._words:
            self._refuse(
                f"{self._model}: expected a model of the same two languages, found that it {found}"
                f", and {self._known_to_other:,} of them as words of its other language: it is of "
                "these two the other way round"
            )
        elif self.share < LEAST_KNOWN and self._vocabulary.can_tell:
            self._refuse(
                f"{self._model}: expected a model of the language of {self._text}, found that it "
                f"{found}"
            )

    def _refuse(self, why: str) -> None:
        if not self._warns:
            raise MosesFeatureError(why)
        self._warned = True
        logger.warning("%s", why)


class KnownPairs:
    """Counts the words of pairs that a model for two languages knows.

    Args:
        model: its path or name.
        texts: descriptions of the source and target texts, for the errors.
        vocabularies: of source and target.
        warns: see `KnownWords`.
    """

    def __init__(
        self,
        model: str,
        texts: tuple[str, str],
        vocabularies: tuple[KnowsWords, KnowsWords],
        warns: bool,
    ) -> None:
        source, target = vocabularies
        self._sides = (
            KnownWords(model, texts[0], source, target, warns),
            KnownWords(model, texts[1], target, source, warns),
        )

    def add(self, source: Sequence[bytes], target: Sequence[bytes]) -> None:
        """Count the words of a pair.

        Raises:
            MosesFeatureError: too few of many words are known.
        """
        for side, words in zip(self._sides, (source, target), strict=True):
            side.add(words)

    def check(self) -> None:
        """Check both sides; see `KnownWords.check`."""
        for side in self._sides:
            side.check()
