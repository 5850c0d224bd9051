"""The language models, neural and other, that a moses.ini names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from moses_feature.cslm.nplm import load_neural_lm
from moses_feature.cslm.scorer import NeuralLM
from moses_feature.decoder.kenlm import KenlmModel
from moses_feature.decoder.language_model import NgramScorer
from moses_feature.joint.nplm import JointFiles, load_joint_model
from moses_feature.joint.scorer import JointModel
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import Feature
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import is_readable_file, with_or_without_gz
from moses_feature.sentences.decoder_feature import DEFAULT_HISTORY, NetworkFeature

LONGEST_HISTORY = 1 << 20
"""The history for `history=all`: more words than any sentence has."""


@dataclass(frozen=True)
class LanguageModelFile:
    """A language model: its file and its feature function.

    Attributes:
        path: the file, or the directory of a neural model.
        name: the name of the feature function.
        order: the order that a neural model must have; None for KenLM.
        factor: of the words that it reads.
    """

    path: str
    name: str
    order: int | None = None
    factor: int = 0

    def load(self) -> KenlmModel | NgramScorer:
        """Read the model.

        Raises:
            MosesFeatureError: the model cannot be read, or has another order.
        """
        return KenlmModel(self.path, self.factor) if self.order is None else self.load_neural()

    def load_neural(self) -> NeuralLM:
        """Read a neural model; see `load`."""
        scorer = load_neural_lm(self.path)
        if scorer.order != self.order:
            raise MosesFeatureError(
                f"{self.path}: expected a model of order {self.order} as the ini says, found "
                f"{scorer.order}"
            )
        return scorer


@dataclass(frozen=True)
class JointModelFile:
    """A joint language model: its files and its feature function."""

    files: JointFiles
    name: str

    def load(self) -> JointModel:
        """Read the model.

        Raises:
            MosesFeatureError: the model cannot be read, or has other sizes.
        """
        return load_joint_model(self.files)


@dataclass(frozen=True)
class SentenceNetworkFile:
    """A network for sentences: its directory and its feature function.

    Attributes:
        path: the model directory.
        name: the name of the feature function.
        history: hypotheses recombine if this many of their last words are the same.
    """

    path: str
    name: str
    history: int

    def load(self) -> NetworkFeature:
        """Read the model.

        Raises:
            MosesFeatureError: the model cannot be read, or has another direction.
        """
        return NetworkFeature(Path(self.path))


def neural_lm_of(ini: MosesIni, feature: Feature) -> LanguageModelFile:
    """Return the neural language model of a `NeuralLM` line.

    Raises:
        FormatError: the line names no model, or no order.
    """
    order = _number(ini, feature, "order", 1)
    path = feature.arguments.get("path", "")
    path = path if path and Path(path).is_dir() else file_of(ini, feature)
    return LanguageModelFile(path, feature.name, order)


def joint_model_of(ini: MosesIni, feature: Feature) -> JointModelFile:
    """Return the joint model of a `BilingualNPLM` line.

    Raises:
        FormatError: a file, or a size, is missing.
    """
    sizes = _number(ini, feature, "order", 2), _number(ini, feature, "source_window", 0)
    path = feature.arguments.get("path", "")
    if path and Path(path).is_dir():
        return JointModelFile(JointFiles(path, *sizes), feature.name)
    lists = (file_of(ini, feature, key) for key in ("source_vocab", "target_vocab"))
    return JointModelFile(JointFiles(file_of(ini, feature), *sizes, *lists), feature.name)


def sentence_network_of(ini: MosesIni, feature: Feature) -> SentenceNetworkFile:
    """Return the network of a `SentenceNetwork` line.

    Raises:
        FormatError: the line names no model directory, or its history is no number.
    """
    path = feature.arguments.get("path")
    if not path or not Path(path).is_dir():
        expected = f"path=…, a model directory for {feature.name}"
        raise ini.error(feature.line_number, expected, path or "none")
    history = LONGEST_HISTORY
    if feature.arguments.get("history") != "all":
        history = _number(ini, feature, "history", 0, f"{DEFAULT_HISTORY}")
    return SentenceNetworkFile(path, feature.name, history)


def _number(ini: MosesIni, feature: Feature, key: str, least: int, default: str = "") -> int:
    text = feature.arguments.get(key, default)
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < least:
        expected = f"{key}=… for {feature.name}, a number of {least} or more"
        raise ini.error(feature.line_number, expected, repr(text))
    return int(text)


def file_of(ini: MosesIni, feature: Feature, key: str = "path") -> str:
    """Return the path of a file that a feature function names, or that path with `.gz` added.

    Raises:
        FormatError: there is no such file.
    """
    path = feature.arguments.get(key)
    if path is None:
        raise ini.error(feature.line_number, f"{key}=… for {feature.name}", "none")
    if is_readable_file(found := with_or_without_gz(path)):
        return str(found)
    raise ini.error(feature.line_number, f"a file for {feature.name}", f"none at {path}")
