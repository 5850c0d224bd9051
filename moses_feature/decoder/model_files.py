"""The language models, neural and other, that a moses.ini names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from moses_feature.cslm.nplm import load_neural_lm
from moses_feature.cslm.scorer import NeuralLM
from moses_feature.decoder.language_model import NeuralScorer
from moses_feature.decoder.ngram_model import NgramModel, read_ngram_model
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import Feature
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import is_readable_file, with_or_without_gz


@dataclass(frozen=True)
class LanguageModelFile:
    """A language model: its file and its feature function.

    Attributes:
        path: the file, or the directory of a neural model.
        name: the name of the feature function.
        order: the order that a neural model must have; None for an n-gram model.
        factor: of the words that it reads.
    """

    path: str
    name: str
    order: int | None = None
    factor: int = 0

    def load(self, cache: Path | None = None) -> NgramModel | NeuralScorer:
        """Read the model.

        Args:
            cache: see `read_ngram_model`.

        Raises:
            MosesFeatureError: the model cannot be read, or has another order.
        """
        if self.order is not None:
            return self.load_neural()
        return read_ngram_model(self.path, cache).with_factor(self.factor)

    def load_neural(self) -> NeuralLM:
        """Read a neural model; see `load`."""
        scorer = load_neural_lm(self.path)
        if scorer.order != self.order:
            raise MosesFeatureError(
                f"{self.path}: expected a model of order {self.order} as the ini says, found "
                f"{scorer.order}"
            )
        return scorer


def neural_lm_of(ini: MosesIni, feature: Feature) -> LanguageModelFile:
    """Return the neural language model of a `NeuralLM` line.

    Raises:
        FormatError: the line names no model, or no order.
    """
    order = _number(ini, feature, "order", 1)
    path = feature.arguments.get("path", "")
    path = path if path and Path(path).is_dir() else file_of(ini, feature)
    return LanguageModelFile(path, feature.name, order)


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
