"""Parts of a table on their way to the scorer and back: packed, then with the new columns.

The columns are appended to the score field, where Moses reads scores (see
`docs/reference/files.md`), model after model: exp(log p(target | source)), the natural log clipped
to [-100, 0], and exp(-k) for k target words outside the shortlist. Moses takes the natural log of
both (`moses/TranslationModel/RuleTable/LoaderStandard.cpp`).

No torch here: this runs in light processes beside the scorer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.phrase_table import (
    ALIGNMENT,
    LOWEST_LOG_SCORE,
    SOURCE,
    TARGET,
    append_scores,
    checked_fields,
)
from moses_feature.moses.words import WordError, WordOptions
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.pieces import PieceVocabulary
from moses_feature.networks.vocabulary import SYMBOLS, UNKNOWN
from moses_feature.phrases.packing import Packed, Packer, WordPair
from moses_feature.runtime.arrays import Bytes, Floats, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.files import Json
from moses_feature.runtime.strings import Strings, added, new_strings, slot_of
from moses_feature.tables.parts import PartOfTable
from moses_feature.tables.scan import ScannedLines, scan
from moses_feature.tables.settings import UNKNOWN_SOURCE_COLUMN, UNKNOWN_TARGET_COLUMN
from moses_feature.tables.writer import compressed


@compiled
def ids_of(strings: Strings, text: Bytes, words: Integers) -> NDArray[np.uint32]:
    """Return the ids (n,) of words of a text.

    Args:
        strings: the shortlist of a vocabulary.
        text: bytes.
        words: (n, 2) where each word begins and ends.
    """
    ids = np.empty(len(words), dtype=np.uint32)
    for word in range(len(words)):
        slot = slot_of(strings, text, words[word, 0], words[word, 1])
        number = strings.slots[slot] - 1
        ids[word] = UNKNOWN if number < 0 else number + len(SYMBOLS)
    return ids


Growing = Callable[[Iterable[bytes]], Iterable[bytes]]
"""Returns the lines, or pieces of them, with the text of each line's new columns."""


@dataclass(frozen=True)
class ScoredPart:
    """A part with its new columns.

    Attributes:
        content: the lines, compressed.
        lines: the number of lines.
        clipped: log probabilities that were below -100.
        unknown_source_words, unknown_target_words: words outside the shortlists of the first
            model.
    """

    content: bytes
    lines: int
    clipped: int
    unknown_source_words: int
    unknown_target_words: int


@dataclass(frozen=True)
class ColumnsOfModel:
    """The columns of a model: a probability, and penalties for unknown words.

    Attributes:
        names: names of the columns.
        packer: the packer of the model.
        words: how tokens become words.
    """

    names: tuple[str, ...]
    packer: Packer
    words: WordOptions

    @property
    def looks_words_up(self) -> bool:
        """Whether ids are found by looking tokens up as they stand: not if they become pieces."""
        in_pieces = any(isinstance(side, PieceVocabulary) for side in self.packer.sides)
        return self.words.plain and not in_pieces

    def values(self, log_probs: Floats, packed: Packed) -> list[Floats]:
        """Return the columns (lines,) of what the model found for a part."""
        counts = {
            UNKNOWN_TARGET_COLUMN: packed.unknown_target,
            UNKNOWN_SOURCE_COLUMN: packed.unknown_source,
        }
        penalties = (counts[name.rpartition(": ")[2]] for name in self.names[1:])
        return [
            np.exp(np.clip(log_probs, LOWEST_LOG_SCORE, 0.0)),
            *(np.exp(-np.minimum(count, -LOWEST_LOG_SCORE)) for count in penalties),
        ]


class NewColumns:
    """Packs parts, and appends the columns to them.

    Args:
        models: the models whose columns are appended, in this order.
        table: the name of the table, for error messages.
        output: the name of the output file; its suffix determines the compression.
    """

    def __init__(self, models: Sequence[ColumnsOfModel], table: str, output: str) -> None:
        self._models = models
        self._table = table
        self._output = output
        self._looks_words_up = all(model.looks_words_up for model in models)
        self._shortlists: list[list[Strings]] = []
        self._waiting: dict[int, tuple[Growing, list[Packed]]] = {}

    def __getstate__(self) -> Json:
        """Leave out the parts that wait for their columns in this process."""
        return {**self.__dict__, "_waiting": {}, "_shortlists": []}

    def pack(self, part: PartOfTable) -> list[Packed]:
        """Return the pairs of a part for each model, and remember its lines.

        Raises:
            FormatError: a line that is not one of a phrase table, with its number.
            WordError: a phrase cannot be turned into words.
        """
        scanned = None
        if self._looks_words_up:
            scanned = scan(part.content, len(part.numbers), part.scores)
        growing, packed = self._read(part) if scanned is None else self._looked_up(scanned)
        self._waiting[part.number] = growing, packed
        return packed

    def _looked_up(self, lines: ScannedLines) -> tuple[Growing, list[Packed]]:
        """Pack ordinary lines."""
        if not self._shortlists:
            self._shortlists = [
                [added(new_strings(), list(side.shortlist))[0] for side in model.packer.sides]
                for model in self._models
            ]
        text = np.frombuffer(lines.content, dtype=np.uint8)
        packed = []
        for model, (source, target) in zip(self._models, self._shortlists, strict=True):
            pairs = (
                PackedSequences(ids_of(source, text, lines.source), lines.source_offsets),
                PackedSequences(ids_of(target, text, lines.target), lines.target_offsets),
            )
            packed.append(model.packer.pack_numbered(*pairs))
        return lines.grown, packed

    def _read(self, part: PartOfTable) -> tuple[Growing, list[Packed]]:
        """Pack lines that may be bad, or whose tokens must be turned into words."""
        fields = [
            checked_fields(line, self._table, number, part.scores)
            for line, number in zip(part.lines, part.numbers, strict=True)
        ]
        packed = []
        for model in self._models:
            with_words = partial(self._pair, model.words)
            packed.append(model.packer.pack(list(map(with_words, fields, part.numbers))))
        return partial(map, append_scores, fields), packed

    def _pair(self, words: WordOptions, fields: list[bytes], number: int) -> WordPair:
        alignment = fields[ALIGNMENT] if len(fields) > ALIGNMENT else b""
        try:
            return words.pair(fields[SOURCE], fields[TARGET], alignment)
        except WordError as error:
            raise WordError(f"{self._table} at line {number}: {error}") from None

    def append(self, number: int, log_probs: Sequence[Floats]) -> ScoredPart:
        """Append the columns to a part that was packed here, and return it.

        Args:
            number: that of the part.
            log_probs: (lines,) log p, natural logs, for each model.
        """
        growing, packed = self._waiting.pop(number)
        found = zip(self._models, log_probs, packed, strict=True)
        columns = [c for model, scores, of_model in found for c in model.values(scores, of_model)]
        content = b"".join(growing(_texts(columns)))
        return ScoredPart(
            compressed(content, self._output),
            len(packed[0].target_lengths),
            sum(int(np.count_nonzero(of_model < LOWEST_LOG_SCORE)) for of_model in log_probs),
            int(packed[0].unknown_source.sum()),
            int(packed[0].unknown_target.sum()),
        )


def _texts(columns: Sequence[Floats]) -> Iterator[bytes]:
    """Yield the text of the columns line by line, with six significant digits."""
    text = " ".join(["%.6g"] * len(columns))
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield (text % row).encode()
