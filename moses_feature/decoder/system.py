"""The settings of a moses.ini for the embedded decoder; it refuses what it cannot follow."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moses_feature.decoder.limits import DEFAULT_POPS, DEFAULT_STACK, SearchBounds, SearchLimits
from moses_feature.decoder.model_files import (
    LanguageModelFile,
    file_of,
    neural_lm_of,
)
from moses_feature.decoder.operation_steps import OPERATION_VALUES
from moses_feature.decoder.options import WINDOW
from moses_feature.decoder.reordering import ReorderingType
from moses_feature.moses.features import FeatureSet, log_score
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import Feature
from moses_feature.runtime.errors import MosesFeatureError, UsageError

FACTORS = {"input-factor", "output-factor"}
KEYS: dict[str, set[str]] = {
    "Distortion": set(),
    "KENLM": {"factor", "order", "path", "lazyken"},
    "NeuralLM": {"factor", "order", "path"},
    "LexicalReordering": {"type", "path", "default-scores", *FACTORS},
    "PhraseDictionaryMemory": {"path", "table-limit", "cache-size", "verbosity", *FACTORS},
    "OpSequenceModel": {"path", "support-features", "load", *FACTORS},
    "PhrasePenalty": set(),
    "UnknownWordPenalty": set(),
    "WordPenalty": set(),
}
"""Classes of feature functions that can be decoded, and the keys that each may have."""
GONE = {
    "SentenceNetwork": "which versions since 0.3 have in lists alone (mert-tune --rescore, "
    "mert-compare --rescore)",
    "BilingualNPLM": "which versions since 0.3 do not have (Moses reads it)",
}
"""Classes that earlier versions could decode."""
KEYS_OF_ALL = {"tuneable", "tuneable-components", "num-features"}
AT_MOST_ONCE = ("Distortion", "PhrasePenalty", "UnknownWordPenalty", "WordPenalty")
"""Classes of one score."""
OPERATIONS = "OpSequenceModel"
ALIGNMENTS, SEGMENTATION = "print-alignment-info-in-n-best", "include-segmentation-in-n-best"
LANGUAGE_MODELS = ("KENLM", "NeuralLM")
NO_EFFECT = (
    "feature",
    "weight",
    "input-factors",
    "output-factors",
    "mapping",
    "threads",
    "verbose",
    "search-algorithm",
    "cube-pruning-diversity",
    "n-best-list",
    ALIGNMENTS,
    SEGMENTATION,
)
DEFAULT_DISTORTION_LIMIT = -1
DEFAULT_TABLE_LIMIT = 20
MOST_OPTIONS = 50
"""Options of a span that Moses keeps (`max-trans-opt-per-coverage`)."""


@dataclass(frozen=True)
class PhraseTable:
    """A phrase table: file, feature function, number of scores, options of a phrase (0: all)."""

    path: str
    name: str
    scores: int
    limit: int


@dataclass(frozen=True)
class ReorderingTable:
    """A lexicalised reordering table.

    Attributes:
        path: the file.
        name: the name of the feature function.
        type: the type of the model.
        on_target: whether its lines have a target phrase.
        default: scores (natural logs) of phrase pairs that are not in the table; None for 0, as in
            Moses.
    """

    path: str
    name: str
    type: ReorderingType
    on_target: bool
    default: tuple[float, ...] | None


@dataclass(frozen=True)
class System:
    """A phrase-based system.

    Attributes:
        features: all features with the weights of the ini.
        tables: phrase tables.
        reordering_tables: lexicalised reordering models.
        language_models: language models.
        operations: the operation sequence model, if there is one.
        names: names of the feature functions that occur at most once, by class.
        distortion_limit: the longest jump in source words.
        settings: numbers from other sections: `stack`, `cube-pruning-pop-limit`,
            `max-phrase-length`.
        target_factors: factors of target words; translations show the first one.
        alignments: whether n-best lists have word alignments
            (`print-alignment-info-in-n-best`).
        segmentation: whether they have the phrases (`include-segmentation-in-n-best`).
        cache: a directory for parsed ARPA files; None for no cache.
    """

    features: FeatureSet
    tables: tuple[PhraseTable, ...]
    reordering_tables: tuple[ReorderingTable, ...]
    language_models: tuple[LanguageModelFile, ...]
    operations: tuple[LanguageModelFile, ...]
    names: dict[str, str]
    distortion_limit: int
    settings: dict[str, int]
    target_factors: int = 1
    alignments: bool = False
    segmentation: bool = False
    cache: str | None = None

    @property
    def reads_links(self) -> bool:
        """Whether the links of phrase pairs are needed."""
        return self.alignments or bool(self.operations)

    def limits(self, given: SearchLimits) -> SearchBounds:
        """Return the limits of its search: given ones, or those of the ini, or Moses' defaults."""
        return SearchBounds(
            given.pops or self.settings.get("cube-pruning-pop-limit", DEFAULT_POPS),
            given.stack or self.settings.get("stack", DEFAULT_STACK),
            self.distortion_limit,
        )

    @classmethod
    def of_ini(cls, ini: MosesIni) -> System:
        """Build the system that an ini describes.

        Raises:
            FormatError: a feature function cannot be decoded; with its line.
            MosesFeatureError: a setting cannot be followed, or a file is missing.
        """
        for feature in ini.features:
            _check_feature(ini, feature)
        _check_mapping(ini)
        target_factors = _target_factors(ini)
        found: dict[str, list[Any]] = {kind: [] for kind, _ in READERS.values()}
        names: dict[str, str] = {}
        for feature in ini.features:
            if feature.kind in READERS:
                kind, read = READERS[feature.kind]
                found[kind].append(read(ini, feature))
            else:
                names[feature.kind] = feature.name
        if not found["tables"]:
            raise MosesFeatureError(f"{ini.path}: expected a PhraseDictionaryMemory, found none")
        settings = _settings(ini)
        limit = settings.pop("distortion-limit", DEFAULT_DISTORTION_LIMIT)
        models: dict[str, Any] = {kind: tuple(of) for kind, of in found.items()}
        return cls(
            features=FeatureSet.of_ini(ini),
            **models,
            names=names,
            distortion_limit=WINDOW if limit < 0 else min(limit, WINDOW),
            settings=settings,
            target_factors=target_factors,
            alignments=_is_set(ini, ALIGNMENTS),
            segmentation=_is_set(ini, SEGMENTATION),
        )


def _is_set(ini: MosesIni, name: str) -> bool:
    return ini.settings.get(name, ["false"]) in (["true"], ["1"], [])


def _check_feature(ini: MosesIni, feature: Feature) -> None:
    line = feature.line_number
    if feature.kind not in KEYS:
        if feature.kind in GONE:
            raise ini.error(line, f"no {feature.kind}, {GONE[feature.kind]}", "one")
        valid = ", ".join(KEYS)
        raise ini.error(line, f"a feature function that can be decoded ({valid})", feature.kind)
    unknown = set(feature.arguments) - KEYS[feature.kind] - KEYS_OF_ALL
    if unknown:
        raise ini.error(line, f"keys of {feature.kind} that can be followed", ", ".join(unknown))
    if (factor := feature.arguments.get("input-factor", "0")) != "0":
        raise ini.error(line, "input-factor=0: one factor", f"input-factor={factor}")
    same = [other for other in ini.features if other.kind == feature.kind]
    if feature.kind in (*AT_MOST_ONCE, OPERATIONS) and len(same) > 1:
        raise ini.error(line, f"one {feature.kind}", f"{len(same)}")
    if feature.kind in (*AT_MOST_ONCE, *LANGUAGE_MODELS) and feature.score_count != 1:
        raise ini.error(line, f"one score of {feature.kind}", f"{feature.score_count}")
    if feature.kind == OPERATIONS:
        alone = feature.arguments.get("support-features") == "no"
        expected = "1, with support-features=no" if alone else "5"
        if feature.score_count != (1 if alone else OPERATION_VALUES):
            raise ini.error(line, f"num-features={expected}", f"{feature.score_count}")


def _target_factors(ini: MosesIni) -> int:
    """Return how many factors the target words of all tables have.

    Raises:
        FormatError: tables of different factors, or a model of a factor that they do not have.
    """
    of_tables = next((table.arguments.get("output-factor", "0") for table in ini.tables()), "0")
    count = len(of_tables.split(","))
    expected = ",".join(map(str, range(count)))
    for feature in ini.features:
        wanted = "0" if feature.kind == OPERATIONS else expected
        if (found := feature.arguments.get("output-factor", wanted)) != wanted:
            raise ini.error(feature.line_number, f"output-factor={wanted}", found)
        factor = feature.arguments.get("factor", "0")
        most = count if feature.kind == "KENLM" else 1
        if factor not in map(str, range(most)):
            known = ", ".join(map(str, range(most)))
            raise ini.error(feature.line_number, f"factor={known}", f"factor={factor}")
    return count


def _check_mapping(ini: MosesIni) -> None:
    """Check that each phrase table is a decoding path of its own."""
    for section in ("input-factors", "output-factors"):
        if ini.settings.get(section, ["0"]) != ["0"]:
            raise MosesFeatureError(f"{ini.path}: [{section}]: expected 0 alone: one factor")
    lines = ini.settings.get("mapping")
    if lines is None:
        return
    steps = [re.fullmatch(r"(?:([0-9]+) )?T ([0-9]+)", " ".join(line.split())) for line in lines]
    used = sorted(int(step[2]) for step in steps if step)
    graphs = {step[1] for step in steps if step}
    if None in steps or used != list(range(len(ini.tables()))) or len(graphs) != len(lines):
        raise MosesFeatureError(
            f"{ini.path}: [mapping]: expected each phrase table as a decoding path of its own "
            f"(0 T 0, 1 T 1, …), found {'; '.join(lines)}"
        )


def _settings(ini: MosesIni) -> dict[str, int]:
    numbers = {}
    known = ("distortion-limit", "stack", "cube-pruning-pop-limit", "max-phrase-length")
    for section, lines in ini.settings.items():
        if section in NO_EFFECT:
            continue
        if section not in known:
            raise MosesFeatureError(
                f"{ini.path}: [{section}] cannot be followed by the embedded decoder"
            )
        if len(lines) != 1 or not re.fullmatch(r"-?[0-9]{1,9}", lines[0]):
            raise MosesFeatureError(f"{ini.path}: [{section}]: expected a number, found {lines}")
        numbers[section] = int(lines[0])
    return numbers


def _phrase_table(ini: MosesIni, feature: Feature) -> PhraseTable:
    limit = feature.arguments.get("table-limit", str(DEFAULT_TABLE_LIMIT))
    if not re.fullmatch("[0-9]{1,9}", limit):
        raise ini.error(feature.line_number, "table-limit: a number", repr(limit))
    return PhraseTable(file_of(ini, feature), feature.name, feature.score_count, int(limit))


def _reordering_table(ini: MosesIni, feature: Feature) -> ReorderingTable:
    if "type" not in feature.arguments:
        raise ini.error(feature.line_number, "type=… of the reordering model", "none")
    try:
        kind = ReorderingType.parse(feature.arguments["type"])
    except UsageError as error:
        raise MosesFeatureError(f"{ini.path} at line {feature.line_number}: {error}") from None
    weights = ini.weights.get(feature.name)
    if weights is not None and len(weights.values) != kind.features:
        raise ini.error(
            weights.line_number,
            f"{kind.features} weights for {feature.arguments['type']}",
            f"{len(weights.values)}",
        )
    default = None
    if "default-scores" in feature.arguments:
        text = feature.arguments["default-scores"]
        try:
            default = tuple(map(log_score, text.split(",")))
        except ValueError:
            default = ()
        if len(default) != kind.scores:
            raise ini.error(feature.line_number, f"{kind.scores} default-scores", text)
    on_target = "output-factor" in feature.arguments  # Moses decides by this key, not by the type
    if kind.on_target and not on_target:
        expected = f"output-factor=0 for {feature.arguments['type']}"
        raise ini.error(feature.line_number, expected, "none")
    return ReorderingTable(file_of(ini, feature), feature.name, kind, on_target, default)


def _kenlm(ini: MosesIni, feature: Feature) -> LanguageModelFile:
    factor = int(feature.arguments.get("factor", "0"))
    return LanguageModelFile(file_of(ini, feature), feature.name, factor=factor)


READERS: dict[str, tuple[str, Callable[[MosesIni, Feature], Any]]] = {
    "KENLM": ("language_models", _kenlm),
    "LexicalReordering": ("reordering_tables", _reordering_table),
    "NeuralLM": ("language_models", neural_lm_of),
    OPERATIONS: ("operations", _kenlm),
    "PhraseDictionaryMemory": ("tables", _phrase_table),
}
"""Classes that read files: where they are in a system, and what reads their lines."""
