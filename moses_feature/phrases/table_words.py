"""The interface of a model for its users, and how the tokens of a table become its words.

A model is one network or several; free of torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from moses_feature.moses.words import WordOptions
from moses_feature.networks.direction import Direction
from moses_feature.networks.vocabulary import Vocabulary


class AnyModel(Protocol):
    """One network or several, as their users see them."""

    @property
    def source(self) -> Vocabulary:
        """The shortlist of the source side."""

    @property
    def target(self) -> Vocabulary:
        """The shortlist of the target side."""

    @property
    def words(self) -> WordOptions:
        """How tokens became words in training."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines the scores."""

    @property
    def direction(self) -> Direction:
        """The direction in which the model reads and writes pairs."""

    @property
    def escaped(self) -> bool:
        """Whether the words of the shortlists are escaped."""


Escaped = Literal["auto", "yes", "no"]


@dataclass(frozen=True, kw_only=True)
class TableWords:
    """How the tokens of a table become words of a model's vocabularies.

    Attributes:
        escaped: whether the table's tokens are escaped; `auto` assumes so, like Moses (`yes`).
        source_factor, target_factor: factors to score; None for those of the model.
        hierarchical: also score hierarchical rules.
    """

    escaped: Escaped = "auto"
    source_factor: int | None = None
    target_factor: int | None = None
    hierarchical: bool = False

    def words(self, model: AnyModel) -> WordOptions:
        """Return how the table's tokens become words of the model."""
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
        """Return how to change the escaping of the table's tokens for the model."""
        if self.escaped == "no":
            return "escape" if model.escaped else "as-is"
        return "as-is" if model.escaped else "unescape"
