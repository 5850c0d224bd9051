"""Language model look-ups, compiled: a hash table of known scores, and how to get the others.

Each state has a number, and the table caches (state, word) -> (score, next state). On a miss, an
n-gram model answers at once. For a neural model the first answer is a guess, and the n-gram goes
into a buffer (see `language_model`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.contexts import Contexts, number_after, number_row
from moses_feature.decoder.ngram_tables import NgramTables, score_ngram
from moses_feature.moses.language_model import LOG_10
from moses_feature.runtime.arrays import Floats, Floats32, Integers, Records
from moses_feature.runtime.compiled import compiled, constant, helper
from moses_feature.runtime.hash_table import FACTOR, first_place, mixed, next_place

END_OF_SENTENCE = constant(0)
"""The number of the word `</s>`."""
WORD_BITS = 24
NOT_KNOWN = 1e30
RATE = 0.2
"""How far the guess for a word moves towards each new score: a moving average."""

ENTRY = np.dtype(
    [
        ("key", "i8"),  # state and word, 0 for a free slot
        ("score", "f8"),  # natural log
        ("following", "i8"),  # the state after the word
    ]
)
"""A cached look-up; one record, so that reading it touches one or two cache lines."""


class NgramLookups(NamedTuple):
    """The look-ups of n-gram models, and what all models share.

    Attributes:
        entries: (slots,) `ENTRY` records, a hash table.
        used: (1,) slots in use.
        crowded: (1,) whether the table, the states or the contexts were full.
        ids: (models, words) the ids of the target words.
        rows, slots, count: states, as in `Contexts`.
        backoffs: (capacity, width) the backoff weights of each state.
        table_of: (models,) the place of each n-gram model in `tables`.
        tables: n-gram models.
    """

    entries: Records
    used: Integers
    crowded: Integers
    ids: NDArray[np.int32]
    rows: NDArray[np.int32]
    slots: NDArray[np.int32]
    count: Integers
    backoffs: Floats32
    table_of: Integers
    tables: tuple[NgramTables, ...]


class Lookups(NamedTuple):
    """The language model look-ups of compiled code.

    The number of a state is 2 * its row in `ngrams` for n-gram models, 2 * its row in `contexts` +
    1 for neural models.

    Attributes:
        ngrams: see `NgramLookups`.
        contexts: contexts of neural models.
        guesses: (models, words) log p of the target words: out of context at first, then a moving
            average of their scores.
        pairs: (PAIRS,) by a hash of model, word before and word: the last score of the pair, or
            `NOT_KNOWN`.
        buffer: (n, 2) states and words that wait to be scored.
        buffered: (1,) the number of n-grams in the buffer.
        guessed: (1,) answers that were guesses since it was last set to 0.
    """

    ngrams: NgramLookups
    contexts: Contexts
    guesses: Floats
    pairs: Floats
    buffer: Integers
    buffered: Integers
    guessed: Integers


@helper
def _key(state: int, word: int) -> int:
    """Return the key of a look-up in the table; never 0."""
    return (state << WORD_BITS) + word + 1


@helper
def known_score(entries: Records, state: int, word: int) -> tuple[float, int]:
    """Return log p(word | state), a natural log, and the state after the word.

    The state is below 0 if the table does not know them: then ask `new_score`.
    """
    key = _key(state, word)
    slot = place_of_key(entries, key)
    if entries[slot].key == key:
        return entries[slot].score, entries[slot].following
    return 0.0, -1


@helper
def new_score(lookups: Lookups, state: int, word: int) -> tuple[float, int]:
    """Return a score that the table does not have, and the state after the word.

    An n-gram model is asked; of a neural model a guess is returned.
    """
    if state & 1 == 1:
        return _guess(lookups, state, word)
    return _ngram_score(lookups.ngrams, state, word)


@helper(inline=False)
def score_word(lookups: Lookups, state: int, word: int) -> tuple[float, int]:
    """Return log p(word | state) and the state after the word; see `known_score`, `new_score`."""
    score, following = known_score(lookups.ngrams.entries, state, word)
    if following < 0:
        score, following = new_score(lookups, state, word)
    return score, following


@helper
def _has_room(used: Integers, entries: Records) -> bool:
    """Return whether the table is less than 7/8 full; it grows only between two searches."""
    return 8 * used[0] < 7 * len(entries)


@helper
def place_of_key(entries: Records, key: int) -> int:
    """Return the slot of a key, or the free slot for it."""
    place = first_place(key * FACTOR, len(entries))
    while entries[place].key != 0 and entries[place].key != key:
        place = next_place(place, len(entries))
    return place


@helper(inline=False)
def _ngram_score(ngrams: NgramLookups, state: int, word: int) -> tuple[float, int]:
    """Ask an n-gram model, and number the state after the word."""
    rows, backoffs, count = ngrams.rows, ngrams.backoffs, ngrams.count[0]
    if count == len(rows):
        ngrams.crowded[0] = 1
        return 0.0, state
    before, after = rows[state >> 1], rows[count]
    model = before[0]
    content, layout, is_trie, _ = ngrams.tables[ngrams.table_of[model]]
    given = before[2:], backoffs[state >> 1], before[1], ngrams.ids[model, word]
    to = after[2:], backoffs[count]
    log_10, length = score_ngram(content, layout, is_trie, *given, *to)
    after[0], after[1] = model, length
    score, following = np.float64(log_10) * LOG_10, 2 * number_row(rows, ngrams.slots, ngrams.count)
    if _has_room(ngrams.used, ngrams.entries):
        _remember(ngrams.entries, ngrams.used, _key(state, word), score, following)
    return score, following


@helper
def _remember(entries: Records, used: Integers, key: int, score: float, following: int) -> None:
    """Write an answer into a free slot of the table."""
    entry = entries[place_of_key(entries, key)]
    entry.key = key
    entry.score = score
    entry.following = following
    used[0] += 1


@helper(inline=False)
def _guess(lookups: Lookups, state: int, word: int) -> tuple[float, int]:
    """Return a guess of a neural model's score, and the state after the word."""
    contexts, entries, used = lookups.contexts, lookups.ngrams.entries, lookups.ngrams.used
    model = contexts.rows[state >> 1, 0]
    after = -1
    if _has_room(used, entries):
        after = number_after(contexts, state >> 1, lookups.ngrams.ids[model, word])
    if after < 0:
        lookups.ngrams.crowded[0] = 1
        return lookups.guesses[model, word], state
    # The best guess is the last score of the word after the same word, else the word's average
    # score: the better the guess, the fewer passes over a stack.
    guess = lookups.pairs[_pair(lookups, state, word)]
    if guess == NOT_KNOWN:
        guess = lookups.guesses[model, word]
    lookups.guessed[0] += 1
    place = lookups.buffered[0]
    if place < len(lookups.buffer):  # else it is asked again in the next pass
        # The guess is cached like a score, until the buffer is scored.
        _remember(entries, used, _key(state, word), guess, 2 * after + 1)
        lookups.buffer[place, 0] = state
        lookups.buffer[place, 1] = word
        lookups.buffered[0] = place + 1
    return guess, 2 * after + 1


@helper
def _pair(lookups: Lookups, state: int, word: int) -> int:
    """Return the slot in `pairs` of a word and the word before it."""
    row = lookups.contexts.rows[state >> 1]
    model = row[0]
    hashed = mixed(mixed(mixed(np.int64(0), model), row[-1]), lookups.ngrams.ids[model, word])
    return first_place(hashed, len(lookups.pairs))


@compiled
def put_scores(lookups: Lookups, states: Integers, words: Integers, scores: Floats) -> None:
    """Replace guesses by scores, and update the averages for later guesses."""
    entries = lookups.ngrams.entries
    for place in range(len(states)):
        slot = place_of_key(entries, _key(states[place], words[place]))
        entries[slot].score = scores[place]
        lookups.pairs[_pair(lookups, states[place], words[place])] = scores[place]
        model = lookups.contexts.rows[states[place] >> 1, 0]
        guess = lookups.guesses[model, words[place]]
        lookups.guesses[model, words[place]] = guess + RATE * (scores[place] - guess)


@compiled
def copy_entries(old: Records, new: Records) -> None:
    """Copy all entries into an empty table."""
    for entry in old:
        if entry.key != 0:
            new[place_of_key(new, entry.key)] = entry
