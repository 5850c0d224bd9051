"""Features of n-best lists by the models that they come from; free of torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from moses_feature.errors import FormatError, UsageError
from moses_feature.joint.sizes import JOINT_ARCHITECTURE
from moses_feature.lm.nplm import load_neural_lm
from moses_feature.lm.sizes import LM_ARCHITECTURE
from moses_feature.models.files import CONFIG, architecture_of, is_model_directory
from moses_feature.models.sizes import SEARCH_ARCHITECTURE
from moses_feature.rescoring.nbest import CslmScorer, SentenceScorer, check_names, named
from moses_feature.rescoring.search import SearchFeature
from moses_feature.rescoring.source import SourceText

CSLM, RNNSEARCH, JOINT = "CSLM0", "RNNsearch0", "NNJM0"
"""Names of features, unless others are given."""


def named_model(text: str) -> tuple[str, str]:
    """Split `NAME=PATH`; without a name, it is that of the kind of model.

    Raises:
        UsageError: a name that Moses' tools could not carry.
    """
    return named(text, RNNSEARCH if _architecture(text) == SEARCH_ARCHITECTURE else CSLM)


def scorers_of(models: Iterable[tuple[str, str]], source: SourceText) -> list[SentenceScorer]:
    """Return a feature for each name: of a language model, or of one RNNsearch or more.

    Args:
        models: names and paths.
        source: the text that was translated.

    Raises:
        UsageError: a name is given to several models that cannot be averaged.
        MosesFeatureError: a model cannot be read.
    """
    scorers: list[SentenceScorer] = []
    searches = []
    for name, path in models:
        kind = _architecture(path)
        if kind == SEARCH_ARCHITECTURE:
            searches.append((name, path))
        elif kind in (None, LM_ARCHITECTURE):
            scorers.append(CslmScorer(name, load_neural_lm(path)))
        elif kind == JOINT_ARCHITECTURE:
            raise UsageError(
                f"{path} is a joint model, which needs the word alignments of the search: "
                "put it into the ini (moses-feature ini add --joint)"
            )
        else:
            expected = f"architecture {SEARCH_ARCHITECTURE} or {LM_ARCHITECTURE}"
            raise FormatError(Path(path) / CONFIG, expected, f"{kind}")
    scorers += search_features(searches, source)
    try:
        check_names(scorers)
    except UsageError as error:
        raise UsageError(f"{error} (several RNNsearch models of one name are averaged)") from None
    return scorers


def search_features(models: Iterable[tuple[str, str]], source: SourceText) -> list[SearchFeature]:
    """Return a feature for each name, of one RNNsearch or of several whose mean is taken."""
    paths: dict[str, list[str]] = {}
    for name, path in models:
        paths.setdefault(name, []).append(path)
    return [SearchFeature(name, of_name, source) for name, of_name in paths.items()]


def _architecture(path: str) -> str | None:
    """Return the architecture of a model directory; None for a file."""
    return architecture_of(Path(path)) if is_model_directory(Path(path)) else None
