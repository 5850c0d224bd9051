"""The unique phrase pairs of one or more tables as packed integer arrays.

Memory for each pair, with L words on both sides together. While tables are read: 4 L bytes of
provisional ids, 8 of lengths, 8 of hashes and 4 of counts. Once numbered: 2 L bytes of ids (4 L
with more than 65,536 words) and 16 of offsets. For 100 million pairs of 10 words: 6.8 GB while
reading; at most 2.0 GB to copy an array that must grow; 4.8 GB for hashes and counts as numpy
arrays and their sorted copies; 3.6 GB once numbered, beside the 6.8 GB. The peak is below
6.8 + 2.0 + 4.8 + 3.6 = 17.2 GB. In training 3.6 GB (3.6 bytes a word) and 0.8 GB for the orders
of two epochs remain.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    ALIGNMENT,
    COUNTS,
    NUMBER,
    SCORES,
    SEPARATOR,
    SOURCE,
    TARGET,
    count_scores,
    split_fields,
    tokens,
)
from moses_feature.moses.words import WordError, WordOptions, any_escaped
from moses_feature.networks.phrases import Hashes, PackedSequences, mixed, phrase_hash
from moses_feature.networks.vocabulary import UNKNOWN, Vocabulary
from moses_feature.runtime.errors import FormatError, shown

_WORDS, _PHRASES = 1, 2  # seeds


def phrase_hashes(phrases: PackedSequences) -> Hashes:
    """Return a 64-bit hash (n,) of the word ids of each phrase, as the network sees them."""
    place = np.arange(len(phrases.ids)) - np.repeat(phrases.offsets[:-1], np.diff(phrases.offsets))
    # Each word is mixed with its position, so that the order of the words matters.
    numbered = phrases.ids.astype(np.uint64) + (place.astype(np.uint64) << np.uint64(32))
    sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed(numbered, _WORDS), dtype=np.uint64)])
    return mixed(sums[phrases.offsets[1:]] - sums[phrases.offsets[:-1]], _PHRASES)


LARGEST_COUNT = 1e15


@dataclass(frozen=True)
class PhrasePair:
    """A phrase pair as read: its words, and how often it was seen in the training corpus."""

    source: list[bytes]
    target: list[bytes]
    count: float


def read_pairs(reader: LineReader, options: WordOptions) -> Iterator[PhrasePair]:
    """Yield the phrase pairs of a phrase table or of a tab-separated file, recognised by line 1.

    The count of a pair is the joint count, the third of a table's counts field, else 1.

    Raises:
        FormatError: a line of neither format.
    """
    parse = None
    for line in reader:
        if parse is None:
            parse = _table_pair if SEPARATOR in line else _tab_separated_pair
        try:
            yield parse(line, reader, options)
        except WordError as error:
            raise WordError(f"{reader.path} at line {reader.line_number}: {error}") from None


def _table_pair(line: bytes, reader: LineReader, options: WordOptions) -> PhrasePair:
    fields = split_fields(line, reader.path, reader.line_number)
    alignment = fields[ALIGNMENT] if len(fields) > ALIGNMENT else b""
    source, target = options.pair(fields[SOURCE], fields[TARGET], alignment)
    count_scores(fields[SCORES], reader.path, reader.line_number)
    counts = fields[COUNTS].split() if len(fields) > COUNTS else []
    if len(counts) < 3:
        return PhrasePair(source, target, 1.0)
    count = float(counts[2]) if NUMBER.fullmatch(counts[2]) else -1.0
    if not 0 <= count <= LARGEST_COUNT:
        raise FormatError(reader.path, "a joint count", shown(counts[2]), reader.line_number)
    return PhrasePair(source, target, count)


def _tab_separated_pair(line: bytes, reader: LineReader, options: WordOptions) -> PhrasePair:
    columns = line.rstrip(b"\r\n").split(b"\t")
    if len(columns) != 2:
        raise FormatError(
            reader.path,
            "a line of a phrase table, or two columns separated by a tab",
            shown(line),
            reader.line_number,
        )
    return PhrasePair(*options.pair(columns[0], columns[1]), 1.0)


@dataclass(frozen=True)
class PhrasePairs:
    """Unique phrase pairs as word ids.

    Attributes:
        source, target: the two sides, pair by pair.
        held_out: (n,) bool, 1 for pairs of the held-out source phrases.
    """

    source: PackedSequences
    target: PackedSequences
    held_out: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.source)

    def sides(self, rows: NDArray[np.integer]) -> list[PackedSequences]:
        """Return both sides of some pairs."""
        return [self.source.some(rows), self.target.some(rows)]


class _PairSide:
    """One side of the pairs while they are read; provisional ids in the order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._ids = array("i")
        self._lengths = array("I")

    def add(self, phrase: list[bytes]) -> None:
        numbers = self._numbers
        self._ids.extend([numbers.setdefault(word, len(numbers)) for word in phrase])
        self._lengths.append(len(phrase))

    def words(self) -> Iterable[bytes]:
        """Return all words of the side."""
        return self._numbers

    def counts(self, weights: NDArray[np.float64], kept: NDArray[np.bool_]) -> dict[bytes, float]:
        """Return how often each word occurs, each pair weighted."""
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)
        per_token = np.repeat(np.where(kept, weights, 0.0), lengths)
        ids = np.frombuffer(self._ids, dtype=np.int32)
        totals = np.bincount(ids, weights=per_token, minlength=len(self._numbers))
        return dict(zip(self._numbers, totals.tolist(), strict=True))

    def pack(self, vocabulary: Vocabulary, kept: NDArray[np.bool_]) -> PackedSequences:
        final = np.array(
            [vocabulary.index.get(word, UNKNOWN) for word in self._numbers],
            dtype=np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32,
        )
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)
        ids = np.frombuffer(self._ids, dtype=np.int32)[np.repeat(kept, lengths)]
        offsets = np.zeros(int(kept.sum()) + 1, dtype=np.int64)
        np.cumsum(lengths[kept], out=offsets[1:])
        return PackedSequences(final[ids], offsets)


class PairCollection:
    """The unique pairs of some tables, before their words are counted and numbered.

    Pairs are distinguished by a 64-bit hash of both sides (among 100 million pairs, two different
    ones have the same hash with probability 0.0003).

    Attributes:
        kept: (pairs read,) whether each is the first of its kind.
    """

    def __init__(self, pairs: Iterable[PhrasePair]) -> None:
        self._source, self._target = _PairSide(), _PairSide()
        pair_hashes, counts = array("Q"), array("f")
        for pair in pairs:
            self._source.add(pair.source)
            self._target.add(pair.target)
            counts.append(pair.count)
            pair_hashes.append(phrase_hash(pair.source, pair.target))
        self._counts = np.array(counts, dtype=np.float64)
        self.kept = np.zeros(len(counts), dtype=np.bool_)
        self.kept[np.unique(np.array(pair_hashes, dtype=np.uint64), return_index=True)[1]] = True

    def __len__(self) -> int:
        return int(self.kept.sum())

    def source_counts(self) -> dict[bytes, float]:
        """Return the frequencies of the source words, weighted by the joint counts."""
        return self._source.counts(self._counts, self.kept)

    def target_counts(self) -> dict[bytes, float]:
        """Return the frequencies of the target words, weighted by the joint counts."""
        return self._target.counts(self._counts, self.kept)

    def escaped(self) -> bool:
        """Return whether any token, in a shortlist or not, is escaped as Moses escapes it."""
        return any_escaped(self._source.words()) or any_escaped(self._target.words())

    def pairs(
        self,
        source: Vocabulary,
        target: Vocabulary,
        held_out_share: float,
        limit: int,
        seed: int,
    ) -> PhrasePairs:
        """Number the words, and hold out a random share of the source phrases.

        Source phrases are the same if the network cannot distinguish them: all unknown words are
        UNK. At least one is held out, at most `limit`, and at least one is left for training; all
        pairs of a source phrase are on the same side. With a single source phrase nothing is held
        out.

        Args:
            source: the vocabulary of the source side.
            target: the vocabulary of the target side.
            held_out_share: the share of all source phrases to hold out.
            limit: the most source phrases that are held out.
            seed: the seed of the choice.
        """
        hashes = phrase_hashes(self._source.pack(source, self.kept))
        order = mixed(hashes, seed)
        distinct = np.unique(order)
        wanted = min(max(1, round(held_out_share * len(distinct))), limit, len(distinct) - 1)
        held_out = np.isin(order, distinct[:wanted])
        return PhrasePairs(
            self._source.pack(source, self.kept), self._target.pack(target, self.kept), held_out
        )


def count_words(lines: Iterable[bytes]) -> dict[bytes, float]:
    """Count the words of a text, one sentence per line."""
    counts: dict[bytes, float] = {}
    for line in lines:
        for word in tokens(line):
            counts[word] = counts.get(word, 0.0) + 1.0
    return counts
