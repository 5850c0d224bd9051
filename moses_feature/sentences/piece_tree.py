"""The pieces of the words of a tree, as a tree of their own; compiled, free of torch.

A word of the search is spelt in pieces, of which a whole word is one. Its node stands for the node
of its last piece; words that begin with the same pieces share their nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.trees import NOT_KNOWN, Rows, Tree, with_rows
from moses_feature.networks.vocabulary import END
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import threaded

FIRST_ROOM = 256
ROOT, NO_NODE = 0, 0
"""The first node; and none, where the root cannot be meant."""


class PieceTree:
    """The pieces on the way to the words that are asked for, of one sentence at a time.

    Attributes:
        tree: (room for nodes, 2); the root has no parent and the word END.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._pieces = np.empty(0, dtype=np.int64)
        self._offsets = np.zeros(1, dtype=np.int64)
        self._node_of: Rows = np.empty(0, dtype=np.int32)
        self.begin()

    def words(self, spellings: Sequence[Sequence[int]]) -> list[int]:
        """Return a number for each word, given by the ids of its pieces."""
        numbers: list[int] = []
        new: list[Sequence[int]] = []
        for spelling in spellings:
            number = self._numbers.setdefault(tuple(spelling), len(self._numbers))
            if number == len(self._offsets) - 1 + len(new):
                new.append(spelling)
            numbers.append(number)
        ends = self._offsets[-1] + np.cumsum([len(spelling) for spelling in new], dtype=np.int64)
        pieces = [piece for spelling in new for piece in spelling]
        self._pieces = np.concatenate([self._pieces, np.array(pieces, dtype=np.int64)])
        self._offsets = np.concatenate([self._offsets, ends])
        return numbers

    def begin(self) -> None:
        """Forget all nodes."""
        self._node_of.fill(NOT_KNOWN)
        self.tree: Tree = np.empty((FIRST_ROOM, 2), dtype=np.int32)
        self._links = np.zeros((FIRST_ROOM, 2), dtype=np.int32)
        self.tree[ROOT] = -1, END
        self._count = 1

    def lengths(self, words: Integers) -> Integers:
        """Return the number of pieces of words (n,)."""
        return self._offsets[words + 1] - self._offsets[words]

    def pieces(self, words: Integers) -> tuple[Integers, Integers]:
        """Return the pieces of words (n,), and for each piece the place of its word."""
        lengths = self.lengths(words)
        owner = np.repeat(np.arange(len(words)), lengths)
        of_word = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self._pieces[self._offsets[words][owner] + of_word], owner

    def asked(
        self, tree: Tree, nodes: Integers, words: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """Return what is to be scored for words (n,) after nodes (n,) of a tree of words.

        Returns:
            For each piece of the words the node of pieces before it, its id, and the place of its
            word.
        """
        self._node_of = with_rows(self._node_of, len(tree))
        self.tree, self._links, self._count, before, pieces, owner = spell(
            tree,
            nodes,
            words,
            self._pieces,
            self._offsets,
            self._node_of,
            self.tree,
            self._links,
            self._count,
        )
        return before, pieces, owner


Links = NDArray[np.int32]
"""(room for nodes, 2) of each node its youngest child, and its next older sibling."""


@threaded
def spell(
    tree: Tree,
    nodes: Integers,
    words: Integers,
    pieces: Integers,
    offsets: Integers,
    node_of: Rows,
    own: Tree,
    links: Links,
    count: int,
) -> tuple[Tree, Links, int, Integers, Integers, Integers]:
    """See `PieceTree.asked`.

    Args:
        tree: the tree of words.
        nodes: (n,) some of its nodes.
        words: (n,) numbers of words.
        pieces: the pieces of all words.
        offsets: (all words + 1,) where those of each begin.
        node_of: the node of pieces for which each node of words stands.
        own: the tree of pieces.
        links: its links.
        count: the number of its nodes.

    Returns:
        The grown tree of pieces, its links and its nodes, and then as `PieceTree.asked`.
    """
    total = 0
    for word in words:
        total += offsets[word + 1] - offsets[word]
    before, asked, owner = np.empty((3, total), dtype=np.int64)
    place = 0
    for row in range(len(nodes)):
        node = nodes[row]
        while node_of[node] == NOT_KNOWN:
            top = node
            while tree[top, 0] >= 0 and node_of[tree[top, 0]] == NOT_KNOWN:
                top = tree[top, 0]
            if tree[top, 0] < 0:
                node_of[top] = ROOT
                continue
            word, last = tree[top, 1], node_of[tree[top, 0]]
            for piece in pieces[offsets[word] : offsets[word + 1]]:
                own, links, count, last = _child(own, links, count, last, piece)
            node_of[top] = last
        last, behind = node_of[node], offsets[words[row] + 1]
        for of_word in range(offsets[words[row]], behind):
            before[place], asked[place], owner[place] = last, pieces[of_word], row
            place += 1
            if of_word + 1 < behind:
                own, links, count, last = _child(own, links, count, last, pieces[of_word])
    return own, links, count, before, asked, owner


@threaded
def _child(
    tree: Tree, links: Links, count: int, node: int, piece: int
) -> tuple[Tree, Links, int, int]:
    """Return the child of a node by a piece, made if there is none, and the tree with it."""
    found = links[node, 0]
    while found != NO_NODE:
        if tree[found, 1] == piece:
            return tree, links, count, found
        found = links[found, 1]
    if count == len(tree):
        tree, links = np.concatenate((tree, tree)), np.concatenate((links, links))
    tree[count, 0], tree[count, 1] = node, piece
    links[count, 0], links[count, 1] = NO_NODE, links[node, 0]
    links[node, 0] = count
    return tree, links, count + 1, count
