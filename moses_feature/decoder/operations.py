"""The operation sequence model (Durrani et al. 2011, 2013), as Moses scores it; compiled.

A translation is a sequence of operations: a group of linked words (a cept) is translated, a word of
one side is inserted or deleted, a gap is left in the source, a jump leads back into a gap or behind
all that is covered. A language model scores them. Follows `moses/FF/OSM-Feature/osmHyp.cpp`.

Moses keeps the gaps in the state of a hypothesis. They follow from its coverage: a gap begins where
covered words end, left of the last covered word; but not at the place behind the last operation, as
long as no operation has left it. So a state is that of the language model, and this place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from moses_feature.decoder.language_model import LanguageModels
from moses_feature.decoder.lookups import Lookups, score_word
from moses_feature.decoder.operation_steps import (
    CONTINUED,
    DELETED,
    INSERT_GAP,
    INSERTED,
    NO_OPERATION,
    OPERATION_VALUES,
    UNKNOWN_WORD,
    Operations,
    OperationStep,
    numbered_steps,
    steps_of,
    way,
)
from moses_feature.decoder.options import Options
from moses_feature.moses.language_model import LOG_10
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.compiled import INT_0, compiled, helper

PLACE_BITS = 20
"""A state of an operation sequence model has a place in these bits, behind its own state."""
_way: Any = helper(inline=False)(way)


class Operated(NamedTuple):
    """What a phrase adds.

    Attributes:
        values: the five of Moses: log10 p of the operations (no natural log), the words between
            the first gap and each cept, gaps, open gaps at each operation, and inserted words.
        state: the state behind it.
    """

    values: tuple[float, float, float, float, float]
    state: int


@helper(inline=False)
def operate(
    lookups: Lookups,
    operations: Operations,
    option: int,
    start: int,
    gap: int,
    mask: int,
    state: int,
) -> Operated:
    """Return what a phrase adds behind a hypothesis.

    Args:
        lookups: the language model look-ups.
        operations: of all options.
        option: the phrase pair.
        start: its first source word.
        gap: the first source word that the hypothesis does not cover.
        mask: which words it covers from there on, as bits.
        state: the state of the hypothesis.
    """
    end = gap  # behind the last covered word
    while mask >> (end - gap) != 0:
        end += 1
    at, state = state & ((1 << PLACE_BITS) - 1), state >> PLACE_BITS
    total, width, gaps, open_gaps, inserted = 0.0, 0.0, 0.0, 0.0, 0.0
    for step in range(operations.offsets[option], operations.offsets[option + 1]):
        place, kind = start + operations.steps[step, 0], operations.steps[step, 1]
        if kind != DELETED:
            way = _way(gap, mask, end, at, place)
            for operation in way:
                if operation != NO_OPERATION:
                    score, state = score_word(lookups, state, operations.words[operation])
                    total += score
            gaps += way[0] == INSERT_GAP or way[3] == INSERT_GAP
            width += place - gap if kind != CONTINUED else 0
            inserted += kind == INSERTED
            mask |= 1 << (place - gap)
            while mask & 1 == 1:
                mask >>= 1
                gap += 1
            at = place + 1
            end = max(end, at)
            is_left = at >= end or _is_covered(gap, mask, at)
            open_gaps += _gaps(gap, mask, end) - (0 if is_left else 1)
        score, state = score_word(lookups, state, operations.steps[step, 2])
        total += score
    values = total / LOG_10, width, gaps, open_gaps, inserted
    return Operated(values, state << PLACE_BITS | at)


@helper(inline=False)
def _is_covered(gap: int, mask: int, place: int) -> bool:
    return place < gap or mask >> (place - gap) & 1 == 1


@helper(inline=False)
def _gaps(gap: int, mask: int, end: int) -> int:
    """Return how many runs of words that are not covered there are before `end`."""
    count = 0
    for place in range(gap, end):
        if not _is_covered(gap, mask, place) and _is_covered(gap, mask, place - 1):
            count += 1
    return count


@helper(inline=False)
def weighted_operations(
    lookups: Lookups, options: Options, option: int, start: int, gap: int, mask: int, state: int
) -> tuple[float, int]:
    """Return the weighted score of a phrase behind a hypothesis, and the next state."""
    found = operate(lookups, options.operations, option, start, gap, mask, state)
    score = 0.0
    for value in range(OPERATION_VALUES):
        score += options.operations.weights[value] * found.values[value]
    return score, found.state


@compiled
def operate_alone(operations: Operations, state: int, values: Floats, lookups: Lookups) -> None:
    """Write the values (options, 5) of all options by themselves, from a state without context."""
    for option in range(len(values)):
        found = operate(lookups, operations, option, INT_0, INT_0, INT_0, state << PLACE_BITS)
        for value in range(OPERATION_VALUES):
            values[option, value] = found.values[value]


Option = tuple[Sequence[bytes], Sequence[bytes], bool, bytes]
"""Source words, target words, whether they are copied, and the links."""


def steps_of_option(option: Option) -> list[OperationStep]:
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
