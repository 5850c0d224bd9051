"""A report on an augmented table and its network, as a page."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import torch

from moses_feature import __version__
from moses_feature.arrays import Floats32
from moses_feature.errors import FormatError, MosesFeatureError
from moses_feature.files import Json
from moses_feature.generation.of_model import Generator, generator_of
from moses_feature.models.cross_fitting import CrossFittedModel, fold_directory, load_any_model
from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.models.phrase_model import PhraseModel
from moses_feature.models.phrases import Phrases
from moses_feature.models.rnnsearch import RnnSearch
from moses_feature.models.vocabulary import END, SYMBOLS
from moses_feature.report.figures import (
    attention_figure,
    density_figure,
    loss_figure,
    map_figure,
)
from moses_feature.report.maps import FEWEST, INSTALL, Map, can_make_maps, make_map, write_exports
from moses_feature.report.page import Section, plot, table, write_page
from moses_feature.report.pairs import LONG, PairSummary, summarise
from moses_feature.report.texts import shown_text
from moses_feature.tables.favourites import Favourites
from moses_feature.tables.features_json import features_json, read_features
from moses_feature.tables.score_lines import ScoreLine, network_column

logger = logging.getLogger(__name__)

SCRIPT = Path(__file__).with_name("report.js")
SAMPLES, BEST = 50, 5
ENDINGS, LETTERS = 12, 3
"""Word endings with a colour of their own, and their length."""
ENCODED_TOGETHER = 256
ATTENTION = 4
"""Phrases whose attention is shown."""


@dataclass(frozen=True)
class ReportSettings:
    """How large a report is.

    Attributes:
        words: of the map of words, the most frequent ones.
        phrases: of the map of phrases.
        seed: of samples and maps.
    """

    words: int = 10_000
    phrases: int = 5_000
    seed: int = 1


def write_report(
    table_path: str,
    model_directory: Path,
    output: Path,
    settings: ReportSettings,
    exports: Path | None = None,
) -> None:
    """Write the page.

    Args:
        table_path: an augmented table.
        model_directory: of the model that scored it.
        output: the page.
        settings: how large it is.
        exports: a directory for the maps as files for other tools.

    Raises:
        MosesFeatureError: the table has not been augmented, or maps are to be exported that need
            a package which is missing.
        FormatError: the table is another model's, or a file is damaged.
    """
    column, facts = network_column(table_path), read_features(table_path)
    model = load_any_model(model_directory)
    if facts.get("model_sha256") != model.digest:
        expected = f"the model in {model_directory}, SHA-256 {model.digest[:12]}…"
        found = f"{facts.get('model_sha256')}"[:12]
        raise FormatError(features_json(table_path), expected, f"{found}…")
    network = model.networks[0] if isinstance(model, CrossFittedModel) else model
    folds = isinstance(model, CrossFittedModel)
    generator = generator_of(fold_directory(model_directory, 0) if folds else model_directory)
    logger.info("reading %s", table_path)
    summary = summarise(table_path, column, settings.phrases)
    sections = [
        _what_was_done(table_path, facts, network, summary, folds),
        *_training(network),
        _agreement(summary),
        _disagreement(summary),
        *_long_phrases(summary, generator, network, settings.seed),
        *_attention(summary, generator, network),
    ]
    if can_make_maps():
        for kind, points in _maps(network, summary, settings):
            sections.append(_map_section(kind, points, summary.long_phrases))
            if exports is not None and points is not None:
                write_exports(exports, kind, points)
    elif exports is not None:
        raise MosesFeatureError(f"{exports}: maps need a package: {INSTALL}")
    else:
        logger.warning("no maps of words and phrases: %s", INSTALL)
        sections.append(Section("Maps", f"There are none: {INSTALL} makes them.", ""))
    title = f"What a network makes of {Path(table_path).name}"
    write_page(output, title, sections, SCRIPT.read_text())


def _what_was_done(
    table_path: str, facts: Json, network: PhraseModel, summary: PairSummary, folds: bool
) -> Section:
    sizes = ", ".join(f"{name} {size:,}" for name, size in vars(network.network.sizes).items())
    rows = [
        ("what", "found"),
        ("table", table_path),
        ("phrase pairs", f"{summary.lines:,}"),
        ("source phrases", f"{summary.sources:,}"),
        ("new columns", ", ".join(column["name"] for column in facts["columns"])),
        ("scores clipped to Moses' floor", f"{facts.get('clipped_scores', 0):,}"),
        ("unknown words, source", f"{facts.get('unknown_source_words', 0):,}"),
        ("unknown words, target", f"{facts.get('unknown_target_words', 0):,}"),
        ("network", sizes),
        ("shortlists", f"{len(network.source.shortlist):,}, {len(network.target.shortlist):,}"),
        ("held-out loss", f"{network.training.get('held_out_loss', float('nan')):.4f} nats a word"),
        ("command", str(facts.get("command", ""))),
        ("written by", f"moses-feature {__version__}"),
    ]
    of_fold = " Samples and maps are those of the first fold's network." if folds else ""
    how = f"The table that was scored, and the network that scored it.{of_fold}"
    return Section("What was done", how, table(rows, "text"))


def _training(network: PhraseModel) -> Iterator[Section]:
    history = network.training.get("history")
    if isinstance(history, list) and len(history) > 1:
        yield Section(
            "Training",
            "The loss on pairs that the network was trained on, and on those that were held out. "
            "Where the second goes up, it learns by heart; where it still falls at the end, more "
            "training would help.",
            plot(loss_figure(history), "Training and held-out loss over the updates"),
        )


def _agreement(summary: PairSummary) -> Section:
    return Section(
        "Where table and network agree (the paper's Figure 3)",
        "All pairs, by the natural log of p(target | source): the table's relative frequency to "
        "the right, the network's upwards. On the dotted line both say the same. The column at 0 "
        "holds what the table saw once and takes for certain.",
        plot(density_figure(summary.density), "Log p by the table against log p by the network"),
    )


def _disagreement(summary: PairSummary) -> Section:
    def rows(lines: Sequence[ScoreLine]) -> str:
        head = ("source", "target", "log p, table", "log p, network", "source seen")
        return table(
            [
                head,
                *(
                    (
                        shown_text(line.source),
                        shown_text(line.target),
                        f"{line.table_log_prob:.2f}",
                        f"{line.network_log_prob:.2f}",
                        f"{line.source_count:g}",
                    )
                    for line in lines
                ),
            ],
            "text",
        )

    return Section(
        "Where they disagree most",
        "First the pairs that the network finds much likelier than the table does, then those that "
        "it does not believe in. Wrong alignments tend to be among the second, plausible pairs "
        "that were seldom seen among the first.",
        f"<h3>Preferred by the network</h3>{rows(summary.preferred_by_network)}"
        f"<h3>Preferred by the table</h3>{rows(summary.preferred_by_table)}",
    )


def _long_phrases(
    summary: PairSummary, generator: Generator, network: PhraseModel, seed: int
) -> Iterator[Section]:
    logger.info("drawing samples")
    kinds = {"frequent": summary.frequent.favourites(), "rare": summary.rare.favourites()}
    if not any(kinds.values()):
        return
    content = (
        '<div class="controls"><label>Find a phrase <input type="search" '
        'data-filters="frequent rare"></label></div>'
    )
    for kind, rows in kinds.items():
        if rows:
            content += f"<h3>{kind.capitalize()} ones</h3>"
            content += _favourites_table(kind, rows, generator, network, seed)
    yield Section(
        "Long phrases (the paper's Tables 2 and 3)",
        f"Source phrases of {LONG} words and more: the targets that the table prefers, those that "
        f"the network prefers among them, and the likeliest {BEST} of {SAMPLES} targets that the "
        "network draws by itself.",
        content,
    )


def _favourites_table(
    kind: str, rows: Sequence[Favourites], generator: Generator, network: PhraseModel, seed: int
) -> str:
    sources = [network.source.ids(row.source.split(b" ")) for row in rows]
    drawn = generator.samples(sources, SAMPLES, seed=seed)
    cells = [("source", "by the table", "by the network", "drawn")]
    for row, targets in zip(rows, drawn, strict=True):
        texts = (b" ".join(generator.words(target)) for target in targets[:BEST])
        cells.append(
            (
                f"{shown_text(row.source)} ({row.count:g} times)",
                "\n".join(f"{p:.2g} {shown_text(target)}" for target, p in row.by_table),
                "\n".join(f"{p:.2g} {shown_text(target)}" for target, p in row.by_network),
                "\n".join(map(shown_text, texts)),
            )
        )
    return table(cells, "text", kind)


def _attention(
    summary: PairSummary, generator: Generator, network: PhraseModel
) -> Iterator[Section]:
    phrases = [row.source.split(b" ") for row in summary.frequent.favourites()[:ATTENTION]]
    if not isinstance(network.network, RnnSearch) or not phrases:
        return
    plots = []
    ids = [network.source.ids(phrase) for phrase in phrases]
    for phrase, found in zip(phrases, generator.likeliest(ids, BEST), strict=True):
        target = [shown_text(word) for word in generator.words(found[0])]
        target = target[::-1] if generator.reading.right_to_left else target
        alignment = _alignment(network.network, network.source.ids(phrase), found[0].ids)
        source = [shown_text(word) for word in phrase]
        figure = attention_figure([*source, "⏎"], [*target, "⏎"], alignment)
        plots.append(plot(figure, f"Attention of {' '.join(target)} to {' '.join(source)}"))
    yield Section(
        "Attention",
        "Which source words the network looks at, darker for more, when it writes each word of the "
        "likeliest target, in the order in which it writes; ⏎ is the end.",
        "".join(plots),
    )


@torch.inference_mode()
def _alignment(network: RnnSearch, source: Sequence[int], target: Sequence[int]) -> Floats32:
    """Return what the target words and END are aligned to (target + 1, source + 1)."""
    lengths = torch.tensor([len(source)])
    annotations = network.annotations(torch.tensor([[*source, END]]), lengths)
    _, alignments = network.decode(annotations, lengths, torch.tensor([[END, *target]]).t())
    found: Floats32 = alignments[:, 0].numpy()
    return found


def _maps(
    network: PhraseModel, summary: PairSummary, settings: ReportSettings
) -> Iterator[tuple[str, Map | None]]:
    shortlist = network.source.shortlist[: settings.words]
    embedding = network.network.source_embedding.weight.detach().numpy()
    vectors = embedding[len(SYMBOLS) : len(SYMBOLS) + len(shortlist)]
    yield "words", _map_of(shortlist, vectors, settings.seed, "words")
    if isinstance(network.network, EncoderDecoder):
        phrases = summary.phrases
        vectors = _summary_vectors(network, network.network, phrases)
        yield "phrases", _map_of(phrases, vectors, settings.seed, "phrases")


def _map_of(names: Sequence[bytes], vectors: Floats32, seed: int, kind: str) -> Map | None:
    if len(names) < FEWEST:
        return None
    logger.info("laying out %s %s", f"{len(names):,}", kind)
    return make_map([shown_text(name) for name in names], vectors, seed)


@torch.inference_mode()
def _summary_vectors(
    model: PhraseModel, network: EncoderDecoder, phrases: Sequence[bytes]
) -> Floats32:
    """Return the summaries c (n, H) of source phrases."""
    packed = Phrases.pack([model.source.ids(phrase.split(b" ")) for phrase in phrases])
    parts = [np.empty((0, network.sizes.hidden), dtype=np.float32)]
    for first in range(0, len(phrases), ENCODED_TOGETHER):
        rows = np.arange(first, min(first + ENCODED_TOGETHER, len(phrases)))
        words, lengths = (torch.from_numpy(array) for array in packed.padded(rows, END))
        parts.append(network.encode(words, lengths).numpy())
    return np.concatenate(parts)


def _map_section(kind: str, points: Map | None, long_phrases: int) -> Section:
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
