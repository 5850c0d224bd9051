"""Names in a moses.ini that look like those that Moses knows, and are not."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from moses_feature.doctor.finding import Finding
from moses_feature.moses.ini import MosesIni

CLOSE = 0.8
CLASSES = frozenset(
    [
        "BilingualNPLM",
        "Distortion",
        "Generation",
        "IRSTLM",
        "InputFeature",
        "KENLM",
        "LexicalReordering",
        "Mmsapt",
        "NeuralLM",
        "OpSequenceModel",
        "PhraseDictionaryBinary",
        "PhraseDictionaryBitextSampling",
        "PhraseDictionaryCompact",
        "PhraseDictionaryMemory",
        "PhraseDictionaryMemoryPerSentence",
        "PhraseDictionaryMemoryPerSentenceOnDemand",
        "PhraseDictionaryMultiModel",
        "PhraseDictionaryMultiModelCounts",
        "PhraseDictionaryOnDisk",
        "PhraseDictionaryScope3",
        "PhraseDictionaryTransliteration",
        "PhraseLengthFeature",
        "PhrasePairFeature",
        "PhrasePenalty",
        "ProbingPT",
        "RANDLM",
        "RNNsearch",
        "RuleTable",
        "SRILM",
        "UnknownWordPenalty",
        "WordPenalty",
    ]
)
"""The usual feature functions of Moses (`moses/FF/Factory.cpp`), and ours."""
SECTIONS = frozenset(
    [
        "alternate-weight-setting",
        "beam-threshold",
        "cube-pruning-diversity",
        "cube-pruning-pop-limit",
        "decoding-graph-backoff",
        "distortion-limit",
        "drop-unknown",
        "feature",
        "input-factors",
        "inputtype",
        "mapping",
        "mark-unknown",
        "max-chart-span",
        "max-phrase-length",
        "max-partial-trans-opt",
        "max-trans-opt-per-coverage",
        "n-best-list",
        "non-terminals",
        "output-factors",
        "output-hypo-score",
        "print-alignment-info",
        "print-id",
        "search-algorithm",
        "stack",
        "stack-diversity",
        "threads",
        "translation-option-threshold",
        "ttable-limit",
        "unknown-lhs",
        "verbose",
        "weight",
        "weight-add",
        "xml-input",
    ]
)
"""The usual sections (`moses/Parameter.cpp`)."""


def check_names(ini: MosesIni) -> Iterator[Finding]:
    """Yield classes and sections that are one or two letters away from those of Moses."""
    for feature in ini.features:
        yield from _check(
            feature.kind, CLASSES, f"{ini.path} at line {feature.line_number}", "feature function"
        )
    for section in ini.settings:
        yield from _check(section, SECTIONS, str(ini.path), "section")


def _check(name: str, known: frozenset[str], where: str, what: str) -> Iterator[Finding]:
    if name in known:
        return
    in_lower_case = {of_moses.lower(): of_moses for of_moses in known}
    close = get_close_matches(name.lower(), in_lower_case, n=1, cutoff=CLOSE)
    if close:
        yield Finding(
            "problem",
            where,
            f"no {what} of Moses is called {name}",
            "Moses stops (`is not registered`, `Unknown parameter`)",
            f"is it {in_lower_case[close[0]]}?",
        )
