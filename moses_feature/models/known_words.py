"""Whether a model and a text are of the same language, by the words that the model knows."""

from __future__ import annotations

from collections.abc import Sequence

from moses_feature.errors import MosesFeatureError
from moses_feature.models.vocabulary import UNKNOWN

LEAST_KNOWN = 0.5
"""Share of running words: shortlists hold nine tenths, of another language names and points."""
FEWEST, ENOUGH = 50, 500
"""Words by which a text is judged at its end, and before."""


class KnownWords:
    """Counts the words of a text that a model knows.

    Args:
        model: its path or name.
        text: what the words are of, for the error.
    """

    def __init__(self, model: str, text: str) -> None:
        self._model = model
        self._text = text
        self._words = self._known = 0

    def add(self, ids: Sequence[int]) -> None:
        """Count the words of a sentence.

        Raises:
            MosesFeatureError: of many words most are unknown.
        """
        self._words += len(ids)
        self._known += len(ids) - ids.count(UNKNOWN)
        if self._words >= ENOUGH:
            self.check()

    @property
    def share(self) -> float:
        """Of the words that are known, 0 to 1."""
        return self._known / max(self._words, 1)

    def check(self) -> None:
        """Check that most words are known, unless there are very few.

        Raises:
            MosesFeatureError: they are not.
        """
        if self._words >= FEWEST and self.share < LEAST_KNOWN:
            raise MosesFeatureError(
                f"{self._model}: expected a model that knows most words of {self._text}, found "
                f"that it knows {self._known:,} of {self._words:,}: is it of another language, or "
                "of these two the other way round?"
            )
