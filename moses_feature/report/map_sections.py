"""The sections of a report with maps of words and of phrases."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
import torch

from moses_feature.networks.phrases import Phrases
from moses_feature.networks.vocabulary import END, SYMBOLS
from moses_feature.phrases.encoder_decoder import EncoderDecoder
from moses_feature.report.facts import Facts, ReadNetwork
from moses_feature.report.figures import map_figure
from moses_feature.report.maps import FEWEST, Map, make_map
from moses_feature.report.page import Section, plot, shown_text
from moses_feature.report.pairs import LONG, PairSummary
from moses_feature.runtime.arrays import Floats32

logger = logging.getLogger(__name__)

ENDINGS, LETTERS = 12, 3
"""Word endings with a colour of their own, and their length."""
ENCODED_TOGETHER = 256


def maps_of(
    network: ReadNetwork, summary: PairSummary, facts: Facts, most_words: int, seed: int
) -> Iterator[tuple[str, Map | None]]:
    """Yield the kind of each map, and the map; None if it has too few points."""
    model = network.model
    shortlist = model.source.shortlist[:most_words]
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
    packed = Phrases.pack([network.ids(phrase) for phrase in phrases])
    parts = [np.empty((0, encoder.sizes.hidden), dtype=np.float32)]
    for first in range(0, len(phrases), ENCODED_TOGETHER):
        rows = np.arange(first, min(first + ENCODED_TOGETHER, len(phrases)))
        words, lengths = (torch.from_numpy(array) for array in packed.padded(rows, END))
        parts.append(encoder.encode(words, lengths).numpy())
    return np.concatenate(parts)


def map_section(kind: str, points: Map | None, long_phrases: int) -> Section:
    """Return the section of a map, given how many long phrases the table has."""
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
        return Section(title, f"No map: it takes {FEWEST} points at least, and {count}.", "")
    return Section(title, how, _map_content(kind, points))


def _map_content(kind: str, points: Map) -> str:
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
    embedded = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    figure = plot(map_figure(points), f"A map of {len(points.names):,} {kind}")
    return (
        f'<div data-map="{escape(kind)}"><div class="controls">'
        '<label>Find <input type="search"></label>'
        '<label>Colour by <select><option value="frequency">frequency</option>'
        '<option value="ending">ending</option><option value="cluster">cluster</option></select>'
        f'</label></div>{figure}<p><output aria-live="polite"></output></p>'
        f'<script type="application/json">{embedded}</script></div>'
    )
