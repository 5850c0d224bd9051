"""Features of n-best lists that other packages add, by the entry point `moses_feature.features`.

docs/how-to/own-features.md has a complete example.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from moses_feature.rescoring.nbest import SentenceScorer
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import UsageError

GROUP = "moses_feature.features"
FeatureClass = Callable[[str, str, SourceText], SentenceScorer]
"""Takes the name of the feature, the path behind its mark (perhaps empty), and the source text."""


def plugin(mark: str) -> FeatureClass:
    """Return the class of a mark.

    Raises:
        UsageError: no package has it, or it cannot be loaded.
    """
    found = entry_points(group=GROUP)
    for point in found.select(name=mark):
        try:
            feature: FeatureClass = point.load()
        except (ImportError, AttributeError) as error:
            raise UsageError(f"{mark}: {point.value} cannot be loaded: {error}") from error
        return feature
    known = ", ".join(sorted({f"{name}:" for name in ("mbr", *found.names)}))
    raise UsageError(f"{mark}: expected {known} before a model, found another mark")
