"""Checks of a moses.ini alone: factors, and weights."""

from __future__ import annotations

from collections.abc import Iterator

from moses_feature.doctor.finding import Finding
from moses_feature.moses.features import UNTUNEABLE
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import Weights

LEAST = 1e-30
"""Scores of 32 bits are lost in rounding with smaller weights."""
LARGEST_USUAL = 10.0
"""Usual weights are at most of the order of 1, except that of unknown words."""


def check_factors(ini: MosesIni) -> Iterator[Finding]:
    """Yield text tables that do not say which factors their words have."""
    for feature in ini.features:
        lacks = [key for key in ("input-factor", "output-factor") if key not in feature.arguments]
        if feature.kind == "PhraseDictionaryMemory" and lacks:
            yield Finding(
                "problem",
                f"{ini.path} at line {feature.line_number}",
                f"no {' and no '.join(f'{key}=' for key in lacks)} of {feature.name}",
                "Moses takes every phrase pair for every phrase, or stops (`factor == __null`)",
                "add input-factor=0 output-factor=0",
            )


def check_weights(ini: MosesIni) -> Iterator[Finding]:
    """Yield suspicious weights: missing, all zero, much too large."""
    where = str(ini.path)
    values = [value for _, weights in _usual_weights(ini) for value in weights.values]
    if not values:
        yield Finding(
            "problem",
            where,
            "no weights but that of unknown words",
            "all translations of a sentence have the same score",
            "give each feature its weights in [weight]",
        )
    elif max(map(abs, values)) < LEAST:
        yield Finding(
            "problem",
            where,
            "all weights are 0" if not any(values) else "all weights are nearly 0",
            "all translations of a sentence have the same score: what comes out is arbitrary. A "
            "tuning whose BLEU was 0 leaves such an ini, with exit code 0",
            "start from other weights, and see that the references are in the target language",
        )
    yield from _features_without_weights(ini)
    yield from _weights_of_zero(ini)
    yield from _large_weights(ini)


def _usual_weights(ini: MosesIni) -> list[tuple[str, Weights]]:
    """Return the weights of all features except unknown words, which may be large."""
    of_unknown_words = {feature.name for feature in ini.features if feature.kind == UNTUNEABLE}
    return [
        (name, weights) for name, weights in ini.weights.items() if name not in of_unknown_words
    ]


def _features_without_weights(ini: MosesIni) -> Iterator[Finding]:
    for feature in ini.features:
        if feature.name in ini.weights or feature.kind == UNTUNEABLE:
            continue
        yield Finding(
            "problem" if feature.is_tuneable else "warning",
            f"{ini.path} at line {feature.line_number}",
            f"no weights for {feature.name}",
            f"{'mert-tune and mert-moses.pl stop' if feature.is_tuneable else 'mert-tune stops'}; "
            "Moses weighs it with what it has by default",
            f"write {feature.name}= and its weights into [weight]",
        )


def _weights_of_zero(ini: MosesIni) -> Iterator[Finding]:
    usual = _usual_weights(ini)
    if all(abs(value) < LEAST for _, weights in usual for value in weights.values):
        return  # reported for all of them together
    for name, weights in usual:
        if max(map(abs, weights.values)) < LEAST:
            nearly = "nearly " if any(weights.values) else ""
            yield Finding(
                "warning",
                f"{ini.path} at line {weights.line_number}",
                f"all weights of {name} are {nearly}0",
                "it takes no part until it is tuned",
                "give it small positive weights to begin with, 0.1 or 0.2",
            )


def _large_weights(ini: MosesIni) -> Iterator[Finding]:
    for name, weights in _usual_weights(ini):
        if max(map(abs, weights.values)) > LARGEST_USUAL:
            yield Finding(
                "warning",
                f"{ini.path} at line {weights.line_number}",
                f"a weight of {name} is {max(weights.values, key=abs):g}",
                "one feature decides alone",
                "weights are of the order of 0.01 to 1",
            )
