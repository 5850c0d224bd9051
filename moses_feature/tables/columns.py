"""Parts of a table on their way to the scorer and back: packed, then with the new columns.

The columns stand at the end of the score field, as Moses reads scores (see `docs/augmenting.md`):
exp(log p(target | source)), the natural log clipped to [-100, 0], and exp(-k) for k target words
outside the shortlist. Moses takes the natural log of both
(`moses/TranslationModel/RuleTable/LoaderStandard.cpp`).

No torch here: this runs in light processes beside the one that scores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moses_feature.files import Json
from moses_feature.moses.phrase_table import (
    ALIGNMENT,
    LOWEST_LOG_SCORE,
    SOURCE,
    TARGET,
    append_scores,
)
from moses_feature.moses.words import WordError, WordOptions
from moses_feature.scoring.packing import AnyPacker, Packed
from moses_feature.tables.parts import Part, checked_fields
from moses_feature.tables.writer import compressed


@dataclass(frozen=True)
class ScoredPart:
    """A part with its new columns.

    Attributes:
        content: the lines, compressed.
        lines: how many.
        clipped: of these, lines whose log probability was below -100.
        unknown_source_words, unknown_target_words: words outside the shortlists.
    """

    content: bytes
    lines: int
    clipped: int
    unknown_source_words: int
    unknown_target_words: int


class NewColumns:
    """Packs parts, and appends the columns to them in the same order.

    Args:
        packer: of the model.
        words: how tokens become words.
        table: the name of the table, for error messages.
        output: the name of the file that is written, which says how to compress.
        unknown_source: also append exp(-unknown source words).
    """

    def __init__(
        self, packer: AnyPacker, words: WordOptions, table: str, output: str, unknown_source: bool
    ) -> None:
        self._packer = packer
        self._words = words
        self._table = table
        self._output = output
        self._unknown_source = unknown_source
        self._waiting: deque[tuple[list[list[bytes]], Packed]] = deque()

    def __getstate__(self) -> Json:
        """Begin with nothing that waits in another process."""
        return {**self.__dict__, "_waiting": deque()}

    def pack(self, part: Part) -> Packed:
        """Return the pairs of a part, and remember its lines.

        Raises:
            FormatError: a line that is not one of a phrase table, with its number.
            WordError: a phrase that cannot be turned into words.
        """
        fields = [
            checked_fields(line, self._table, number, part.scores)
            for line, number in zip(part.lines, part.numbers, strict=True)
        ]
        pairs = list(map(self._pair, fields, part.numbers))
        packed = self._packer.pack(pairs)
        self._waiting.append((fields, packed))
        return packed

    def _pair(self, fields: list[bytes], number: int) -> tuple[list[bytes], list[bytes]]:
        alignment = fields[ALIGNMENT] if len(fields) > ALIGNMENT else b""
        try:
            return self._words.pair(fields[SOURCE], fields[TARGET], alignment)
        except WordError as error:
            raise WordError(f"{self._table} at line {number}: {error}") from None

    def append(self, log_probs: NDArray[np.float64]) -> ScoredPart:
        """Return the first part that was packed and is not scored yet, with its columns.

        Args:
            log_probs: (lines,) log p(target | source), natural logs.
        """
        fields, packed = self._waiting.popleft()
        content = b"".join(map(append_scores, fields, self._texts(log_probs, packed)))
        return ScoredPart(
            compressed(content, self._output),
            len(fields),
            int(np.count_nonzero(log_probs < LOWEST_LOG_SCORE)),
            int(packed.unknown_source.sum()),
            int(packed.unknown_target.sum()),
        )

    def _texts(self, log_probs: NDArray[np.float64], packed: Packed) -> Iterator[bytes]:
        """Yield the text of the new columns, six significant digits, line after line."""
        values = [
            np.exp(np.clip(log_probs, LOWEST_LOG_SCORE, 0.0)),
            np.exp(-np.minimum(packed.unknown_target, -LOWEST_LOG_SCORE)),
        ]
        if self._unknown_source:
            values.append(np.exp(-np.minimum(packed.unknown_source, -LOWEST_LOG_SCORE)))
        text = " ".join(["%.6g"] * len(values))
        for row in zip(*(column.tolist() for column in values), strict=True):
            yield (text % row).encode()
