"""Settings for augmenting a table; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_feature.networks.architectures import Dtype
from moses_feature.networks.direction import Direction
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM

PROBABILITY_COLUMN = "p(target|source)"
INVERSE_COLUMN = "p(source|target)"
UNKNOWN_TARGET_COLUMN = "exp(-unknown target words)"
UNKNOWN_SOURCE_COLUMN = "exp(-unknown source words)"


@dataclass(frozen=True, kw_only=True)
class AugmentSettings(TableWords):
    """How to augment a table.

    Attributes:
        inputs: texts; only lines whose source phrase occurs in them are kept. All lines if empty.
        unknown_target: append exp(-unknown target words).
        unknown_source: also append exp(-unknown source words).
        scoring_dtype: the type of the large matrix products.
    """

    inputs: Sequence[str] = ()
    unknown_target: bool = True
    unknown_source: bool = False
    scoring_dtype: Dtype = "float32"

    def check(self) -> None:
        """Check that the settings do not contradict each other, and that the input texts exist.

        Raises:
            UsageError: the settings contradict each other.
            MosesFeatureError: a text is missing.
        """
        if self.inputs and self.hierarchical:
            raise UsageError("--phrases-of keeps lines by plain phrases: not with --hierarchical")
        for path in self.inputs:
            if path == STANDARD_STREAM:
                raise UsageError("--phrases-of is read from a file: expected its name, found -")
            if not Path(path).exists():
                raise MosesFeatureError(f"{path}: No such file or directory")

    def penalties(self, direction: Direction) -> tuple[str, ...]:
        """Return the columns for unknown words that a model has beside its probability.

        A count of unknown source words, also of a model of p(source | target), is useless: it is
        the same in all derivations of a sentence.
        """
        if direction.reverse:
            return ()
        asked = {
            UNKNOWN_TARGET_COLUMN: self.unknown_target,
            UNKNOWN_SOURCE_COLUMN: self.unknown_source,
        }
        return tuple(column for column, is_asked in asked.items() if is_asked)
