"""What the users of a model, of one network or of several, need to know of it; free of torch."""

from __future__ import annotations

from typing import Protocol

from moses_feature.files import Json
from moses_feature.models.vocabulary import Vocabulary
from moses_feature.moses.words import WordOptions


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
    def escaped(self) -> bool:
        """Whether the words of the shortlists are escaped."""
