"""The n-grams of an aligned text and the source words beside each, as packed arrays."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from moses_feature.cslm.ngrams import Ngrams, Text
from moses_feature.joint.affiliation import affiliations
from moses_feature.joint.settings import JointData, JointSizes
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.texts import parallel_lines
from moses_feature.networks.vocabulary import END, Vocabulary
from moses_feature.runtime.arrays import Flags, Integers
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json

NONE = -1


class AlignedText:
    """The sentence pairs of three files.

    Pairs with an empty sentence or without a link are left out.

    Attributes:
        source, target: the sentences.
        left_out: pairs.
        inputs: where they come from.

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
        """Number the words, and find what is beside each."""
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


class JointNgrams:
    """All n-grams of some sentences, and the source words beside each.

    Args:
        target: the n-grams.
        source: the words of all source sentences.
        centre: (n,) where among them the word stands that the predicted one belongs to, `NONE`
            for the end of a sentence, which is not predicted.
        inside: (2, n) words of the same sentence to the left and to the right of it, `window` at
            most.
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
        self._target = target
        self._source = source
        self._centre = centre
        self._inside = inside
        self._offsets = np.arange(-window, window + 1)

    def __len__(self) -> int:
        return len(self._target)

    def predicted(self) -> Flags:
        """Return which (n,) are learnt from: words, and no ends of sentences."""
        predicted: Flags = self._centre != NONE
        return predicted

    def words(self, rows: NDArray[np.integer]) -> Integers:
        """Return the predicted words (len(rows),) of some n-grams."""
        return self._target.words(rows)

    def contexts(self, rows: NDArray[np.integer]) -> Integers:
        """Return source words and words before (len(rows), positions); END beyond a sentence."""
        places = self._centre[rows].astype(np.int64)[:, None] + self._offsets
        left, right = self._inside[:, rows].astype(np.int64)[:, :, None]
        inside = (-left <= self._offsets) & (self._offsets <= right)
        source = self._source[np.clip(places, 0, len(self._source) - 1)]
        return np.hstack([np.where(inside, source, END), self._target.contexts(rows)])

    def source_frequencies(self, words: int) -> NDArray[np.float64]:
        """Return how often each of so many source words occurs."""
        return np.bincount(self._source, minlength=words).astype(np.float64)
