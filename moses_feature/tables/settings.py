"""How to augment a table; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from moses_feature.errors import MosesFeatureError, UsageError
from moses_feature.files import STANDARD_STREAM
from moses_feature.models.any_model import AnyModel
from moses_feature.models.sizes import Dtype
from moses_feature.moses.words import WordOptions

PROBABILITY_COLUMN = "p(target|source)"
UNKNOWN_TARGET_COLUMN = "exp(-unknown target words)"
UNKNOWN_SOURCE_COLUMN = "exp(-unknown source words)"


@dataclass(frozen=True, kw_only=True)
class TableWords:
    """How the tokens of a table become words of a model's vocabularies.

    Attributes:
        escaped: whether the table's tokens are escaped; `auto` takes them as Moses does (`yes`).
        source_factor, target_factor: factors to score; None for those of the model.
        hierarchical: score hierarchical rules too.
    """

    escaped: Literal["auto", "yes", "no"] = "auto"
    source_factor: int | None = None
    target_factor: int | None = None
    hierarchical: bool = False

    def words(self, model: AnyModel) -> WordOptions:
        """Return what makes words of the model out of the table's tokens."""
        options = replace(
            model.words,
            escaping=self._escaping(model),
            hierarchical=self.hierarchical or model.words.hierarchical,
        )
        if self.source_factor is not None:
            options = replace(options, source_factor=self.source_factor)
        if self.target_factor is not None:
            options = replace(options, target_factor=self.target_factor)
        return options

    def _escaping(self, model: AnyModel) -> Literal["as-is", "unescape", "escape"]:
        """Return what to do to tokens that are escaped or not, for the model that reads them."""
        if self.escaped == "no":
            return "escape" if model.escaped else "as-is"
        return "as-is" if model.escaped else "unescape"


@dataclass(frozen=True, kw_only=True)
class AugmentSettings(TableWords):
    """How to augment a table.

    Attributes:
        inputs: texts; only lines whose source phrase occurs in them are kept. All lines if empty.
        unknown_source: also append exp(-unknown source words).
        scoring_dtype: of the large matrix products.
    """

    inputs: Sequence[str] = ()
    unknown_source: bool = False
    scoring_dtype: Dtype = "float32"

    def check(self) -> None:
        """Check that the settings make sense together, and that the input texts are there.

        Raises:
            UsageError: they do not.
            MosesFeatureError: a text is missing.
        """
        if self.inputs and self.hierarchical:
            raise UsageError("--input keeps lines by plain phrases: not with --hierarchical")
        for path in self.inputs:
            if path == STANDARD_STREAM:
                raise UsageError("--input is read from a file: expected its name, found -")
            if not Path(path).exists():
                raise MosesFeatureError(f"{path}: No such file or directory")

    def columns(self) -> list[str]:
        """Return the names of the appended columns."""
        names = [PROBABILITY_COLUMN, UNKNOWN_TARGET_COLUMN]
        return [*names, UNKNOWN_SOURCE_COLUMN] if self.unknown_source else names
