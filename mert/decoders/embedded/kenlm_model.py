"""A KenLM language model, word by word (`moses/LM/Ken.cpp`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kenlm

from mert.decoders.embedded.kenlm_library import addresses_of
from moses_feature.moses.language_model import LOG_10, load_kenlm


class KenlmModel:
    """A model of the kenlm package; scores are natural logs.

    A word that is not UTF-8 is unknown to it.

    Attributes:
        begin, empty: the states at the beginning of a sentence, and without any context.
        addresses: for compiled code; None if it must ask Python.
    """

    def __init__(self, path: str) -> None:
        self._model = load_kenlm(path)
        self._words: list[str] = []
        self.begin, self.empty = kenlm.State(), kenlm.State()
        self._model.BeginSentenceWrite(self.begin)
        self._model.NullContextWrite(self.empty)
        self.addresses = addresses_of(self._model)

    def add_words(self, words: Sequence[bytes]) -> list[int]:
        """Number more target words, in order; return KenLM's ids of them, 0 without addresses."""
        decoded = [word.decode(errors="replace") for word in words]
        self._words += decoded
        if self.addresses is None:
            return [0] * len(words)
        return self.addresses.ids([word.encode() for word in decoded])

    def score(self, state: Any, word: int) -> tuple[float, Any]:
        """Return log p of a word, and the state after it."""
        after = kenlm.State()
        score: float = self._model.BaseScore(state, self._words[word], after)
        return score * LOG_10, after
