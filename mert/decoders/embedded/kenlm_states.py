"""States of KenLM as Python objects, where compiled code cannot ask the models by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mert.decoders.embedded.kenlm_model import KenlmModel


class KenlmStates:
    """Numbered states of some models.

    Args:
        models: by their numbers.
    """

    def __init__(self, models: Mapping[int, KenlmModel]) -> None:
        self._models = models
        self._states: list[tuple[int, Any]] = []
        self._numbers: dict[tuple[int, Any], int] = {}

    def __len__(self) -> int:
        return len(self._states)

    def number(self, model: int, state: Any) -> int:
        """Return the number of a state of a model."""
        key = model, state
        number = self._numbers.setdefault(key, len(self._states))
        if number == len(self._states):
            self._states.append(key)
        return number

    def score(self, number: int, word: int) -> tuple[float, int]:
        """Return log p of a word after a state, a natural log, and the state after it."""
        model, state = self._states[number]
        score, after = self._models[model].score(state, word)
        return score, self.number(model, after)

    def forget(self, first: int) -> None:
        """Forget the states from a number on."""
        for key in self._states[first:]:
            del self._numbers[key]
        del self._states[first:]
