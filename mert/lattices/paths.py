"""The best path through each lattice, and the upper envelope of all paths along a line; compiled.

Along a line w + γ d the score of a path is linear in γ. The envelope of the paths that reach a node
is that of the envelopes of its edges' tails, each moved by what the edge adds, so that it is found
node by node (Macherey, Och, Thayer and Uszkoreit 2008, figure 3). A line of an envelope knows the
edge that it came by and the line before it, and with them its words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mert.lattices.lattice import BEGINNING, Lattices
from moses_feature.arrays import Floats, Integers, Record, Records
from moses_feature.compiled import compiler
from moses_feature.grown import grown

LINE = np.dtype(
    [
        ("height", "f8"),  # score of the path at γ = 0
        ("slope", "f8"),  # by how much it grows with γ
        ("begin", "f8"),  # from which γ on it is the best one
        ("edge", "i8"),  # the last edge of the path, `BEGINNING` for none
        ("before", "i8"),  # the line before that edge
    ]
)

_compiled = compiler(nogil=True)
_part = compiler(entry=False, nogil=True)
_inline = compiler(entry=False, nogil=True, forceinline=True, _nrt=False)


class Translations(NamedTuple):
    """Translations of all sentences, sentence after sentence.

    Attributes:
        begins: (n,) the γ from which on each is the best one of its sentence.
        of_sentence: (sentences + 1,) where those of each sentence begin, and the end.
        word_offsets: (n + 1,) where the words of each begin, and the end.
        words: their numbers.
    """

    begins: Floats
    of_sentence: Integers
    word_offsets: Integers
    words: NDArray[np.int32]


@_compiled
def best_translations(lattices: Lattices, scores: Floats) -> Translations:
    """Return the best translation of each sentence; of equally good ones the first.

    Args:
        lattices: of the sentences.
        scores: (edges,) of the edges.
    """
    best_edge = np.empty(len(lattices.nodes) - 1, np.int64)
    _best_scores(lattices, scores, best_edge)
    count = len(lattices.sentences) - 1
    word_offsets = np.zeros(count + 1, np.int64)
    words = np.empty(64 * count, np.int32)
    for sentence in range(count):
        edge = best_edge[lattices.sentences[sentence + 1] - 1]
        used = end = word_offsets[sentence]
        while True:
            words, end = _add_words(lattices, edge, words, end)
            if lattices.tails[edge] == BEGINNING:
                break
            edge = best_edge[lattices.tails[edge]]
        words[used:end] = words[used:end][::-1].copy()
        word_offsets[sentence + 1] = end
    return Translations(
        np.full(count, -np.inf), np.arange(count + 1), word_offsets, words[: word_offsets[-1]]
    )


@_compiled
def best_scores(lattices: Lattices, scores: Floats) -> Floats:
    """Return the score (sentences,) of the best path of each sentence; `scores` (edges,)."""
    best_edge = np.empty(len(lattices.nodes) - 1, np.int64)
    best = _best_scores(lattices, scores, best_edge)
    return best[lattices.sentences[1:] - 1]


@_part
def _best_scores(lattices: Lattices, scores: Floats, best_edge: Integers) -> Floats:
    """Return the best score (nodes,) at each node; note the edge that it came by."""
    best = np.full(len(best_edge), -np.inf)
    for node in range(len(best)):
        for edge in range(lattices.nodes[node], lattices.nodes[node + 1]):
            tail = lattices.tails[edge]
            score = scores[edge] + (0.0 if tail == BEGINNING else best[tail])
            if score > best[node]:
                best[node] = score
                best_edge[node] = edge
    return best


@_compiled
def envelopes(
    lattices: Lattices, scores: Floats, slopes: Floats, lowest: float, highest: float
) -> Translations:
    """Follow the best translation of each sentence along a line.

    Args:
        lattices: of the sentences.
        scores: (edges,) at γ = 0.
        slopes: (edges,) by how much they grow with γ.
        lowest: the γ from which on the line is followed.
        highest: up to which it is.
    """
    count = len(lattices.sentences) - 1
    lines, halves = np.empty(4096, LINE), np.empty(512, LINE)
    of_sentence = np.zeros(count + 1, np.int64)
    begins, word_offsets = np.empty(16 * count), np.zeros(16 * count + 1, np.int64)
    words = np.empty(256 * count, np.int32)
    found = 0
    for sentence in range(count):
        lines, halves, first_line, end_line = _envelopes_of_nodes(
            sentence, lattices, scores, slopes, lowest, highest, lines, halves
        )
        for line in range(first_line, end_line):
            if found == len(begins):
                begins = grown(begins, 2 * found)
                word_offsets = grown(word_offsets, 2 * found + 1)
            begins[found] = lines[line].begin
            start = end = word_offsets[found]
            while lines[line].edge != BEGINNING:
                words, end = _add_words(lattices, lines[line].edge, words, end)
                line = lines[line].before
            words[start:end] = words[start:end][::-1].copy()
            found += 1
            word_offsets[found] = end
        of_sentence[sentence + 1] = found
    return Translations(
        begins[:found], of_sentence, word_offsets[: found + 1], words[: word_offsets[found]]
    )


@_part
def _envelopes_of_nodes(
    sentence: int,
    lattices: Lattices,
    scores: Floats,
    slopes: Floats,
    lowest: float,
    highest: float,
    lines: Records,
    halves: Records,
) -> tuple[Records, Records, int, int]:
    """Write the envelopes at the nodes of a sentence, one after the other.

    Returns:
        the lines, and what merges them, or larger ones; where the lines of the last node begin and
        end.
    """
    first, end = lattices.sentences[sentence], lattices.sentences[sentence + 1]
    first_line = np.empty(1 + end - first, np.int64)
    first_line[0] = 1
    lines[0].height = lines[0].slope = 0.0
    lines[0].edge = BEGINNING
    for node in range(first, end):
        used = first_line[node - first]
        most = _most_lines(lattices, node, first, first_line)
        if used + most > len(lines):
            lines = grown(lines, 2 * (used + most))
        if 2 * most > len(halves):
            halves = np.empty(4 * most, LINE)
        size = _envelope_at(
            node,
            first,
            lattices,
            scores,
            slopes,
            lowest,
            highest,
            first_line,
            lines,
            used,
            halves,
        )
        first_line[node - first + 1] = used + size
    return lines, halves, first_line[end - first - 1], first_line[end - first]


@_inline
def _most_lines(lattices: Lattices, node: int, first: int, first_line: Integers) -> int:
    """Return how many lines the envelope at a node has at most; see `_envelope_at`."""
    most = 0
    for edge in range(lattices.nodes[node], lattices.nodes[node + 1]):
        tail = lattices.tails[edge] - first
        most += 1 if tail < 0 else first_line[tail + 1] - first_line[tail]
    return most


@_inline
def _envelope_at(
    node: int,
    first: int,
    lattices: Lattices,
    scores: Floats,
    slopes: Floats,
    lowest: float,
    highest: float,
    first_line: Integers,
    lines: Records,
    used: int,
    halves: Records,
) -> int:
    """Write the envelope of the paths that reach a node; return its size.

    Args:
        node: of the lattices.
        first: the first node of its sentence.
        lattices: of all sentences.
        scores: (edges,) at γ = 0.
        slopes: (edges,) by how much they grow with γ.
        lowest: the γ from which on lines count.
        highest: up to which they do.
        first_line: where the lines of each node of the sentence begin.
        lines: of the nodes before, behind the empty translation's; the new ones follow them.
        used: how many they are.
        halves: room for two envelopes, of the edges merged so far.
    """
    size, here, there = 0, 0, len(halves) >> 1
    last = lattices.nodes[node + 1] - 1
    for edge in range(lattices.nodes[node], last + 1):
        tail = lattices.tails[edge] - first
        begin, end = 0, 1  # the line of the empty translation
        if tail >= 0:
            begin, end = first_line[tail], first_line[tail + 1]
        old, moved = (halves, here, here + size), (lines, begin, end)
        add = scores[edge], slopes[edge], edge
        if edge < last:
            size = _merge(old, moved, add, lowest, highest, halves, there)
            here, there = there, here
        else:
            size = _merge(old, moved, add, lowest, highest, lines, used)
    return size


@_inline
def _merge(
    old: tuple[Records, int, int],
    moved: tuple[Records, int, int],
    add: tuple[float, float, int],
    lowest: float,
    highest: float,
    merged: Records,
    first: int,
) -> int:
    """Write the envelope of two envelopes, of which an edge moves one; return its size.

    Args:
        old: lines, and where the envelope stands in them, by slope.
        moved: the same of the edge's tail.
        add: score and slope of the edge, and its number.
        lowest: the γ from which on lines count.
        highest: up to which they do.
        merged: lines, where there is room for both.
        first: where in them.
    """
    score, slope, edge = add
    mine, its = old[1], moved[1]
    size = 0
    while mine < old[2] or its < moved[2]:
        new = merged[first + size]
        if its == moved[2] or (mine < old[2] and old[0][mine].slope <= moved[0][its].slope + slope):
            _copy(new, old[0][mine], lowest)
            mine += 1
        else:
            line = moved[0][its]
            new.height, new.slope = line.height + score, line.slope + slope
            new.edge, new.before = edge, its
            its += 1
        size = _kept(merged, first, size, lowest, highest)
    return size


@_inline
def _kept(lines: Records, first: int, size: int, lowest: float, highest: float) -> int:
    """Put the line behind an envelope of some size in its place, or nowhere; return the new size.

    Of parallel lines the highest stays, of equal ones the first.
    """
    new = lines[first + size]
    begin = lowest
    while size > 0:
        last = lines[first + size - 1]
        if last.slope == new.slope:
            if new.height <= last.height:
                return size
        else:
            begin = (last.height - new.height) / (new.slope - last.slope)
            if begin > last.begin:
                break
        size -= 1
    if size == 0:
        begin = lowest
    elif begin >= highest:
        return size
    _copy(lines[first + size], new, begin)
    return size + 1


@_inline
def _copy(place: Record, line: Record, begin: float) -> None:
    """Write a line that is the best one from some γ on to a place."""
    place.height, place.slope = line.height, line.slope
    place.edge, place.before = line.edge, line.before
    place.begin = begin


@_part
def _add_words(
    lattices: Lattices, edge: int, words: NDArray[np.int32], end: int
) -> tuple[NDArray[np.int32], int]:
    """Write the words of an edge, the last one first; return the array, or a larger one."""
    first, last = lattices.word_offsets[edge], lattices.word_offsets[edge + 1]
    if end + last - first > len(words):
        words = grown(words, 2 * (end + last - first))
    for place in range(last - 1, first - 1, -1):
        words[end] = lattices.words[place]
        end += 1
    return words, end
