"""The operations of phrase options, and their scores by an operation sequence model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from moses_feature.decoder.language_model import LanguageModels
from moses_feature.decoder.operation_steps import (
    OPERATION_VALUES,
    UNKNOWN_WORD,
    Operations,
    Step,
    numbered_steps,
    steps_of,
)
from moses_feature.decoder.operations import PLACE_BITS, operate_alone
from moses_feature.runtime.arrays import Floats

Option = tuple[Sequence[bytes], Sequence[bytes], bool, bytes]
"""Source words, target words, whether they are copied, and the links."""


def steps_of_option(option: Option) -> list[Step]:
    """Return the operations of a phrase option; see `steps_of`."""
    source, target, is_copied, links = option
    places = (link.split(b"-") for link in links.split())
    words = [UNKNOWN_WORD] * len(target) if is_copied else target
    return steps_of(source, words, [(int(s), int(t)) for s, t in places])


class OptionOperations:
    """The operations of all options of a system that has a model of them.

    Args:
        options: the phrase options.
        model: the number of the model among `models`.
        columns: of its values among the features.
        models: the language models; the operations are added to their words.

    Attributes:
        begin: the state at the beginning of a sentence.
    """

    def __init__(
        self,
        options: Iterable[Option],
        model: int,
        columns: range,
        models: LanguageModels,
    ) -> None:
        steps = [steps_of_option(option) for option in options]
        found, words = numbered_steps(steps, models.words)
        models.add_words(words)
        self._operations = found._replace(model=model, values=len(columns))
        self._columns = columns
        self._alone = np.zeros((len(steps), OPERATION_VALUES))
        given = self._operations, models.empty[model], self._alone
        models.settled(partial(operate_alone, *given))
        models.keep_states()
        self.begin = int(models.begin[model]) << PLACE_BITS

    def weighted(self, weights: Floats) -> tuple[Operations, Floats]:
        """Return the operations under weights (all features,), and the options' (n,) estimates.

        An estimate is the weighted score of an option without any context.
        """
        of_values = np.zeros(OPERATION_VALUES)
        of_values[: len(self._columns)] = weights[self._columns.start : self._columns.stop]
        return self._operations._replace(weights=of_values), self._alone @ of_values
