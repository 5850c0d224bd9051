"""Language model look-ups, compiled: a hash table of known scores, and how to get the others.

Each state has a number, and the table caches (state, word) -> (score, next state). On a miss,
KenLM's own function is called, or Python if its address is not known. A small neural model answers
at once; for a large one the first answer is a guess, and the n-gram goes into a buffer (see
`language_model`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from moses_feature.cslm.feed_forward import log_prob
from moses_feature.decoder.kenlm import compiled_clean
from moses_feature.decoder.records import TREE, WITH_BASE, Contexts, Lookups
from moses_feature.moses.language_model import LOG_10
from moses_feature.runtime.arrays import Floats, Integers, Records
from moses_feature.runtime.compiled import compiled, inner
from moses_feature.runtime.hash_table import FACTOR, first_place, mixed, next_place

SLOTS_PER_ROW = 4


def new_contexts(room: int, widths: NDArray[np.int64], kinds: Integers) -> Contexts:
    """Return empty contexts with a capacity of `room` (a power of two)."""
    return Contexts(
        np.zeros((room, 1 + max(1, widths.max(initial=0))), dtype=np.int32),
        np.zeros(SLOTS_PER_ROW * room, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        widths,
        kinds,
    )


def copied(contexts: Contexts, room: int, count: int) -> Contexts:
    """Return contexts of capacity `room` with the first `count` contexts, numbered as before."""
    new = new_contexts(room, contexts.widths, contexts.kinds)
    new.rows[:count] = contexts.rows[:count]
    _renumber(new, count)
    return new


@compiled
def _renumber(contexts: Contexts, count: int) -> None:
    """Enter the first rows into the hash table, in order, so that each keeps its number."""
    for _ in range(count):
        number_last(contexts)


@compiled
def number_of(contexts: Contexts, row: NDArray[np.int32]) -> int:
    """Return the number of a context; there must be a free row."""
    contexts.rows[contexts.used[0]] = row
    return number_last(contexts)


@inner
def number_after(contexts: Contexts, before: int, word: int) -> int:
    """Return the number of a context extended by one word, -1 if no row is free.

    A base belongs to one word only: the new context has none.
    """
    count = contexts.used[0]
    if count == len(contexts.rows):
        return -1
    old, new = contexts.rows[before], contexts.rows[count]
    last = len(new) - 1
    kind, unused = contexts.kinds[old[0]], last - contexts.widths[old[0]]
    new[0] = old[0]
    for place in range(1, last):
        new[place] = old[place + 1] if place > unused and kind != TREE else 0
    if kind == WITH_BASE:
        new[unused + 1] = 0
    elif kind == TREE:
        new[last - 1] = before
    new[last] = word
    return number_last(contexts)


@inner
def number_with_base(contexts: Contexts, before: int, base: int) -> int:
    """Return the number of a context with another base, -1 if no row is free."""
    count = contexts.used[0]
    if count == len(contexts.rows):
        return -1
    old, new = contexts.rows[before], contexts.rows[count]
    for place in range(len(new)):
        new[place] = old[place]
    new[len(new) - contexts.widths[old[0]]] = base
    return number_last(contexts)


@inner
def number_last(contexts: Contexts) -> int:
    """Return the number of the row behind those in use; a new row is then in use."""
    count = contexts.used[0]
    row = contexts.rows[count]
    hashed = 0
    for place in range(len(row)):
        hashed = mixed(hashed, row[place])
    size = len(contexts.slots)
    slot = first_place(hashed, size)
    while contexts.slots[slot] != 0:
        known = contexts.slots[slot] - 1
        same = True
        for place in range(len(row)):
            same = same and contexts.rows[known, place] == row[place]
        if same:
            return known
        slot = next_place(slot, size)
    contexts.slots[slot] = count + 1
    contexts.used[0] += 1
    return count


@inner
def same_end(contexts: Contexts, one: int, other: int, words: int) -> bool:
    """Return whether the last `words` words of two tree nodes are the same."""
    last = contexts.rows.shape[1] - 1
    for _ in range(words):
        if one == other or (one < 0 and other < 0):
            return True
        if one < 0 or other < 0 or contexts.rows[one, last] != contexts.rows[other, last]:
            return False
        one, other = contexts.rows[one, last - 1], contexts.rows[other, last - 1]
    return True


@inner
def hash_of_end(contexts: Contexts, node: int, words: int) -> int:
    """Return a hash of the words that `same_end` compares."""
    last = contexts.rows.shape[1] - 1
    hashed = 0
    for _ in range(words):
        if node < 0:
            break
        hashed = mixed(hashed, contexts.rows[node, last])
        node = contexts.rows[node, last - 1]
    return hashed


END_OF_SENTENCE = 0
"""The number of the word `</s>`."""
WORD_BITS = 24
NOT_KNOWN = 1e30
RATE = 0.2
"""How far the guess for a word moves towards each new score: a moving average."""


def _call(typing_context: Any, address: Any, state: Any, word: Any) -> Any:  # noqa: ARG001
    """Compile a call of the C function at an address with two integers; it returns a double."""
    signature = types.float64(types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        kind = ir.FunctionType(ir.DoubleType(), [ir.IntType(64), ir.IntType(64)])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, arguments[1:])

    return signature, generate


_ask: Any = intrinsic(_call)
"""Takes the address of the function and two integers."""


def _call_kenlm(
    typing_context: Any,  # noqa: ARG001
    address: Any,  # noqa: ARG001
    model: Any,  # noqa: ARG001
    before: Any,  # noqa: ARG001
    word: Any,  # noqa: ARG001
    after: Any,  # noqa: ARG001
) -> Any:
    """Compile a call of KenLM's `BaseScore` at an address; states are passed by address."""
    number, short = types.int64, types.int32
    signature = types.float32(number, number, number, short, number)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        address, short = ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(ir.FloatType(), [address, address, short, address])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, arguments[1:])

    return signature, generate


_base_score: Any = intrinsic(_call_kenlm)
"""Takes the addresses of function, model and old state, the word, the address of the new state."""


@inner
def _key(state: int, word: int) -> int:
    """Return the key of a look-up in the table; never 0."""
    return (state << WORD_BITS) + word + 1


@inner
def score_word(lookups: Lookups, state: int, word: int) -> tuple[float, int]:
    """Return log p(word | state), a natural log, and the state after the word.

    On a miss the model is asked, or for a large neural model a guess is returned.
    """
    key = _key(state, word)
    slot = place_of_key(lookups.entries, key)
    if lookups.entries[slot].key == key:
        return lookups.entries[slot].score, lookups.entries[slot].following
    # A table more than 7/8 full would be slow; it grows only between two searches.
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
    """Return the slot of a key, or the free slot for it."""
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
    """Write an answer into a free slot of the table."""
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
    # The best guess is the last score of the word after the same word, else the word's average
    # score: the better the guess, the fewer passes over a stack.
    guess: float = lookups.pairs[_pair(lookups, state, word)]
    if guess == NOT_KNOWN:
        guess = lookups.guesses[lookups.contexts.rows[state >> 1, 0], word]
    # The guess is cached like a score, until the buffer is flushed.
    _remember(lookups, slot, _key(state, word), guess, following)
    if len(lookups.buffer) == 0:  # each asked at once: the plain twin in the tests
        lookups.buffered[0] = 1
        _ask(lookups.flush, state, word)
        score: float = lookups.results[0]
        return score
    if lookups.buffered[0] == len(lookups.buffer):
        flush(lookups)
    if lookups.buffered[0] < len(lookups.buffer):  # false if the flush has failed
        place = lookups.buffered[0]
        lookups.buffer[place, 0] = state
        lookups.buffer[place, 1] = word
        lookups.buffered[0] = place + 1
    lookups.guessed[0] += 1
    return guess


@inner
def _pair(lookups: Lookups, state: int, word: int) -> int:
    """Return the slot in `pairs` of a word and the word before it (or the base)."""
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
    """Score the n-grams in the buffer; return whether that succeeded."""
    done: bool = _ask(lookups.flush, 0, 0) >= 0.0
    return done


@compiled
def put_scores(lookups: Lookups, states: Integers, words: Integers, scores: Floats) -> None:
    """Replace guesses by scores, and update the averages for later guesses."""
    for place in range(len(states)):
        slot = place_of_key(lookups.entries, _key(states[place], words[place]))
        lookups.entries[slot].score = scores[place]
        lookups.pairs[_pair(lookups, states[place], words[place])] = scores[place]
        model = lookups.contexts.rows[states[place] >> 1, 0]
        guess = lookups.guesses[model, words[place]]
        lookups.guesses[model, words[place]] = guess + RATE * (scores[place] - guess)


@compiled
def copy_entries(old: Lookups, new: Lookups) -> None:
    """Copy all entries into an empty table."""
    for entry in old.entries:
        if entry.key != 0:
            slot = place_of_key(new.entries, entry.key)
            _remember(new, slot, entry.key, entry.score, entry.following)
