"""Look-ups in the n-gram tables of KenLM's binary files, compiled.

Follows KenLM's `lm/search_hashed.hh`, `lm/trie.cc`, `lm/quantize.hh`, `lm/bhiksha.hh` and
`GenericModel::FullScore` of `lm/model.cc`: scores and states are the same to the last bit. An
n-gram is looked up from its last word backwards. A probing file has a hash table for each order; a
trie has, for each order, the entries sorted by the n-gram without its first word, packed into bits.

A damaged file may give wrong numbers, but no look-up leaves the arrays or runs for ever.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import INT_1, compiled, constant, helper

U, F = np.uint64, np.float32
WORD = 32
"""Bits of an element of a file's content."""
WORD_SIZE = constant(3)
"""Elements of a word in the hash table of words: its key, of two elements, and its number."""
NO_EXTENSION = U(0x80000000)
"""The bits of a backoff weight of -0.0: no longer n-gram begins with this one (`lm/blank.hh`)."""
SIGN = U(0x80000000)

OFFSET, ENTRIES, SIZE, WORD_BITS, PROB_BITS, BACKOFF_BITS, NEXT_BITS = range(7)
PROB_TABLE, BACKOFF_TABLE, POINTERS, POINTER_COUNT = range(7, 11)
COLUMNS = 11


class NgramTables(NamedTuple):
    """The n-grams of a model.

    Attributes:
        content: the file, in elements of 32 bits.
        layout: (order, COLUMNS) where the n-grams of each order are and how they are packed.
            OFFSET, PROB_TABLE, BACKOFF_TABLE and POINTERS are elements of `content`, but OFFSET of
            the longer n-grams of a trie is a bit. ENTRIES are the places of a hash table, or the
            entries of a trie; SIZE is that of an entry, in elements, or of such a trie in bits.
        is_trie: whether it is a trie; else hash tables.
        words: the number of words, <unk> counted.
    """

    content: NDArray[np.uint32]
    layout: Integers
    is_trie: bool
    words: int


@helper
def _bits(content: NDArray[np.uint32], at: int, count: int) -> np.uint64:
    """Return up to 57 bits that begin at a bit of the content."""
    place, shift = at >> 5, at & 31
    value = (U(content[place]) | U(content[place + 1]) << U(WORD)) >> U(shift)
    if shift + count > 2 * WORD:
        value |= U(content[place + 2]) << U(2 * WORD - shift)
    return value & ((U(1) << U(count)) - U(1))


@helper
def _float_of(bits: np.uint64) -> np.float32:
    return np.uint32(bits).view(F)  # type: ignore[no-any-return]


@helper
def _key_at(content: NDArray[np.uint32], place: int) -> np.uint64:
    return U(content[place]) | U(content[place + 1]) << U(WORD)  # type: ignore[no-any-return]


@helper
def combined(key: np.uint64, word: int) -> np.uint64:
    """Return the key of an n-gram, given that of the n-gram without its first word."""
    return key * U(8978948897894561157) ^ (U(1) + U(word)) * U(17894857484156487943)


@helper
def place_in(content: NDArray[np.uint32], begin: int, places: int, width: int, key: int) -> int:
    """Return the element where the entry of a key begins in a hash table, or -1.

    Args:
        content: see `NgramTables`.
        begin: where the table begins.
        places: its places.
        width: elements of an entry, which begins with its key; 0 for a free place.
        key: the key.
    """
    place = np.int64(U(key) % U(places))
    for _ in range(places):
        at = begin + place * width
        found = _key_at(content, at)
        if found == U(key):
            return at
        if found == U(0):
            break
        place += 1
        if place == places:
            place = np.int64(0)
    return -1


@helper
def _in_trie(
    content: NDArray[np.uint32], layout: Integers, n: int, word: int, begin: int, end: int
) -> int:
    """Return the entry of a word among entries that are sorted by their words, or -1."""
    begin_bits, size, word_bits = layout[n, OFFSET], layout[n, SIZE], layout[n, WORD_BITS]
    below, above = int(max(begin, 0)) - 1, int(min(end, layout[n, ENTRIES]))
    low, high = np.int64(0), (np.int64(1) << word_bits) - 1
    while above - below > 1 and low <= word <= high:  # interpolation search
        pivot = below + 1 + (word - low) * (above - below - 2) // (high - low + 1)
        found = np.int64(_bits(content, begin_bits + pivot * size, word_bits))
        if found == word:
            return np.int64(pivot)
        if found < word:
            below, low = pivot, found
        else:
            above, high = pivot, found
    return np.int64(-1)


@helper
def _pointer(content: NDArray[np.uint32], layout: Integers, n: int, entry: int) -> int:
    """Return where the longer n-grams of a trie's entry begin in the next order."""
    bits = layout[n, NEXT_BITS]
    at = layout[n, OFFSET] + (entry + 1) * layout[n, SIZE] - bits
    value = np.int64(_bits(content, at, bits))
    # The high bits may be in an array: they follow from the number of the entry.
    low, high = np.int64(0), layout[n, POINTER_COUNT]
    while high - low > 1:
        middle = (low + high) >> 1
        if _key_at(content, layout[n, POINTERS] + 2 * middle) <= U(entry):
            low = middle
        else:
            high = middle
    return value | low << bits


@helper
def _value(content: NDArray[np.uint32], at: int, count: int, table: int) -> np.uint64:
    """Return the bits of a float: those at a place, or by their number in a table of floats."""
    bits = _bits(content, at, count)
    return U(content[table + np.int64(bits)]) if table > 0 else bits


class Found(NamedTuple):
    """An n-gram that was looked up.

    Attributes:
        is_there: whether the model has it.
        prob: log10 p of its last word.
        backoff: its backoff weight, 0 if it is of the highest order.
        is_end: whether no longer n-gram ends in it.
        key: its key in hash tables.
        begin, end: where the n-grams are, in a trie, that have one word more in front.
    """

    is_there: bool
    prob: np.float32
    backoff: np.float32
    is_end: bool
    key: np.uint64
    begin: int
    end: int


@helper
def _unigram(content: NDArray[np.uint32], layout: Integers, is_trie: bool, word: int) -> Found:
    at = layout[0, OFFSET] + np.int64(word) * layout[0, SIZE]
    bits, backoff = U(content[at]), _float_of(U(content[at + 1]))
    if is_trie:
        begin, end = np.int64(_key_at(content, at + 2)), np.int64(_key_at(content, at + 6))
        return Found(True, _float_of(bits), backoff, begin == end, U(0), begin, end)
    # In a hash table, the sign says whether a longer n-gram ends in this one.
    is_end, key, none = bits & SIGN != U(0), U(word), np.int64(0)
    return Found(True, _float_of(bits | SIGN), backoff, is_end, key, none, none)


@helper
def _longer(
    content: NDArray[np.uint32], layout: Integers, is_trie: bool, found: Found, n: int, word: int
) -> Found:
    """Return the n-gram of n words and one more, which stands in front."""
    longest, none = n == len(layout) - 1, np.int64(0)
    at, is_end, begin, end = none, True, none, none
    bits, backoff_bits, key = U(0), U(0), U(0)
    if is_trie:
        entry = _in_trie(content, layout, n, word, found.begin, found.end)
        is_there = entry >= 0
        if is_there:
            at = layout[n, OFFSET] + entry * layout[n, SIZE] + layout[n, WORD_BITS]
            first, second = layout[n, PROB_BITS], layout[n, BACKOFF_BITS]
            in_tables = layout[n, PROB_TABLE] > 0  # then the backoff weight comes first
            bits = _value(content, at + (second if in_tables else 0), first, layout[n, PROB_TABLE])
            if not longest:
                at += 0 if in_tables else first
                backoff_bits = _value(content, at, second, layout[n, BACKOFF_TABLE])
                begin = _pointer(content, layout, n, entry)
                end = _pointer(content, layout, n, entry + 1)
                is_end = begin == end
            bits |= U(0) if in_tables else SIGN
    else:
        key = combined(found.key, word)
        at = place_in(content, layout[n, OFFSET], layout[n, ENTRIES], layout[n, SIZE], key)
        is_there = at >= 0
        if is_there:
            is_end = U(content[at + 2]) & SIGN != U(0)
            bits = U(content[at + 2]) | SIGN
            backoff_bits = U(0) if longest else U(content[at + 3])
    return Found(is_there, _float_of(bits), _float_of(backoff_bits), is_end, key, begin, end)


@helper
def _extends(backoff: np.float32) -> bool:
    """Return whether a longer n-gram may begin with one of this backoff weight."""
    return U(F(backoff).view(np.uint32)) != NO_EXTENSION


@helper
def score_ngram(
    content: NDArray[np.uint32],
    layout: Integers,
    is_trie: bool,
    context: NDArray[np.int32],
    backoffs: Floats32,
    length: int,
    word: int,
    after: NDArray[np.int32],
    backoffs_after: Floats32,
) -> tuple[np.float32, int]:
    """Return log10 p of a word after a context, and the length of the state after it.

    Args:
        content: see `NgramTables`.
        layout: see `NgramTables`.
        is_trie: see `NgramTables`.
        context: (order - 1 or more,) words, the nearest first.
        backoffs: (order - 1 or more,) backoff weights of the n-grams that the first words make.
        length: the words of the context that matter.
        word: the word, below the number of words.
        after: like `context`; receives the words of the state after it, 0 behind its length.
        backoffs_after: like `backoffs`; receives their backoff weights.
    """
    order = len(layout)
    found = _unigram(content, layout, is_trie, word)
    prob, matched = found.prob, INT_1
    backoffs_after[0] = found.backoff
    used = 1 if _extends(found.backoff) else 0
    # Longer n-grams, as long as there are some.
    while matched <= length and matched < order and not found.is_end:
        found = _longer(content, layout, is_trie, found, matched, context[matched - 1])
        if not found.is_there:
            break
        prob, matched = found.prob, matched + 1
        if matched < order:
            backoffs_after[matched - 1] = found.backoff
            used = matched if _extends(found.backoff) else used
    # Backoff weights of the part of the context that was not found with the word.
    for place in range(matched - 1, length):
        prob += backoffs[place]
    after[0] = word if used > 0 else 0
    for place in range(1, len(after)):
        after[place] = context[place - 1] if place < used else 0
    return prob, used


MURMUR = U(0xC6A4A7935BD1E995)


@helper
def murmur(text: NDArray[np.uint8], begin: int, end: int) -> np.uint64:
    """Return the hash by which KenLM finds words (MurmurHash64A, `util/murmur_hash.cc`)."""
    length = end - begin
    hashed = U(length) * MURMUR
    whole = begin + (length & ~7)
    for place in range(begin, whole, 8):
        value = U(0)
        for byte in range(8):
            value |= U(text[place + byte]) << U(8 * byte)
        value *= MURMUR
        value ^= value >> U(47)
        value *= MURMUR
        hashed = (hashed ^ value) * MURMUR
    if length & 7:
        for place in range(whole, end):
            hashed ^= U(text[place]) << U(8 * (place - whole))
        hashed *= MURMUR
    hashed ^= hashed >> U(47)
    hashed *= MURMUR
    return hashed ^ hashed >> U(47)


@compiled
def hashes_of(text: NDArray[np.uint8], offsets: Integers) -> NDArray[np.uint64]:
    """Return the hashes (n,) of words that stand one behind the other; (n + 1,) offsets."""
    found = np.empty(len(offsets) - 1, dtype=np.uint64)
    for word in range(len(found)):
        found[word] = murmur(text, offsets[word], offsets[word + 1])
    return found


@compiled
def ids_in_table(
    content: NDArray[np.uint32], begin: int, places: int, hashes: NDArray[np.uint64]
) -> NDArray[np.int32]:
    """Return the ids (n,) of words in a hash table of words; 0 for unknown ones."""
    found = np.zeros(len(hashes), dtype=np.int32)
    for word in range(len(hashes)):
        at = place_in(content, begin, places, WORD_SIZE, hashes[word])
        if at >= 0:
            found[word] = content[at + 2]
    return found


@compiled
def score_once(
    tables: NgramTables, context: NDArray[np.int32], backoffs: Floats32, length: int, word: int
) -> tuple[float, NDArray[np.int32], Floats32, int]:
    """Return log10 p of a word, and the state after it: words, backoff weights, length."""
    after, backoffs_after = np.zeros_like(context), np.zeros_like(backoffs)
    content, layout, is_trie, _ = tables
    given = context, backoffs, length, word, after, backoffs_after
    prob, used = score_ngram(content, layout, is_trie, *given)
    return float(prob), after, backoffs_after, used
