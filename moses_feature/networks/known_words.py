"""Whether a model and a text are of the same language, by the words that the model knows."""

from __future__ import annotations

from collections.abc import Sequence

from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.runtime.errors import MosesFeatureError

LEAST_KNOWN = 0.5
"""Share of running words; shortlists hold nine tenths and more of their own language."""
MORE_KNOWN = 0.1
"""By how much the other side of a model must know more to be the one of this language.

Of European laws each side knows 0.98 of its own language, and 0.70 and 0.79 of the other: names,
numbers, points and what is quoted.
"""
FEWEST, ENOUGH = 50, 500
"""Words by which a text is judged at its end, and before."""


class KnownWords:
    """Counts the words of a text that a model knows.

    Args:
        model: its path or name.
        text: what the words are of, for the error.
        vocabulary: that should know them.
        other: of the other language of a model for two.
    """

    def __init__(
        self, model: str, text: str, vocabulary: Vocabulary, other: Vocabulary | None = None
    ) -> None:
        self._model = model
        self._text = text
        self._vocabulary = vocabulary
        self._other = other
        self._words = self._known = self._known_to_other = 0

    def add(self, words: Sequence[bytes]) -> None:
        """Count the words of a sentence.

        Raises:
            MosesFeatureError: of many words too few are known.
        """
        self._words += len(words)
        self._known += sum(word in self._vocabulary.index for word in words)
        if self._other is not None:
            self._known_to_other += sum(word in self._other.index for word in words)
        if self._words >= ENOUGH:
            self.check()

    @property
    def share(self) -> float:
        """Of the words that are known, 0 to 1."""
        return self._known / max(self._words, 1)

    def check(self) -> None:
        """Check that most words are known, and that the other side does not know more.

        Very few words are not judged.

        Raises:
            MosesFeatureError: it is of another language.
        """
        if self._words < FEWEST:
            return
        found = f"knows {self._known:,} of {self._words:,} words of {self._text}"
        more = self._known_to_other - self._known
        if self._other is not None and more > MORE_KNOWN * self._words:
            raise MosesFeatureError(
                f"{self._model}: expected a model of the same two languages, found that it {found}"
                f", and {self._known_to_other:,} of them as words of its other language: it is of "
                "these two the other way round"
            )
        if self.share < LEAST_KNOWN:
            raise MosesFeatureError(
                f"{self._model}: expected a model of the language of {self._text}, found that it "
                f"{found}"
            )


class KnownPairs:
    """Counts the words of pairs that a model for two languages knows.

    Args:
        model: its path or name.
        texts: what the words of source and target are of, for the errors.
        vocabularies: of source and target.
    """

    def __init__(
        self, model: str, texts: tuple[str, str], vocabularies: tuple[Vocabulary, Vocabulary]
    ) -> None:
        source, target = vocabularies
        self._sides = (
            KnownWords(model, texts[0], source, target),
            KnownWords(model, texts[1], target, source),
        )

    def add(self, source: Sequence[bytes], target: Sequence[bytes]) -> None:
        """Count the words of a pair.

        Raises:
            MosesFeatureError: of many words too few are known.
        """
        for side, words in zip(self._sides, (source, target), strict=True):
            side.add(words)

    def check(self) -> None:
        """Check both sides; see `KnownWords.check`."""
        for side in self._sides:
            side.check()
