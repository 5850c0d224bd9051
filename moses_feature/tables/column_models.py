"""The models that score a table, each with the columns that it appends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from moses_feature.networks.architectures import Dtype
from moses_feature.phrases.model import PhraseModel, load_model
from moses_feature.phrases.scorer import AnyScorer, Ensemble, packer_of, scorer_of
from moses_feature.runtime.errors import UsageError
from moses_feature.tables.columns import ColumnsOfModel
from moses_feature.tables.settings import INVERSE_COLUMN, PROBABILITY_COLUMN, AugmentSettings


@dataclass(frozen=True)
class ColumnModels:
    """A model, or several that are averaged, and the name of its columns.

    Attributes:
        name: the name in its columns; empty if there are no other models.
        models: models with the same shortlists, word options and direction.
    """

    name: str
    models: tuple[PhraseModel, ...]

    @property
    def first(self) -> PhraseModel:
        """The first model, for the properties that all share."""
        return self.models[0]

    def columns(self, settings: AugmentSettings) -> ColumnsOfModel:
        """Return the `ColumnsOfModel` that computes the columns."""
        direction, words = self.first.direction, settings.words(self.first)
        probability = INVERSE_COLUMN if direction.reverse else PROBABILITY_COLUMN
        prefix = f"{self.name}: " if self.name else ""
        names = (prefix + name for name in (probability, *settings.penalties(direction)))
        return ColumnsOfModel(tuple(names), packer_of(self.first), words)

    def scorer(
        self, device: torch.device, dtype: Dtype = "float32", threads: int | None = None
    ) -> AnyScorer:
        """Return a scorer of pairs for the models."""
        scorers = [scorer_of(model, device, dtype, threads) for model in self.models]
        return scorers[0] if len(scorers) == 1 else Ensemble(scorers)


def load_column_models(given: Sequence[tuple[str, Sequence[Path]]]) -> list[ColumnModels]:
    """Read models.

    Raises:
        UsageError: models of one name cannot be averaged.
        MosesFeatureError: a model cannot be read.
    """
    found = []
    for name, directories in given:
        models = tuple(load_model(directory) for directory in directories)
        for directory, model in zip(directories, models, strict=True):
            if _kind(model) != _kind(models[0]):
                raise UsageError(
                    f"{directory}: expected the shortlists, words and direction of "
                    f"{directories[0]}, to be averaged with it as {name}"
                )
        found.append(ColumnModels(name, models))
    return found


def _kind(model: PhraseModel) -> tuple[object, ...]:
    shortlists = model.source.shortlist, model.target.shortlist
    return *shortlists, model.words, model.escaped, model.direction
