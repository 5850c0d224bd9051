"""Two parallel texts and the links between their words, as arrays of numbers.

Words are numbered in the order of their bytes, `|||` among them: so phrases in the order of their
numbers, each with `|||` behind it, are in the order in which `LC_ALL=C sort` puts lines of tables.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.alignments import BETWEEN, links_of, places_of
from moses_feature.moses.lines import BYTE_ORDER_MARK, LineReader, parallel_lines
from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.errors import FormatError, MosesFeatureError, shown
from moses_feature.runtime.files import Json

BAR = b"|||"
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f|]")
MARKS = frozenset((b"<s>", b"</s>", b"<unk>"))

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class NumberedText:
    """Sentences as numbers of words.

    Attributes:
        words: all words, and `|||`, in the order of their bytes; a word's number is its place.
        ids: (n,) the words of all sentences, one after the other.
        offsets: (sentences + 1,) where each sentence begins.
    """

    words: tuple[bytes, ...]
    ids: Ids
    offsets: Integers

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def bar(self) -> int:
        """The number of `|||`."""
        return self.words.index(BAR)

    def sentences(self) -> Iterator[list[bytes]]:
        """Yield the words of each sentence."""
        for begin, end in pairwise(self.offsets.tolist()):
            yield [self.words[word] for word in self.ids[begin:end].tolist()]

    @classmethod
    def of_sentences(cls, sentences: Iterable[Sequence[bytes]]) -> NumberedText:
        """Number the words of sentences."""
        builder = _BitextBuilder()
        for sentence in sentences:
            builder.add(sentence)
        return builder.text()


class _BitextBuilder:
    """Numbers words in the order of their appearance, and at the end in that of their bytes."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = defaultdict(lambda: len(self._numbers))
        self._ids = array("i")
        self._ends = array("q", [0])

    def add(self, sentence: Sequence[bytes]) -> None:
        """Add a sentence."""
        numbers = self._numbers
        self._ids.extend([numbers[word] for word in sentence])
        self._ends.append(len(self._ids))

    def text(self) -> NumberedText:
        """Return the sentences."""
        words = sorted({*self._numbers, BAR})
        place = {word: number for number, word in enumerate(words)}
        rank = np.array([place[word] for word in self._numbers], dtype=np.int32)
        ids = np.frombuffer(self._ids, dtype=np.int32)
        return NumberedText(tuple(words), rank[ids], np.frombuffer(self._ends, dtype=np.int64))


@dataclass(frozen=True)
class Bitext:
    """Aligned sentences.

    Attributes:
        source, target: the sentences.
        links: (links, 2) int16 places of linked words in the source and the target sentence, those
            of a sentence together, in the order of the target words.
        link_offsets: (sentences + 1,) the first link of each sentence.
        alignments: how often the text is there, each time with another alignment.
    """

    source: NumberedText
    target: NumberedText
    links: NDArray[np.int16]
    link_offsets: Integers
    alignments: int = 1

    def __len__(self) -> int:
        return len(self.source)

    def once(self) -> Bitext:
        """Return the text with its first alignment."""
        count = len(self) // self.alignments
        source, target = (
            replace(text, ids=text.ids[: text.offsets[count]], offsets=text.offsets[: count + 1])
            for text in (self.source, self.target)
        )
        offsets = self.link_offsets[: count + 1]
        return Bitext(source, target, self.links[: offsets[-1]], offsets)

    @classmethod
    def several(cls, of: Sequence[Bitext]) -> Bitext:
        """Return a text with all of its alignments, each in a bitext of its own."""
        count = len(of)
        if count == 1:
            return of[0]
        source, target = (
            replace(text, ids=np.tile(text.ids, count), offsets=_joined([text.offsets] * count))
            for text in (of[0].source, of[0].target)
        )
        links = np.concatenate([bitext.links for bitext in of])
        return cls(source, target, links, _joined([bitext.link_offsets for bitext in of]), count)


def _joined(offsets: Sequence[Integers]) -> Integers:
    """Return the offsets of arrays that stand one after the other."""
    lengths = np.concatenate([np.diff(of) for of in offsets])
    return np.concatenate([[0], np.cumsum(lengths)])


@dataclass(frozen=True)
class TextPair:
    """Two texts as read.

    Attributes:
        source, target: the sentences that are used.
        kept: (lines,) whether each line is used.
        left_out: lines left out, by the reason.
        inputs: the provenance of the files.
    """

    source: NumberedText
    target: NumberedText
    kept: NDArray[np.bool_]
    left_out: dict[str, int]
    inputs: list[Json]


def read_texts(source: str, target: str, longest: int, ratio: int | None = None) -> TextPair:
    """Read two tokenised texts.

    Pairs with an empty sentence, or with one of more than `longest` words, are left out, and if
    `ratio` is given those with a sentence that is so many times as long as the other.

    Raises:
        FormatError: texts of different lengths, or a word that tables or models cannot hold.
        MosesFeatureError: a file cannot be read, no pair is left, or all have twice the same.
    """
    sides = _BitextBuilder(), _BitextBuilder()
    same = 0
    kept, left_out = [], {"empty": 0, "too long": 0, "of unequal lengths": 0}
    with ExitStack() as stack:
        readers = [stack.enter_context(LineReader(path)) for path in (source, target)]
        for lines in parallel_lines(readers, "both texts"):
            pair = [tokens(line) for line in lines]
            for line, reader in zip(lines, readers, strict=True):
                check_words(line, reader, _FORBIDDEN)
                if reader.line_number == 1 and line.startswith(BYTE_ORDER_MARK):
                    raise FormatError(reader.path, "text", "a byte order mark before it", 1)
            why = _reason(len(pair[0]), len(pair[1]), longest, ratio)
            kept.append(not why)
            if why:
                left_out[why] += 1
                continue
            same += pair[0] == pair[1]
            for side, sentence in zip(sides, pair, strict=True):
                side.add(sentence)
        inputs = [r.provenance(n) for r, n in zip(readers, ("source", "target"), strict=True)]
    if not any(kept):
        raise MosesFeatureError(f"{source}: expected sentence pairs, found none")
    if same == sum(kept):
        raise MosesFeatureError(
            f"{target}: expected translations, found the same sentences as in {source}"
        )
    return TextPair(sides[0].text(), sides[1].text(), np.array(kept), left_out, inputs)


def _reason(source: int, target: int, longest: int, ratio: int | None) -> str:
    """Return why a pair of sentences of so many words is left out, empty if it is used."""
    if not (source and target):
        return "empty"
    if max(source, target) > longest:
        return "too long"
    if ratio is not None and max(source, target) > ratio * min(source, target):
        return "of unequal lengths"
    return ""


def check_words(line: bytes, reader: LineReader, forbidden: re.Pattern[bytes]) -> None:
    """Check that a sentence has no word that a table, or a language model, cannot hold.

    Raises:
        FormatError: it has a word with something that is forbidden, or one that marks sentences.
    """
    if found := forbidden.search(line.rstrip(b"\r\n")):
        expected = "words without control characters"
        if forbidden is _FORBIDDEN:
            expected += " and | (escaped: &#124;)"
        raise FormatError(reader.path, expected, shown(found[0]), reader.line_number)
    if b"<" in line:
        for word in MARKS.intersection(tokens(line)):
            expected = "words that do not mark sentences (escaped: &lt;s&gt;)"
            raise FormatError(reader.path, expected, shown(word), reader.line_number)


def read_alignment(path: str, pair: TextPair) -> tuple[Bitext, Json]:
    """Read the links of each sentence pair, such as `0-0 1-2`; return also the file's provenance.

    A line may have several alignments, with a tab between them; then all lines have as many.

    Raises:
        FormatError: another number of lines than the texts, a bad link, or another number of
            alignments than before.
    """
    source, target = (np.diff(text.offsets).tolist() for text in (pair.source, pair.target))
    found: list[tuple[array[int], array[int]]] = []
    pairs = 0
    with LineReader(path) as reader:
        for line, kept in zip(reader, pair.kept.tolist(), strict=False):  # checked below
            if not kept:
                continue
            alignments = line.rstrip(b"\r\n").split(BETWEEN)
            if not found:
                found = [(array("q"), array("q", [0])) for _ in alignments]
            if len(alignments) != len(found):
                expected = f"as many alignments, with tabs between them, as above: {len(found)}"
                raise FormatError(path, expected, f"{len(alignments)}", reader.line_number)
            for (numbers, offsets), alignment in zip(found, alignments, strict=True):
                try:
                    links = links_of(alignment.strip(), source[pairs], target[pairs])
                except ValueError as error:
                    expected, wrong = error.args
                    raise FormatError(path, expected, wrong, reader.line_number) from None
                numbers.frombytes(links.tobytes())
                offsets.append(len(numbers))
            pairs += 1
        lines = reader.line_number + (next(iter(reader), None) is not None)
        provenance = reader.provenance("alignment")
    if lines != len(pair.kept):
        others = "more" if lines > len(pair.kept) else f"{lines:,}"
        raise FormatError(path, f"{len(pair.kept):,} lines, as the texts have", others)
    return Bitext.several([aligned(pair, *map(np.asarray, of)) for of in found]), provenance


def aligned(pair: TextPair, links: Integers, offsets: Integers) -> Bitext:
    """Return texts with their links, given as numbers (see `links_of`), by the first of each."""
    places = np.empty((len(links), 2), dtype=np.int16)
    places[:, 0], places[:, 1] = places_of(links)
    return Bitext(pair.source, pair.target, places, offsets)
