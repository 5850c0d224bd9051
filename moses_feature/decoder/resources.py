"""The models of a system, loaded once for any number of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moses_feature.decoder.kenlm import KenlmModel
from moses_feature.decoder.language_model import NgramScorer
from moses_feature.decoder.system import System
from moses_feature.decoder.table_index import TableIndex
from moses_feature.joint.scorer import JointModel
from moses_feature.sentences.decoder_feature import NetworkFeature


@dataclass(frozen=True)
class Resources:
    """The models of a system.

    Attributes:
        indexes: the indexes of its tables by their paths; tables without one are read whole.
        joint: its joint models.
        networks: its networks for sentences; they read one text at a time.
    """

    indexes: Mapping[str, TableIndex]
    joint: tuple[JointModel, ...]
    networks: tuple[NetworkFeature, ...]
    _plain: tuple[KenlmModel | NgramScorer, ...]
    _operations: tuple[KenlmModel, ...]

    @classmethod
    def of(cls, system: System, indexed: bool = False) -> Resources:
        """Load the models of a system.

        Args:
            system: the system.
            indexed: whether lines of tables are looked up in indexes, which are made if missing.

        Raises:
            MosesFeatureError: a model cannot be read, or an index not be made.
        """
        tables = [table.path for table in system.tables]
        tables += [table.path for table in system.reordering_tables]
        return cls(
            {path: TableIndex(path) for path in tables} if indexed else {},
            tuple(model.load() for model in system.joint_models),
            tuple(model.load() for model in system.networks),
            tuple(model.load() for model in system.language_models),
            tuple(KenlmModel(model.path) for model in system.operations),
        )

    def language_models(self) -> list[KenlmModel | NgramScorer]:
        """Return the language models; those of KenLM have numbered no words yet."""
        return [of.without_words() if isinstance(of, KenlmModel) else of for of in self._plain]

    def operations(self) -> list[KenlmModel]:
        """Return the operation sequence model, if there is one; it has numbered no words yet."""
        return [of.without_words() for of in self._operations]
