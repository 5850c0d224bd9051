"""Phrases of word ids as packed arrays, and the trees of their distinct prefixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.vocabulary import END
from moses_feature.runtime.arrays import Floats, Integers


class PackedSequences:
    """Phrases of word ids, packed one after the other.

    Attributes:
        ids: (total words,) word ids, without end-of-phrase symbols.
        offsets: (n + 1,) where each phrase begins, and the end of the last.
    """

    def __init__(self, ids: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the lengths in words of the phrases in `rows`."""
        lengths: NDArray[np.int64] = self.offsets[rows + 1] - self.offsets[rows]
        return lengths

    def padded(
        self, rows: NDArray[np.integer], padding: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the phrases in `rows` as one array, and their lengths.

        Returns:
            ids (len(rows), longest + 1), `padding` after the end of each phrase (at least once),
            and lengths (len(rows),).
        """
        lengths = self.lengths(rows)
        width = int(lengths.max(initial=0)) + 1
        column = np.arange(width)
        inside = column < lengths[:, None]
        padded = np.full((len(rows), width), padding, dtype=np.int64)
        padded[inside] = self.ids[(self.offsets[rows][:, None] + column)[inside]]
        return padded, lengths

    def some(self, rows: NDArray[np.integer]) -> PackedSequences:
        """Return the phrases in `rows`."""
        lengths = self.lengths(rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return PackedSequences(self.ids[places], offsets)

    def last_word_first(self) -> PackedSequences:
        """Return the phrases, each with its words in the opposite order."""
        lengths = np.diff(self.offsets)
        mirrored = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, lengths)
        return PackedSequences(self.ids[mirrored - np.arange(len(self.ids))], self.offsets)

    @classmethod
    def pack(cls, phrases: Sequence[Sequence[int]]) -> PackedSequences:
        """Pack lists of word ids."""
        offsets = np.zeros(len(phrases) + 1, dtype=np.int64)
        np.cumsum([len(phrase) for phrase in phrases], out=offsets[1:])
        flat = [word for phrase in phrases for word in phrase]
        return cls(np.array(flat, dtype=np.uint32), offsets)


@dataclass(frozen=True)
class PrefixLevel:
    """The edges from the prefixes of t words (nodes) to those of t + 1 words.

    An edge with the word END ends a phrase; the others lead, in their order, to the nodes of the
    next level.

    Attributes:
        rows: (n,) the phrases that have a word, or their END, at this position.
        edge_of_row: (n,) the edge that each of these phrases takes.
        parent: (edges,) the node that each edge leaves, ascending.
        word: (edges,) the word of each edge, ascending for each parent.
    """

    rows: Integers
    edge_of_row: Integers
    parent: Integers
    word: Integers

    @property
    def grows(self) -> NDArray[np.bool_]:
        """(edges,) 1 where an edge leads on, 0 where it ends a phrase."""
        grows: NDArray[np.bool_] = self.word != END
        return grows


def prefix_levels(phrases: PackedSequences, roots: Integers) -> Iterator[PrefixLevel]:
    """Yield the levels of the prefix tree of phrases, END included.

    Phrases with the same root share their common prefixes. The roots, numbered from 0 without
    gaps, are the nodes of the first level.
    """
    lengths = np.diff(phrases.offsets)
    starts = phrases.offsets[:-1]
    # An edge is numbered node * stride + word while its level is built.
    stride = int(phrases.ids.max(initial=END)) + 1
    node = roots.astype(np.int64)
    rows = np.arange(len(phrases))
    for position in range(int(lengths.max(initial=-1)) + 1):
        # The phrases that have a word here, or END right behind their last word.
        rows = rows[lengths[rows] >= position]
        words = np.full(len(rows), END, dtype=np.int64)
        inside = lengths[rows] > position
        words[inside] = phrases.ids[starts[rows[inside]] + position]
        # Phrases with the same node and the same word share an edge; `unique` sorts the edges.
        keys, edge_of_row = np.unique(node[rows] * stride + words, return_inverse=True)
        level = PrefixLevel(rows, edge_of_row, keys // stride, keys % stride)
        # The edges that do not end a phrase become, in their order, the next level's nodes.
        node[rows] = (np.cumsum(level.grows) - 1)[edge_of_row]
        yield level


@dataclass(frozen=True)
class EdgesBelow:
    """The edges of a level below some roots.

    Attributes:
        parent: (edges,) the node that each leaves, counted from the first node below these roots.
        word: (edges,) the word of each.
        found: (edges,) where to write the value of each.
    """

    parent: Integers
    word: Integers
    found: Floats


ROOTS_TOGETHER = 64
"""Roots, which are source sentences, that a thread works on at a time."""


def values_along(
    sources: Sequence[Sequence[int]],
    levels: Sequence[PrefixLevel],
    offsets: Integers,
    score: Callable[[Sequence[Sequence[int]], list[EdgesBelow]], None],
    run: Callable[..., Iterable[Any]] = map,
) -> Floats:
    """Return a value of each word and END of phrases, phrase after phrase; one of each edge.

    Args:
        sources: the roots: ids of source sentences.
        levels: the levels of a prefix tree.
        offsets: (phrases + 1,) where the words of each phrase begin, END counted.
        score: given some sources and the steps below them, writes the values of the edges.
        run: has the interface of `map`, perhaps with threads.
    """
    of_edges = [np.empty(len(level.word)) for level in levels]

    def work(first: int) -> None:
        some = slice(first, min(first + ROOTS_TOGETHER, len(sources)))
        score(sources[some], _steps_below(levels, of_edges, some))

    for _ in run(work, range(0, len(sources), ROOTS_TOGETHER)):
        pass
    found = np.empty(offsets[-1])
    for position, (level, values) in enumerate(zip(levels, of_edges, strict=True)):
        found[offsets[level.rows] + position] = values[level.edge_of_row]
    return found


def _steps_below(
    levels: Sequence[PrefixLevel], of_edges: Sequence[Floats], roots: slice
) -> list[EdgesBelow]:
    """Return the edges below some roots, level by level as far as there are any.

    Nodes and edges are in the order of their roots.
    """
    steps = []
    first, last = roots.start, roots.stop
    for level, found in zip(levels, of_edges, strict=True):
        begin, end = np.searchsorted(level.parent, (first, last)).tolist()
        if begin == end:
            break  # the longest phrases are below other roots
        steps.append(
            EdgesBelow(level.parent[begin:end] - first, level.word[begin:end], found[begin:end])
        )
        first = int(np.count_nonzero(level.word[:begin]))  # an edge of END (0) has no node
        last = first + int(np.count_nonzero(level.word[begin:end]))
    return steps


def phrases_of(levels: Sequence[PrefixLevel]) -> list[tuple[int, ...]]:
    """Return the distinct phrases of a tree with one root, in the order in which they end."""
    phrases = []
    nodes: list[tuple[int, ...]] = [()]
    for level in levels:
        longer = []
        for parent, word in zip(level.parent.tolist(), level.word.tolist(), strict=True):
            if word == END:
                phrases.append(nodes[parent])
            else:
                longer.append((*nodes[parent], word))
        nodes = longer
    return phrases


Hashes = NDArray[np.uint64]


def phrase_hash(*sides: Sequence[bytes]) -> int:
    """Return a 64-bit hash of a phrase, or of both sides of a phrase pair."""
    text = b"\t".join(b" ".join(words) for words in sides)
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def mixed(hashes: Hashes, seed: int | Sequence[int]) -> Hashes:
    """Mix hashes with a seed (finaliser of SplitMix64), so that each seed gives another order."""
    mixed = hashes ^ np.random.default_rng(seed).integers(1 << 63, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
