"""A KenLM language model, word by word (`moses/LM/Ken.cpp`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import kenlm

from moses_feature.errors import MosesFeatureError

LOG_10 = math.log(10.0)


class KenlmModel:
    """A model of the kenlm package; scores are natural logs.

    A word that is not UTF-8 is unknown to it.

    Attributes:
        begin, empty: the states at the beginning of a sentence, and without any context.
    """

    def __init__(self, path: str) -> None:
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            self._model = kenlm.Model(path, config)
        except (OSError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise MosesFeatureError(
                f"{path}: expected a language model for KenLM: {reason}"
            ) from None
        self._words: list[str] = []
        self.begin, self.empty = kenlm.State(), kenlm.State()
        self._model.BeginSentenceWrite(self.begin)
        self._model.NullContextWrite(self.empty)

    def add_words(self, words: Sequence[bytes]) -> None:
        """Number more target words, in order."""
        self._words += [word.decode(errors="replace") for word in words]

    def score(self, state: Any, word: int) -> tuple[float, Any]:
        """Return log p of a word, and the state after it."""
        after = kenlm.State()
        score: float = self._model.BaseScore(state, self._words[word], after)
        return score * LOG_10, after
