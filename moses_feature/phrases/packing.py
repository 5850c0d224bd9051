"""Phrase pairs as prefix trees of their word ids, the input of the scorers.

Stages: `Packer` turns words into ids in the direction of the network; `PackedPairs.of_ids` numbers
the distinct source phrases and builds the prefix trees; the scorer computes each edge of the trees
once; `PrefixLevel.edge_of_row` hands the result to all pairs that share the edge.

Packing does not depend on networks or torch, so that light processes can do it beside the scorer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.networks.phrases import PackedSequences, PrefixLevel, prefix_levels
from moses_feature.networks.vocabulary import UNKNOWN, Vocabulary
from moses_feature.runtime.arrays import Integers

Words = Sequence[bytes]
WordPair = tuple[Words, Words]


@dataclass(frozen=True)
class PackedPairs:
    """The prefix trees of n phrase pairs.

    Attributes:
        source_levels: the tree of the distinct source phrases.
        source_of_row: (n,) the source phrase of each pair.
        target_levels: the trees of the target phrases, with one root for each source phrase.
        offsets: (n + 1,) where the words of each target phrase begin, END counted.
    """

    source_levels: list[PrefixLevel]
    source_of_row: Integers
    target_levels: list[PrefixLevel]
    offsets: Integers

    @classmethod
    def of_ids(cls, source: PackedSequences, target: PackedSequences) -> PackedPairs:
        """Pack pairs that are given as word ids."""
        # 1. One tree for all source phrases. A phrase is known by the edge at which it ends.
        one_root = np.zeros(len(source), dtype=np.int64)
        source_levels = list(prefix_levels(source, one_root))
        source_of_row = _ended_phrases(source_levels, len(source))
        # 2. One target tree for each distinct source phrase: the scorer computes log p of a word
        #    once for all pairs with the same source phrase and the same target prefix.
        target_levels = list(prefix_levels(target, source_of_row))
        # 3. The place of each pair's words in the flat array of results; END counts as a word.
        offsets = target.offsets + np.arange(len(target) + 1)
        return cls(source_levels, source_of_row, target_levels, offsets)


def _ended_phrases(levels: list[PrefixLevel], rows: int) -> Integers:
    """Number the distinct phrases by the level, and then the edge, at which they end."""
    number_of_row = np.zeros(rows, dtype=np.int64)
    before = 0
    for level in levels:
        # The edges of END in this level continue the numbers of the levels before.
        number = before + np.cumsum(~level.grows) - 1
        ended = ~level.grows[level.edge_of_row]
        number_of_row[level.rows[ended]] = number[level.edge_of_row[ended]]
        before += int(np.count_nonzero(~level.grows))
    return number_of_row


@dataclass(frozen=True)
class Packed:
    """Phrase pairs ready to be scored.

    Attributes:
        pairs: their prefix trees.
        target_lengths: (n,) words that the network writes, END counted.
        unknown_source, unknown_target: (n,) words outside the shortlist on the source and target
            side of the pairs, whatever the direction of the network.
    """

    pairs: PackedPairs
    target_lengths: Integers
    unknown_source: Integers
    unknown_target: Integers


@dataclass(frozen=True)
class Packer:
    """Packs phrase pairs for a network.

    Attributes:
        source: the vocabulary of the side that the network reads.
        target: the vocabulary of the side that it writes.
        direction: the direction of the network.
    """

    source: Vocabulary
    target: Vocabulary
    direction: Direction = FORWARD

    @property
    def sides(self) -> tuple[Vocabulary, Vocabulary]:
        """The vocabularies of the source side and the target side of pairs."""
        read, written = self.source, self.target
        return (written, read) if self.direction.reverse else (read, written)

    def pack(self, pairs: Sequence[WordPair]) -> Packed:
        """Pack phrase pairs, given as source and target words."""
        source, target = self.sides
        return self.pack_numbered(
            PackedSequences.pack([source.ids(words) for words, _ in pairs]),
            PackedSequences.pack([target.ids(words) for _, words in pairs]),
        )

    def pack_numbered(self, source: PackedSequences, target: PackedSequences) -> Packed:
        """Pack phrase pairs, given as ids in the vocabularies of both sides."""
        read, written = self.read_and_written(source, target)
        unknown = _unknown_words(source), _unknown_words(target)
        return replace(
            pack_ids(read, written), unknown_source=unknown[0], unknown_target=unknown[1]
        )

    def read_and_written(
        self, source: PackedSequences, target: PackedSequences
    ) -> tuple[PackedSequences, PackedSequences]:
        """Return the side that the network reads and the one that it writes, in its word order."""
        read, written = (target, source) if self.direction.reverse else (source, target)
        return read, written.last_word_first() if self.direction.right_to_left else written


def pack_ids(source: PackedSequences, target: PackedSequences) -> Packed:
    """Pack phrase pairs, given as word ids, the target in the order in which it is written."""
    return Packed(
        PackedPairs.of_ids(source, target),
        np.diff(target.offsets) + 1,
        _unknown_words(source),
        _unknown_words(target),
    )


def _unknown_words(phrases: PackedSequences) -> Integers:
    before = np.concatenate([[0], np.cumsum(phrases.ids == UNKNOWN)])
    return np.diff(before[phrases.offsets])
