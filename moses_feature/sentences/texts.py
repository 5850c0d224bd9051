"""The sentence pairs of two texts, and their word alignments as packed arrays."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

import numpy as np

from moses_feature.moses.alignments import BETWEEN, links_of, places_of
from moses_feature.moses.lines import LineReader, parallel_lines
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import any_escaped
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.pieces import PieceVocabulary, learn_pieces, restricted
from moses_feature.phrases.pairs import PhrasePair
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json
from moses_feature.sentences.settings import SentenceData
from moses_feature.training.objective import Rows


@dataclass(frozen=True)
class PairLinks:
    """The links of pairs, as two places each in the sequences that a network reads and writes.

    Attributes:
        read: the places of the words that are read.
        written: the places of the words that are written.
    """

    read: PackedSequences
    written: PackedSequences

    def of(self, rows: Rows) -> Integers:
        """Return the links (3, links) of pairs: index of the pair, written place, read place."""
        read, written = self.read.some(rows), self.written.some(rows)
        pair = np.repeat(np.arange(len(rows)), np.diff(read.offsets))
        return np.stack([pair, written.ids.astype(np.int64), read.ids.astype(np.int64)])


class LinkCollection:
    """The links of pairs while they are read; 8 bytes a link."""

    def __init__(self) -> None:
        self._read, self._written, self._counts = array("I"), array("I"), array("I")

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, read: Integers, written: Integers) -> None:
        """Add the links of the next pair."""
        self._read.extend(read.tolist())
        self._written.extend(written.tolist())
        self._counts.append(len(read))

    def links(self, rows: Rows) -> PairLinks:
        """Return the links of some pairs."""
        offsets = np.zeros(len(self._counts) + 1, dtype=np.int64)
        np.cumsum(self._counts, out=offsets[1:])
        sides = (np.frombuffer(side, dtype=np.uint32) for side in (self._read, self._written))
        return PairLinks(*(PackedSequences(side, offsets).some(rows) for side in sides))


def spread(
    read: Integers, written: Integers, of_read: Integers, of_written: Integers
) -> tuple[Integers, Integers]:
    """Return links between pieces: each piece of a word with each piece of a linked word.

    Args:
        read: (links,) places of words.
        written: (links,) places of words.
        of_read: the number of pieces of each word that is read.
        of_written: the number of pieces of each word that is written.
    """
    across, counts = of_read[read], of_read[read] * of_written[written]
    link = np.repeat(np.arange(len(read)), counts)
    written_piece, read_piece = np.divmod(
        np.arange(len(link)) - (np.cumsum(counts) - counts)[link], across[link]
    )
    first_read, first_written = (np.cumsum(of) - of for of in (of_read, of_written))
    return first_read[read][link] + read_piece, first_written[written][link] + written_piece


Sides = tuple[PieceVocabulary, PieceVocabulary]
"""The pieces of the side that a network reads, and of the one that it writes."""


def learnt_pieces(data: SentenceData, count: int) -> Sides:
    """Learn the pieces of each side from its text, or from both texts."""
    read, written = data.direction.texts(data.source, data.target)
    if data.subwords_from == "each":
        return _pieces_of(count, read), _pieces_of(count, written)
    of_both = _pieces_of(count, data.source, data.target)
    shares = _shares(of_both, read), _shares(of_both, written)
    return _restricted(of_both, *shares), _restricted(of_both, *reversed(shares))


LEAST_SHARE = 0.02
"""Of the pieces of a text, in their share of the other text: what is rarer is of its language.

Laws quote those of the other language. With this a network knows 0.96 of English words and 0.49 of
French ones as English; with all pieces that a text has, 0.96 and 0.86.
"""


def _shares(pieces: PieceVocabulary, path: str) -> Floats:
    """Return the share (V,) of each piece in the pieces of a text."""
    with LineReader(path) as reader:
        counts = Counter(word for line in reader for word in line.split())
    found = np.zeros(len(pieces))
    for word, count in counts.items():
        np.add.at(found, pieces.pieces(word), count)
    shares: Floats = found / max(found.sum(), 1)
    return shares


def _restricted(pieces: PieceVocabulary, own: Floats, other: Floats) -> PieceVocabulary:
    """Return pieces for a text: words are split into those that it has often enough."""
    used = (own > 0) & (own >= LEAST_SHARE * other)
    return restricted(pieces, {*np.flatnonzero(used).tolist()})


def _pieces_of(count: int, *paths: str) -> PieceVocabulary:
    with ExitStack() as stack:
        readers = [stack.enter_context(LineReader(path)) for path in paths]
        lines = (line.strip() for line in chain.from_iterable(readers))
        return learn_pieces(lines, count, ", ".join(paths))


MOST_TIMES_LONGEST = 10
"""The most pieces of a sentence, in units of `longest`: one absurd word lengthens a whole batch."""


class SentencePairs:
    """The pairs of two texts, as the network reads and writes them; can be iterated once.

    Args:
        data: the texts.
        pieces: the pieces of both sides, if words are split.

    Attributes:
        left_out: the number of pairs with an empty or too long sentence.
        unlinked: of the others, those without a link, if there is a word alignment.
        links: the links of the others, if there is a word alignment.
        inputs: the provenance of the files, once all are read.
        escaped: whether a word is escaped as Moses escapes it, of those read so far.

    Raises:
        FormatError: files of different lengths, or a bad alignment.
    """

    def __init__(self, data: SentenceData, pieces: Sides | None = None) -> None:
        self._data = data
        self._pieces = pieces
        self.left_out = self.unlinked = 0
        self.escaped = False
        self.links = LinkCollection()
        self.inputs: list[Json] = []

    def __iter__(self) -> Iterator[PhrasePair]:
        data = self._data
        paths = {"source": data.source, "target": data.target}
        if data.word_alignment is not None:
            paths["word alignment"] = data.word_alignment
        with ExitStack() as stack:
            readers = [stack.enter_context(LineReader(path)) for path in paths.values()]
            what = "both texts" if len(readers) == 2 else "both texts and the word alignment"
            for source, target, *alignment in parallel_lines(readers, what):
                pair = tokens(source), tokens(target)
                links = [self._places(text, pair, readers[-1]) for text in alignment]
                sides = data.direction.sides(*pair)
                if self._fit(sides):
                    self.escaped = self.escaped or any(map(any_escaped, pair))
                    for read, written in links:
                        self.unlinked += len(read) == 1  # only the link of the two ENDs
                        self.links.add(*self._of_pieces(read, written, sides))
                    if self._pieces is not None:
                        of_read, of_written = self._pieces
                        sides = of_read.split(sides[0]), of_written.split(sides[1])
                    yield PhrasePair(*sides, 1.0)
                else:
                    self.left_out += 1
            self.inputs = [
                reader.provenance(role) for role, reader in zip(paths, readers, strict=True)
            ]

    def _fit(self, sides: tuple[list[bytes], list[bytes]]) -> bool:
        """Return whether neither side is empty or too long."""
        longest = self._data.longest
        fit = all(0 < len(words) <= longest for words in sides)
        if not fit or self._pieces is None:
            return fit
        both = zip(self._pieces, sides, strict=True)
        return all(sum(of.lengths(words)) <= MOST_TIMES_LONGEST * longest for of, words in both)

    def _of_pieces(
        self, read: Integers, written: Integers, sides: tuple[list[bytes], list[bytes]]
    ) -> tuple[Integers, Integers]:
        """Return the links of all pieces of linked words; those of words if these are not split."""
        if self._pieces is None:
            return read, written
        lengths = (
            np.array([*of.lengths(words), 1]) for of, words in zip(self._pieces, sides, strict=True)
        )
        return spread(read, written, *lengths)

    def _places(
        self, text: bytes, pair: tuple[list[bytes], list[bytes]], reader: LineReader
    ) -> tuple[Integers, Integers]:
        """Return the read and the written places of links, including those of END."""
        try:
            links = links_of(text.split(BETWEEN)[0].strip(), *map(len, pair))
        except ValueError as error:
            expected, found = error.args
            raise FormatError(reader.path, expected, found, reader.line_number) from None
        direction = self._data.direction
        words, writes = map(len, direction.sides(*pair))
        read, written = direction.places(*places_of(links), writes)
        return np.append(read, words), np.append(written, writes)
