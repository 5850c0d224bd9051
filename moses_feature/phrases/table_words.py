"""What the users of a model need to know of it, and how tokens of a table become its words.

A model is one network or several; free of torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from moses_feature.moses.words import WordOptions
from moses_feature.networks.direction import Reading
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.runtime.files import Json


class AnyModel(Protocol):
    """A network, or several, as their users see them."""

    @property
    def source(self) -> Vocabulary:
        """The shortlist of the source side."""

    @property
    def target(self) -> Vocabulary:
        """The shortlist of the target side."""

    @property
    def words(self) -> WordOptions:
        """How tokens became words when it was trained."""

    @property
    def training(self) -> Json:
        """Settings, results and provenance."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides the scores."""

    @property
    def seed(self) -> int | None:
        """The seed that it was trained with."""

    @property
    def reading(self) -> Reading:
        """The direction in which it reads and writes pairs."""

    @property
    def escaped(self) -> bool:
        """Whether the words of the shortlists are escaped."""


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
