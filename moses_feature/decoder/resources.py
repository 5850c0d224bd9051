"""The models of a system, loaded once for any number of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from moses_feature.decoder.language_model import NeuralScorer
from moses_feature.decoder.ngram_model import NgramModel
from moses_feature.decoder.system import System
from moses_feature.decoder.table_index import TableIndex


@dataclass(frozen=True)
class Resources:
    """The models of a system.

    Attributes:
        indexes: the indexes of its tables by their paths.
        language_models: its language models.
        operations: its operation sequence model, if there is one.
    """

    indexes: Mapping[str, TableIndex]
    language_models: tuple[NgramModel | NeuralScorer, ...]
    operations: tuple[NgramModel | NeuralScorer, ...]

    @classmethod
    def of(cls, system: System) -> Resources:
        """Load the models of a system.

        Args:
            system: the system.

        Raises:
            MosesFeatureError: a model cannot be read, or an index not be made.
        """
        tables = [table.path for table in system.tables]
        tables += [table.path for table in system.reordering_tables]
        cache = Path(system.cache) if system.cache else None
        return cls(
            {path: TableIndex(path) for path in tables},
            tuple(model.load(cache) for model in system.language_models),
            tuple(model.load(cache) for model in system.operations),
        )
