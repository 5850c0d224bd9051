"""Look-ups of language models, compiled: a table of what is known, and how the rest is found out.

A model scores one word after one state. Each state has a number, and a hash table remembers
(state, word) -> (score, next state). What is not in it is asked of KenLM's own function, or where
its address is not known through Python. A small neural model answers at once; a large one is asked
many n-grams at a time: a guess is the answer at first, and the n-gram goes into a buffer (see
`language_model`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from moses_feature.cslm.kernels import log_prob
from moses_feature.decoder.contexts import number_after, number_last
from moses_feature.decoder.kenlm import compiled_clean
from moses_feature.decoder.records import WITH_BASE, Lookups
from moses_feature.moses.language_model import LOG_10
from moses_feature.runtime.arrays import Floats, Integers, Records
from moses_feature.runtime.compiled import compiled, inner
from moses_feature.runtime.hash_table import FACTOR, first_place, mixed, next_place

END_OF_SENTENCE = 0
"""The number of the word `</s>`."""
WORD_BITS = 24
NOT_KNOWN = 1e30
RATE = 0.2
"""By which the guess for a word moves to each new score of it."""


def _call(typing_context: Any, address: Any, state: Any, word: Any) -> Any:  # noqa: ARG001
    """Compile a call of the C function at an address with two integers; it returns a float."""
    signature = types.float64(types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        kind = ir.FunctionType(ir.DoubleType(), [ir.IntType(64), ir.IntType(64)])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, arguments[1:])

    return signature, generate


_ask: Any = intrinsic(_call)
"""Takes the address of the function, and the integers."""


def _call_kenlm(
    typing_context: Any,  # noqa: ARG001
    address: Any,  # noqa: ARG001
    model: Any,  # noqa: ARG001
    before: Any,  # noqa: ARG001
    word: Any,  # noqa: ARG001
    after: Any,  # noqa: ARG001
) -> Any:
    """Compile a call of KenLM's `BaseScore` at an address; states are addresses, too."""
    number, short = types.int64, types.int32
    signature = types.float32(number, number, number, short, number)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        address, short = ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(ir.FloatType(), [address, address, short, address])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, arguments[1:])

    return signature, generate


_base_score: Any = intrinsic(_call_kenlm)
"""Takes the address of the function, the model, the state before, the word, the state after."""


@inner
def _key(state: int, word: int) -> int:
    """Return what a look-up is remembered by; never 0."""
    return (state << WORD_BITS) + word + 1


@inner
def score_word(lookups: Lookups, state: int, word: int) -> tuple[float, int]:
    """Return log p(word | state), a natural log, and the state after the word.

    What is not remembered is asked of the model, or guessed for a large neural one.
    """
    key = _key(state, word)
    slot = place_of_key(lookups.entries, key)
    if lookups.entries[slot].key == key:
        return lookups.entries[slot].score, lookups.entries[slot].following
    # A table more than 7/8 full would be slow; it grows between two searches.
    room = 8 * lookups.used[0] < 7 * len(lookups.entries)
    if state & 1 == 1:
        if not room:
            lookups.crowded[0] = 1
            return lookups.guesses[lookups.contexts.rows[state >> 1, 0], word], state
        return _neural_score(lookups, state, word, slot)
    if len(lookups.kenlm_scores) > 0:
        score, following = _kenlm_score(lookups, state, word)
    else:
        score = _ask(lookups.ask, state, word)
        following = lookups.answer[0]
    if room:
        _remember(lookups, slot, key, score, following)
    return score, following


@inner
def place_of_key(entries: Records, key: int) -> int:
    """Return where a key stands among the entries, or where it may be put."""
    place = first_place(key * FACTOR, len(entries))
    while entries[place].key != 0 and entries[place].key != key:
        place = next_place(place, len(entries))
    return place


@inner
def _kenlm_score(lookups: Lookups, state: int, word: int) -> tuple[float, int]:
    """Ask KenLM, and number the state after the word."""
    states = lookups.states
    count = states.used[0]
    if count == len(states.rows):
        lookups.crowded[0] = 1
        return 0.0, state
    before, after = states.rows[state >> 1], states.rows[count]
    model = before[0]
    score = _base_score(
        lookups.kenlm_scores[model],
        lookups.kenlm_models[model],
        before.ctypes.data + before.itemsize,
        lookups.ids[model, word],
        after.ctypes.data + after.itemsize,
    )
    after[0] = model
    compiled_clean(after[1:])
    return np.float64(score) * LOG_10, 2 * number_last(states)


@inner
def _remember(lookups: Lookups, slot: int, key: int, score: float, following: int) -> None:
    """Put an answer into a free place of the table."""
    entry = lookups.entries[slot]
    entry.key = key
    entry.score = score
    entry.following = following
    lookups.used[0] += 1


@inner
def _neural_score(lookups: Lookups, state: int, word: int, slot: int) -> tuple[float, int]:
    """Return the score of a neural model, or a guess, and the state after the word."""
    contexts = lookups.contexts
    context = contexts.rows[state >> 1]
    model = context[0]
    after = number_after(contexts, state >> 1, lookups.ids[model, word])
    if after < 0:
        lookups.crowded[0] = 1
        return lookups.guesses[model, word], state
    following = 2 * after + 1
    network = lookups.networks[model]
    if network.columns > 0:
        last = context[len(context) - network.columns :]
        score = np.float64(log_prob(network, last, lookups.ids[model, word]))
        _remember(lookups, slot, _key(state, word), score, following)
        lookups.scored[0] += 1
        return score, following
    return _guess(lookups, state, word, slot, following), following


@inner
def _guess(lookups: Lookups, state: int, word: int, slot: int, following: int) -> float:
    """Return a guess, or the score if there is no buffer."""
    # The best guess is what the word scored last after the same word, else what it scores in the
    # mean: the better the guess, the fewer passes over a stack.
    guess: float = lookups.pairs[_pair(lookups, state, word)]
    if guess == NOT_KNOWN:
        guess = lookups.guesses[lookups.contexts.rows[state >> 1, 0], word]
    # The guess is remembered as if it were the score, until the buffer is flushed.
    _remember(lookups, slot, _key(state, word), guess, following)
    if len(lookups.buffer) == 0:  # asked at once, one by one: the plain twin in the tests
        lookups.buffered[0] = 1
        _ask(lookups.flush, state, word)
        score: float = lookups.results[0]
        return score
    if lookups.buffered[0] == len(lookups.buffer):
        flush(lookups)
    if lookups.buffered[0] < len(lookups.buffer):  # else the flush has failed
        place = lookups.buffered[0]
        lookups.buffer[place, 0] = state
        lookups.buffer[place, 1] = word
        lookups.buffered[0] = place + 1
    lookups.guessed[0] += 1
    return guess


@inner
def _pair(lookups: Lookups, state: int, word: int) -> int:
    """Return the place of a word and the one before it, or the base, among the pairs."""
    contexts = lookups.contexts
    row = contexts.rows[state >> 1]
    model = row[0]
    before = row[-1]
    if contexts.kinds[model] == WITH_BASE:
        before = row[len(row) - contexts.widths[model]]
    hashed = mixed(mixed(mixed(0, model), before), lookups.ids[model, word])
    return first_place(hashed, len(lookups.pairs))


@inner
def flush(lookups: Lookups) -> bool:
    """Score what is in the buffer; tell whether that was possible."""
    done: bool = _ask(lookups.flush, 0, 0) >= 0.0
    return done


@compiled
def put_scores(lookups: Lookups, states: Integers, words: Integers, scores: Floats) -> None:
    """Write scores in the place of guesses, and learn to guess."""
    for place in range(len(states)):
        slot = place_of_key(lookups.entries, _key(states[place], words[place]))
        lookups.entries[slot].score = scores[place]
        lookups.pairs[_pair(lookups, states[place], words[place])] = scores[place]
        model = lookups.contexts.rows[states[place] >> 1, 0]
        guess = lookups.guesses[model, words[place]]
        lookups.guesses[model, words[place]] = guess + RATE * (scores[place] - guess)


@compiled
def copy_entries(old: Lookups, new: Lookups) -> None:
    """Put what a table remembers into an empty one."""
    for entry in old.entries:
        if entry.key != 0:
            slot = place_of_key(new.entries, entry.key)
            _remember(new, slot, entry.key, entry.score, entry.following)
