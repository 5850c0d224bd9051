"""The dense features of a log-linear model, with the names and order of Moses' n-best lists."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, zip_longest

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import Feature
from moses_feature.moses.nbest_lists import labelled_values
from moses_feature.moses.phrase_table import LOWEST_LOG_SCORE
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import MosesFeatureError

WeightsByName = Mapping[str, Sequence[float]]
"""By the names of features."""
STATEFUL = ("LexicalReordering", "Distortion", "KENLM", "NeuralLM", "OpSequenceModel")
"""Classes whose values Moses prints first (`moses/ScoreComponentCollection.cpp`)."""
UNTUNEABLE = "UnknownWordPenalty"


@dataclass(frozen=True)
class FeatureFunction:
    """A feature function with one or more values.

    Attributes:
        name: its name in the ini.
        weights: the weights of its values.
        tuneable: whether each weight may be tuned, as long as `weights`.
    """

    name: str
    weights: tuple[float, ...]
    tuneable: tuple[bool, ...]


@dataclass(frozen=True)
class FeatureSet:
    """The feature functions of a system in the order of n-best lists."""

    functions: tuple[FeatureFunction, ...]

    @classmethod
    def of_ini(cls, ini: MosesIni) -> FeatureSet:
        """Return the features of an ini: `STATEFUL` classes first, otherwise in its order.

        Raises:
            FormatError: a feature has no weights.
        """
        stateful = [feature for feature in ini.features if feature.kind in STATEFUL]
        stateless = [feature for feature in ini.features if feature.kind not in STATEFUL]
        return cls(tuple(_function(ini, feature) for feature in (*stateful, *stateless)))

    @property
    def weights(self) -> Floats:
        """(all features,) weights."""
        return np.array([weight for function in self.functions for weight in function.weights])

    @property
    def tuneable(self) -> NDArray[np.bool_]:
        """(all features,) bool, True for those that may be tuned and are in n-best lists."""
        return np.array([flag for function in self.functions for flag in function.tuneable])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tuneable features, such as `LM0_0`: the function and an index."""
        return tuple(
            f"{function.name}_{index}"
            for function in self.functions
            for index in range(sum(function.tuneable))
        )

    def columns(self, name: str) -> range:
        """Return the indices of a function's values among all features."""
        first = 0
        for function in self.functions:
            if function.name == name:
                return range(first, first + len(function.weights))
            first += len(function.weights)
        raise KeyError(name)

    def with_weights(self, tuned: Sequence[float] | Floats) -> FeatureSet:
        """Return the features with new weights for the tuneable ones."""
        values = iter(np.asarray(tuned, dtype=np.float64).tolist())
        return FeatureSet(
            tuple(
                replace(
                    function,
                    weights=tuple(
                        next(values) if tuneable else weight
                        for weight, tuneable in zip(
                            function.weights, function.tuneable, strict=True
                        )
                    ),
                )
                for function in self.functions
            )
        )

    def with_weights_of(self, ini: MosesIni) -> FeatureSet:
        """Return the features with their weights in an ini."""
        return FeatureSet(
            tuple(
                replace(function, weights=tuple(ini.weights[function.name].values))
                if function.name in ini.weights
                else function
                for function in self.functions
            )
        )

    def begun_by(self, weights: WeightsByName) -> FeatureSet | None:
        """Return the features with weights of some of them, and 0 for the others.

        A function may have more values than weights here; these are of the first ones. None if
        there are weights of other features.
        """
        here = {function.name: len(function.weights) for function in self.functions}
        if any(len(values) > here.get(name, 0) for name, values in weights.items()):
            return None
        return FeatureSet(
            tuple(
                replace(
                    function,
                    weights=tuple(
                        (known if known is not None else 0.0) if tuneable else own
                        for own, known, tuneable in zip_longest(
                            function.weights, weights.get(function.name, ()), function.tuneable
                        )
                    ),
                )
                for function in self.functions
            )
        )

    def has_more_than(self, weights: WeightsByName) -> bool:
        """Return whether there are tuneable values of which these are no weights."""
        return any(
            any(function.tuneable[len(weights.get(function.name, ())) :])
            for function in self.functions
        )

    def by_name(self) -> dict[str, tuple[float, ...]]:
        """Return all weights, by the name of the function."""
        return {function.name: function.weights for function in self.functions}

    def tuneable_by_name(self) -> dict[str, tuple[float, ...]]:
        """Return the weights of the values in n-best lists, by the name of the function."""
        return {
            function.name: tuple(compress(function.weights, function.tuneable))
            for function in self.functions
            if any(function.tuneable)
        }

    def template(self) -> bytes:
        """Return a %-template of the tuneable values, labelled and rounded as Moses prints them."""
        labels, places = self._form
        words = [b"%.6g"] * (len(labels) + len(places))
        for place, label in labels:
            words[place] = label.replace(b"%", b"%%")
        return b" ".join(words)

    def values(self, text: bytes) -> list[float]:
        """Return the values of the tuneable features from a labelled text, in any order.

        Raises:
            MosesFeatureError: features are missing, unknown, or have another number of values.
            ValueError: a value is not a finite number.
        """
        words = text.split()
        labels, places = self._form
        if len(words) == len(labels) + len(places) and all(
            words[place] == label for place, label in labels
        ):
            with suppress(ValueError):  # the other way says what is wrong
                values = [float(words[place]) for place in places]
                if all(map(math.isfinite, values)) and b"_" not in text:
                    return values
        by_name = labelled_values(text)
        expected = {f.name: sum(f.tuneable) for f in self.functions if any(f.tuneable)}
        found = {name: len(values) for name, values in by_name.items()}
        if names := [n for n in {**expected, **found} if expected.get(n) != found.get(n)]:
            wanted, there = (
                " ".join(f"{name}:{of.get(name, 0)}" for name in names) for of in (expected, found)
            )
            raise MosesFeatureError(f"expected the features {wanted}, found {there}")
        return [value for name in expected for value in by_name[name]]

    @cached_property
    def _form(self) -> tuple[list[tuple[int, bytes]], list[int]]:
        """The places of labels and values in a text in the usual order."""
        labels: list[tuple[int, bytes]] = []
        places: list[int] = []
        for function in self.functions:
            if count := sum(function.tuneable):
                first = len(labels) + len(places)
                labels.append((first, f"{function.name}=".encode()))
                places += range(first + 1, first + 1 + count)
        return labels, places


def log_score(text: bytes | str) -> float:
    """Return the natural log of a score as Moses takes it, not below -100.

    Raises:
        ValueError: the score is not a number, or negative (its log in Moses would be nan).
    """
    value = float(text)
    if not 0.0 <= value < math.inf:
        raise ValueError(text)
    return max(math.log(value), LOWEST_LOG_SCORE) if value else LOWEST_LOG_SCORE


def _function(ini: MosesIni, feature: Feature) -> FeatureFunction:
    if feature.name in ini.weights:
        weights = ini.weights[feature.name].values
    elif feature.kind == UNTUNEABLE:
        weights = (1.0,)  # Moses' default
    else:
        raise ini.error(feature.line_number, f"weights for {feature.name}", "none in [weight]")
    tuneable = feature.is_tuneable and feature.kind != UNTUNEABLE
    flags = feature.tuneable_components if tuneable else None
    return FeatureFunction(feature.name, weights, flags or (tuneable,) * len(weights))
