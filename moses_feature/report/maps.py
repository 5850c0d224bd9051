"""Maps: vectors of words or phrases in a plane, by t-SNE (van der Maaten and Hinton 2008)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from moses_feature.arrays import Floats, Floats32, Integers

PERPLEXITY = 30
FEWEST = 3 * PERPLEXITY + 1
"""Points that t-SNE needs with this perplexity."""
NEIGHBOURS = 8
CLUSTERS = 12


INSTALL = "pip install 'moses-feature[maps]'"


def can_make_maps() -> bool:
    """Return whether the packages are there: openTSNE, or else scikit-learn."""
    return find_spec("sklearn") is not None


@dataclass(frozen=True)
class Map:
    """Points in a plane, near each other if their vectors are.

    Attributes:
        names: of the points, most frequent first.
        vectors: (n, ·) what they were made of.
        places: (n, 2).
        neighbours: (n, NEIGHBOURS) the points with the nearest vectors, by cosine, nearest first.
        clusters: (n,) of vectors, by k-means.
    """

    names: Sequence[str]
    vectors: Floats32
    places: Floats
    neighbours: Integers
    clusters: Integers


def make_map(names: Sequence[str], vectors: Floats32, seed: int = 1) -> Map:
    """Lay out points.

    Args:
        names: of the points.
        vectors: (n, ·), FEWEST of them at least.
        seed: of the layout.
    """
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]

    unit = vectors - vectors.mean(axis=0)
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    means = KMeans(min(CLUSTERS, len(unit)), n_init=1, random_state=seed % (1 << 32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of vectors that are all alike
        clusters = means.fit(unit)
    return Map(names, vectors, _layout(unit, seed % (1 << 32)), _nearest(unit), clusters.labels_)


def _layout(unit: Floats32, seed: int) -> Floats:
    try:
        from openTSNE import TSNE  # type: ignore[import-untyped]

        logging.getLogger("openTSNE").setLevel(logging.ERROR)  # it warns of its own defaults
        found = TSNE(perplexity=PERPLEXITY, metric="euclidean", random_state=seed).fit(unit)
    except ImportError:
        from sklearn.manifold import TSNE as OTHER  # type: ignore[import-untyped]

        found = OTHER(perplexity=PERPLEXITY, init="pca", random_state=seed).fit_transform(unit)
    return np.asarray(found, dtype=np.float64)


def _nearest(unit: Floats32) -> Integers:
    """Return the nearest neighbours by cosine (n, NEIGHBOURS), of unit vectors."""
    nearest = np.empty((len(unit), NEIGHBOURS), dtype=np.int64)
    for first in range(0, len(unit), 1024):
        rows = np.arange(first, min(first + 1024, len(unit)))
        cosines = unit[rows] @ unit.T
        cosines[np.arange(len(rows)), rows] = -np.inf
        best = np.argpartition(-cosines, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
        order = np.argsort(-np.take_along_axis(cosines, best, 1), axis=1, kind="stable")
        nearest[rows] = np.take_along_axis(best, order, 1)
    return nearest
