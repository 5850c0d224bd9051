"""The sentence pairs of two texts, and their word alignments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from moses_feature.arrays import Integers
from moses_feature.errors import FormatError
from moses_feature.files import Json
from moses_feature.moses.lines import LineReader
from moses_feature.moses.links import links_of, places_of
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.texts import parallel_lines
from moses_feature.search.settings import SearchData
from moses_feature.training.links import LinkCollection
from moses_feature.training.phrase_pairs import PhrasePair


class SentencePairs:
    """The pairs of two texts, as the network reads and writes them, once.

    Attributes:
        left_out: pairs with a sentence that is empty or too long.
        unlinked: of the others, those without a link, where there is a word alignment.
        links: of the others, where there is a word alignment.
        inputs: where they come from, when all are read.

    Raises:
        FormatError: files of different lengths, or a bad alignment.
    """

    def __init__(self, data: SearchData) -> None:
        self._data = data
        self.left_out = self.unlinked = 0
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
                if all(0 < len(words) <= data.longest for words in pair):
                    for read, written in links:
                        self.links.add(read, written)
                        self.unlinked += len(read) == 1  # that of the ends
                    yield PhrasePair(*data.reading.sides(*pair), 1.0)
                else:
                    self.left_out += 1
            self.inputs = [
                reader.provenance(role) for role, reader in zip(paths, readers, strict=True)
            ]

    def _places(
        self, text: bytes, pair: tuple[list[bytes], list[bytes]], reader: LineReader
    ) -> tuple[Integers, Integers]:
        """Return the places that the network reads and writes of links, with those of END."""
        try:
            links = links_of(text.strip(), *map(len, pair))
        except ValueError as error:
            expected, found = error.args
            raise FormatError(reader.path, expected, found, reader.line_number) from None
        reading = self._data.reading
        words, writes = map(len, reading.sides(*pair))
        read, written = reading.places(*places_of(links), writes)
        return np.append(read, words), np.append(written, writes)
