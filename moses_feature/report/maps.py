"""Maps: vectors of words or phrases in a plane, by t-SNE (van der Maaten and Hinton 2008)."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch
from markupsafe import Markup

from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END, SYMBOLS
from moses_feature.phrases.encoder_decoder import EncoderDecoder
from moses_feature.report.facts import LONG, Facts, PairSummary, ReadNetwork
from moses_feature.report.figures import map_figure
from moses_feature.report.page import Section, plot, rendered, shown_text
from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.errors import install
from moses_feature.runtime.processes import cores

logger = logging.getLogger(__name__)

PERPLEXITY = 30
FEWEST = 3 * PERPLEXITY + 1
"""The fewest points for t-SNE with this perplexity."""
MOST_WORDS = 10_000
"""The number of most frequent words in the map of words."""
NEIGHBOURS = 8
CLUSTERS = 12


INSTALL = install("maps")


def can_make_maps() -> bool:
    """Return whether the packages are installed: openTSNE, or else scikit-learn."""
    return find_spec("sklearn") is not None


@dataclass(frozen=True)
class Map:
    """Points in a plane, near each other if their vectors are.

    Attributes:
        names: names of the points, most frequent first.
        vectors: (n, ·) their vectors.
        places: (n, 2) their coordinates.
        neighbours: (n, NEIGHBOURS) the points with the nearest vectors, by cosine, nearest first.
        clusters: (n,) clusters of the vectors, by k-means.
    """

    names: Sequence[str]
    vectors: Floats32
    places: Floats
    neighbours: Integers
    clusters: Integers


def make_map(names: Sequence[str], vectors: Floats32, seed: int = 1) -> Map:
    """Lay out points.

    Args:
        names: names of the points.
        vectors: (n, ·), at least FEWEST of them.
        seed: the seed of the layout.
    """
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]

    unit = vectors - vectors.mean(axis=0)
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    means = KMeans(min(CLUSTERS, len(unit)), n_init=1, random_state=seed % (1 << 32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about vectors that are all equal
        clusters = means.fit(unit)
    return Map(names, vectors, _layout(unit, seed % (1 << 32)), _nearest(unit), clusters.labels_)


def _layout(unit: Floats32, seed: int) -> Floats:
    try:
        from openTSNE import TSNE  # type: ignore[import-untyped]

        logging.getLogger("openTSNE").setLevel(logging.ERROR)  # it warns of its own defaults
        found = TSNE(
            perplexity=PERPLEXITY, metric="euclidean", n_jobs=cores(), random_state=seed
        ).fit(unit)
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


ENDINGS, LETTERS = 12, 3
"""Word endings with a colour of their own, and their length."""
ENCODED_TOGETHER = 256


def maps_of(
    network: ReadNetwork, summary: PairSummary, facts: Facts, seed: int
) -> Iterator[tuple[str, Map | None]]:
    """Yield the kind of each map, and the map; None if it has too few points."""
    model = network.model
    shortlist = model.source.shortlist[:MOST_WORDS]
    embedding = model.network.source_embedding.weight.detach().numpy()
    vectors = embedding[len(SYMBOLS) : len(SYMBOLS) + len(shortlist)]
    words = [shown_text(word, model.escaped) for word in shortlist]
    yield "words", _map_of(words, vectors, seed, "words")
    if isinstance(model.network, EncoderDecoder):
        vectors = _summary_vectors(network, model.network, summary.phrases)
        phrases = [shown_text(phrase, facts.escaped) for phrase in summary.phrases]
        yield "phrases", _map_of(phrases, vectors, seed, "phrases")


def _map_of(names: Sequence[str], vectors: Floats32, seed: int, kind: str) -> Map | None:
    if len(names) < FEWEST:
        return None
    logger.info("laying out %s %s", f"{len(names):,}", kind)
    return make_map(names, vectors, seed)


@torch.inference_mode()
def _summary_vectors(
    network: ReadNetwork, encoder: EncoderDecoder, phrases: Sequence[bytes]
) -> Floats32:
    """Return the summaries c (n, H) of source phrases."""
    packed = PackedSequences.pack([network.ids(phrase) for phrase in phrases])
    parts = [np.empty((0, encoder.sizes.hidden), dtype=np.float32)]
    for first in range(0, len(phrases), ENCODED_TOGETHER):
        rows = np.arange(first, min(first + ENCODED_TOGETHER, len(phrases)))
        words, lengths = (torch.from_numpy(array) for array in packed.padded(rows, END))
        parts.append(encoder.encode(words, lengths).numpy())
    return np.concatenate(parts)


def map_section(kind: str, points: Map | None, long_phrases: int) -> Section:
    """Return the section of a map; `long_phrases` is the number of long phrases in the table."""
    if kind == "words":
        title = "A map of the words (the paper's Figure 4)"
        how = (
            "Source words with similar embeddings are near each other: t-SNE keeps neighbours "
            "together, distances between groups mean little. Click a point for its nearest "
            "neighbours among the embeddings themselves. Drag a box to see more of it, and "
            "double-click to see all again."
        )
        count = "the shortlist has too few words"
    else:
        title = "A map of the phrases (the paper's Figure 5)"
        how = (
            f"Source phrases of {LONG} words and more, the most frequent ones, by the vectors that "
            "sum them up for the decoder. Phrases of the same meaning, and of the same form, "
            "should be together."
        )
        count = f"the table has {long_phrases}"
    if points is None:
        return Section(title, f"No map: it takes {FEWEST} points at least, and {count}.")
    return Section(title, how, _map_content(kind, points))


def _map_content(kind: str, points: Map) -> Markup:
    endings = [name[-LETTERS:] for name in points.names]
    common = [ending for ending, _ in Counter(endings).most_common(ENDINGS)]
    number = {ending: place for place, ending in enumerate(common)}
    data = {
        "names": list(points.names),
        "neighbours": points.neighbours.tolist(),
        "clusters": points.clusters.tolist(),
        "endings": [number.get(ending, ENDINGS) for ending in endings],
        "ending_names": [f"-{ending}" for ending in common],
    }
    figure = plot(map_figure(points), f"A map of {len(points.names):,} {kind}")
    return rendered("map.html", kind=kind, figure=figure, data=data)
