"""Features of n-best lists by the models that they come from; free of torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from moses_feature.errors import UsageError
from moses_feature.lm.nplm import load_neural_lm
from moses_feature.models.files import architecture_of, is_model_directory
from moses_feature.models.sizes import SEARCH_ARCHITECTURE
from moses_feature.rescoring.nbest import CslmScorer, SentenceScorer, check_names, named
from moses_feature.rescoring.search import SearchFeature
from moses_feature.rescoring.source import SourceText

CSLM, RNNSEARCH = "CSLM0", "RNNsearch0"
"""Names of features, unless others are given."""


def named_model(text: str) -> tuple[str, str]:
    """Split `NAME=PATH`; without a name, it is that of the kind of model.

    Raises:
        UsageError: a name that Moses' tools could not carry.
    """
    return named(text, RNNSEARCH if _is_search(text) else CSLM)


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
    searches: dict[str, list[str]] = {}
    for name, path in models:
        if not _is_search(path):
            scorers.append(CslmScorer(name, load_neural_lm(path)))
        elif name in searches:
            searches[name].append(path)
        else:
            searches[name] = [path]
    scorers += [SearchFeature(name, paths, source) for name, paths in searches.items()]
    try:
        check_names(scorers)
    except UsageError as error:
        raise UsageError(f"{error} (several RNNsearch models of one name are averaged)") from None
    return scorers


def _is_search(path: str) -> bool:
    directory = Path(path)
    return is_model_directory(directory) and architecture_of(directory) == SEARCH_ARCHITECTURE
