"""The n-grams of an aligned text and the source words beside each, as packed arrays.

The affiliation of a target word to a source word is Moses' rule (`moses/LM/BilingualLM.cpp`), which
is that of Devlin et al. 2014 except for its reach. A word is affiliated to the middle one of the
source words that it is aligned to (of an even number, the one before the middle). A word without
links takes the affiliation of the nearest word with links (the right one of two as near).
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from moses_feature.cslm.ngrams import Ngrams, Text
from moses_feature.joint.settings import JointData, JointSizes
from moses_feature.moses import alignments as text_of_links
from moses_feature.moses.alignments import PLACES, read_links
from moses_feature.moses.lines import LineReader, parallel_lines
from moses_feature.moses.phrase_table import tokens
from moses_feature.networks.vocabulary import END, Vocabulary
from moses_feature.runtime.arrays import Bytes, Flags, Integers
from moses_feature.runtime.compiled import compiled, helper
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json

NO_LINK = -1


def affiliations(alignment: bytes, source: int, target: int) -> Integers:
    """Return the place of the source word to which each target word is affiliated.

    Args:
        alignment: links such as `0-0 1-2`, source and target place, in any order.
        source: the number of source words.
        target: the number of target words.

    Raises:
        ValueError: the text is bad, names other places, or is empty although there are target
            words; its two arguments are the expected and the found content.
    """
    found = np.empty(target, dtype=np.int64)
    text = np.frombuffer(alignment, dtype=np.uint8)
    result = affiliate(text, 0, len(text), source, found)
    if result < 0:
        raise ValueError(*what_is_wrong(result, alignment, source, target))
    return found


def what_is_wrong(result: int, alignment: bytes, source: int, target: int) -> tuple[str, str]:
    """Return the expected and the found content when `affiliate` failed."""
    if result == NO_LINK:
        return "word alignments, such as 0-0 1-1", "none"
    return text_of_links.what_is_wrong(result, alignment, source, target)


@compiled
def affiliate(text: Bytes, begin: int, end: int, source: int, found: Integers) -> int:
    """Write the affiliations (target words,) of a text of links; return a negative number if bad.

    Args:
        text: contains the links.
        begin: where they begin.
        end: where they end.
        source: the number of source words.
        found: (target words,) overwritten.
    """
    target = len(found)
    links = np.empty((end - begin) // 3 + 1, np.int64)
    count = read_links(text, begin, end, source, target, links)
    if count < 0:
        return count
    if count == 0:
        return NO_LINK if target > 0 else 0
    links = np.sort(links[:count])
    found[:] = NO_LINK
    first = 0
    while first < count:
        word = links[first] >> PLACES
        last = kept = first  # of equal links only one is kept
        while last < count and links[last] >> PLACES == word:
            if links[last] != links[kept]:
                kept += 1
                links[kept] = links[last]
            last += 1
        found[word] = links[first + (kept - first) // 2] & ((1 << PLACES) - 1)
        first = last
    _take_nearest(found)
    return count


@helper(inline=False)
def _take_nearest(found: Integers) -> None:
    """Give each word without links the affiliation of the nearest one that has some."""
    own = found.copy()
    for word in range(len(found)):
        distance = 0
        while found[word] == NO_LINK:
            distance += 1
            if word + distance < len(own) and own[word + distance] != NO_LINK:
                found[word] = own[word + distance]
            elif word - distance >= 0:
                found[word] = own[word - distance]


NONE = -1


class AlignedText:
    """The sentence pairs of three files.

    Pairs with an empty sentence or without a link are left out.

    Attributes:
        source, target: the sentences.
        left_out: the number of pairs left out.
        inputs: the provenance of the files.

    Raises:
        FormatError: files of different lengths, or a bad alignment.
    """

    def __init__(self, data: JointData) -> None:
        self.source, self.target = Text(), Text()
        self.left_out = 0
        self._affiliations = array("i")
        with (
            LineReader(data.source) as sources,
            LineReader(data.target) as targets,
            LineReader(data.alignment) as alignments,
        ):
            readers = sources, targets, alignments
            for lines in parallel_lines(readers, "both texts and the alignment"):
                source, target = tokens(lines[0]), tokens(lines[1])
                links = lines[2].strip()
                if not (source and target and links):
                    self.left_out += 1
                    continue
                try:
                    found_places = affiliations(links, len(source), len(target))
                except ValueError as error:
                    where = alignments.path, *error.args, alignments.line_number
                    raise FormatError(*where) from None
                self.source.add(source)
                self.target.add(target)
                self._affiliations.extend([*found_places.tolist(), NONE])
            names = ("source", "target", "alignment")
            self.inputs: list[Json] = [
                reader.provenance(name) for reader, name in zip(readers, names, strict=True)
            ]

    def __len__(self) -> int:
        return len(self.target)

    def ngrams(self, source: Vocabulary, target: Vocabulary, sizes: JointSizes) -> JointNgrams:
        """Number the words, and find the context of each."""
        lengths = self.source.lengths
        begins = np.cumsum(lengths + 1) - lengths - 1
        with_end = self.target.lengths + 1
        places = np.frombuffer(self._affiliations, dtype=np.int32).astype(np.int64)
        window = sizes.source_window
        left = np.minimum(places, window)
        right = np.minimum(np.repeat(lengths, with_end) - 1 - places, window)
        centre = np.where(places == NONE, NONE, places + np.repeat(begins, with_end))
        return JointNgrams(
            self.target.ngrams(target, sizes.order),
            self.source.ids(source),
            centre.astype(np.int32 if centre.max(initial=0) < 1 << 31 else np.int64),
            np.stack([left, right]).astype(np.int8),
            window,
        )


class JointNgrams(Ngrams):
    """All n-grams of some sentences, and the source words beside each.

    Args:
        target: the n-grams.
        source: the words of all source sentences.
        centre: (n,) the place in `source` of the word to which the predicted word is affiliated;
            `NONE` for the end of a sentence, which is not predicted.
        inside: (2, n) the number of words to the left and right of it in its sentence, at most
            `window`.
        window: words on each side.
    """

    def __init__(
        self,
        target: Ngrams,
        source: NDArray[np.unsignedinteger],
        centre: NDArray[np.signedinteger],
        inside: NDArray[np.int8],
        window: int,
    ) -> None:
        super().__init__(target.ids, target.before, target.order)
        self._source = source
        self._centre = centre
        self._inside = inside
        self._offsets = np.arange(-window, window + 1)

    def predicted(self) -> Flags:
        """Return a mask (n,) of the words to learn: all but ENDs."""
        predicted: Flags = self._centre != NONE
        return predicted

    def contexts(self, rows: NDArray[np.integer]) -> Integers:
        """Return source words and words before (len(rows), positions); END beyond a sentence."""
        places = self._centre[rows].astype(np.int64)[:, None] + self._offsets
        left, right = self._inside[:, rows].astype(np.int64)[:, :, None]
        inside = (-left <= self._offsets) & (self._offsets <= right)
        source = self._source[np.clip(places, 0, len(self._source) - 1)]
        return np.hstack([np.where(inside, source, END), super().contexts(rows)])

    def source_frequencies(self, words: int) -> NDArray[np.float64]:
        """Return the counts of the first `words` source words."""
        return np.bincount(self._source, minlength=words).astype(np.float64)
