"""A report on an augmented table and its network, as a page."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch

from moses_feature import __version__
from moses_feature.arrays import Floats32
from moses_feature.errors import FormatError, MosesFeatureError
from moses_feature.generation.of_model import Generator, generator_of
from moses_feature.json_files import member, record
from moses_feature.models.cross_fitting import CrossFittedModel, fold_directory, load_any_model
from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.models.phrase_model import PhraseModel
from moses_feature.models.phrases import Phrases
from moses_feature.models.rnnsearch import RnnSearch
from moses_feature.models.table_words import TableWords
from moses_feature.models.vocabulary import END, SYMBOLS
from moses_feature.moses.words import WordOptions
from moses_feature.report.figures import (
    attention_figure,
    density_figure,
    loss_figure,
    map_figure,
)
from moses_feature.report.maps import FEWEST, INSTALL, Map, can_make_maps, make_map, write_exports
from moses_feature.report.page import Section, plot, table, write_page
from moses_feature.report.pairs import LONG, PairSummary, summarise
from moses_feature.report.texts import NOTHING, shown_text
from moses_feature.tables.favourites import FEWEST_TARGETS, Favourites
from moses_feature.tables.features_json import features_json, read_columns, read_features
from moses_feature.tables.score_lines import ScoreLine, network_column

logger = logging.getLogger(__name__)

SCRIPT = Path(__file__).with_name("report.js")
SAMPLES, BEST = 50, 5
COUNTS = {
    "lines_written": "lines",
    "clipped_scores": "scores clipped to Moses' floor",
    "unknown_source_words": "unknown words, source",
    "unknown_target_words": "unknown words, target",
}
"""Counts that the file beside a table may have, and what they are called."""
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


@dataclass(frozen=True)
class _Facts:
    """What the file beside a table says of it.

    Attributes:
        columns: the names of the new ones.
        counts: of lines and words, as far as they are known.
        command: that made it.
        words: how its tokens became words.
    """

    columns: list[str]
    counts: dict[str, int]
    command: str
    words: TableWords

    @classmethod
    def read(cls, table_path: str) -> _Facts:
        """Read them.

        Raises:
            FormatError: the file is damaged.
        """
        path, content, what = features_json(table_path), read_features(table_path), "facts"
        counts = {
            name: member(content, name, int, path, what) for name in COUNTS if name in content
        }
        command = member(content, "command", str, path, what) if "command" in content else ""
        settings = member({"settings": {}, **content}, "settings", dict[str, Any], path, what)
        given = {f.name: settings[f.name] for f in fields(TableWords) if f.name in settings}
        words = record(TableWords, given, path, "how a table was scored")
        return cls(list(read_columns(table_path)), counts, command, words)

    @property
    def escaped(self) -> bool:
        """Whether the tokens of the table are escaped."""
        return self.words.escaped != "no"


@dataclass(frozen=True)
class _Network:
    """A network, and the words that it reads."""

    model: PhraseModel
    generator: Generator
    words: WordOptions

    def ids(self, phrase: bytes) -> list[int]:
        """Return the ids of a source phrase of the table."""
        return self.model.source.ids(self.words.pair(phrase, b"")[0])


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
    if not Path(table_path).is_file():
        raise MosesFeatureError(f"{table_path}: expected a table in a file, found none")
    column, facts = network_column(table_path), _Facts.read(table_path)
    model = load_any_model(model_directory)
    _check_model(table_path, model_directory, model.digest)
    folds = isinstance(model, CrossFittedModel)
    first = model.networks[0] if isinstance(model, CrossFittedModel) else model
    generator = generator_of(fold_directory(model_directory, 0) if folds else model_directory)
    network = _Network(first, generator, facts.words.words(model))
    logger.info("reading %s", table_path)
    summary = summarise(table_path, column, settings.phrases)
    _check_lines(table_path, facts, summary.lines)
    loss = model.training.get("held_out_loss", float("nan"))
    sections = [
        _what_was_done(table_path, facts, first, loss, summary, folds),
        *_training(first),
        _agreement(summary, facts),
        _disagreement(summary, facts),
        _long_phrases(summary, network, facts, settings.seed),
        *_attention(summary, network, facts),
    ]
    if can_make_maps():
        for kind, points in _maps(network, summary, facts, settings):
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


def _check_model(table_path: str, model_directory: Path, digest: str) -> None:
    found = read_features(table_path).get("model_sha256")
    if found != digest:
        raise FormatError(
            features_json(table_path),
            f"the model in {model_directory} to have scored the table (SHA-256 {digest[:12]}…)",
            f"another one ({str(found)[:12]}…): with folds, name the directory of all of them",
        )


def _check_lines(table_path: str, facts: _Facts, lines: int) -> None:
    expected = facts.counts.get("lines_written", lines)
    if lines != expected:
        described = f"{expected:,} lines, as {features_json(table_path)} says"
        raise FormatError(table_path, described, f"{lines:,}")


def _what_was_done(
    table_path: str,
    facts: _Facts,
    network: PhraseModel,
    loss: float,
    summary: PairSummary,
    folds: bool,
) -> Section:
    sizes = ", ".join(f"{name} {size:,}" for name, size in vars(network.network.sizes).items())
    rows = [
        ("what", "found"),
        ("table", table_path),
        ("phrase pairs", f"{summary.lines:,}"),
        ("source phrases", f"{summary.sources:,}"),
        ("new columns", ", ".join(facts.columns)),
        *(
            (COUNTS[name], f"{count:,}")
            for name, count in facts.counts.items()
            if name != "lines_written"
        ),
        ("network", sizes),
        ("shortlists", f"{len(network.source.shortlist):,}, {len(network.target.shortlist):,}"),
        ("held-out loss", f"{loss:.4f} nats a word"),
        ("command", facts.command),
        ("written by", f"moses-feature {__version__}"),
    ]
    of_fold = " Training, samples and maps are those of the first fold's network." if folds else ""
    how = f"The table that was scored, and the network that scored it.{of_fold}"
    return Section("What was done", how, table(rows, "text"))


def _training(network: PhraseModel) -> Iterator[Section]:
    history = network.training.get("history")
    if isinstance(history, list) and len(history) > 1:
        yield Section(
            "Training",
            "The loss on pairs that the network was trained on, and on those that were held out. "
            "Where the second goes up, it learns by heart; where it still falls at the end, more "
            "training would help. The first is a mean over the updates since the last point, and "
            "has the dropout, so that it may well be the higher one.",
            plot(loss_figure(history), "Training and held-out loss over the updates"),
        )


def _agreement(summary: PairSummary, facts: _Facts) -> Section:
    return Section(
        "Where table and network agree (the paper's Figure 3)",
        "All pairs, by the natural log of p(target | source): the table's relative frequency to "
        "the right, the network's upwards. On the dotted line both say the same. The column at 0 "
        "holds the pairs that the table takes for certain: the only targets of their source "
        "phrases, most of them seen once. Double-click to see the thousandth part that is lower.",
        plot(
            density_figure(summary.density, facts.escaped),
            "Log p by the table against log p by the network",
        ),
    )


def _disagreement(summary: PairSummary, facts: _Facts) -> Section:
    def rows(lines: Sequence[ScoreLine]) -> str:
        if not lines:
            return "<p>None.</p>"
        head = ("source", "target", "log p, table", "log p, network", "source phrase seen")
        return table(
            [
                head,
                *(
                    (
                        shown_text(line.source, facts.escaped),
                        shown_text(line.target, facts.escaped),
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


def _long_phrases(summary: PairSummary, network: _Network, facts: _Facts, seed: int) -> Section:
    title = "Long phrases (the paper's Tables 2 and 3)"
    kinds = {"frequent": summary.frequent.favourites(), "rare": summary.rare.favourites()}
    if not any(kinds.values()):
        how = f"No source phrase of {LONG} words or more has {FEWEST_TARGETS} targets."
        return Section(title, how, "")
    logger.info("drawing samples")
    content = (
        '<div class="controls"><label>Find a phrase <input type="search" '
        'data-filters="frequent rare"></label></div>'
    )
    for kind, rows in kinds.items():
        if rows:
            content += f"<h3>{kind.capitalize()} ones</h3>"
            content += _favourites_table(kind, rows, network, facts, seed)
    return Section(
        title,
        f"Source phrases of {LONG} words and more: the targets that the table prefers, those that "
        f"the network prefers among them, and the likeliest {BEST} of {SAMPLES} targets that the "
        "network draws by itself. Rare ones are some of those that were seen least often and have "
        f"{FEWEST_TARGETS} targets at least; {NOTHING} is a target without words.",
        content,
    )


def _favourites_table(
    kind: str, rows: Sequence[Favourites], network: _Network, facts: _Facts, seed: int
) -> str:
    generator = network.generator
    drawn = generator.samples([network.ids(row.source) for row in rows], SAMPLES, seed=seed)

    def shown(phrase: bytes) -> str:
        return shown_text(phrase, facts.escaped)

    cells = [("source", "by the table", "by the network", "drawn")]
    for row, targets in zip(rows, drawn, strict=True):
        texts = (b" ".join(generator.words(target)) for target in targets[:BEST])
        cells.append(
            (
                f"{shown(row.source)} ({row.count:g} times)",
                "\n".join(f"{p:.2g} {shown(target)}" for target, p in row.by_table),
                "\n".join(f"{p:.2g} {shown(target)}" for target, p in row.by_network),
                "\n".join(map(shown, texts)),
            )
        )
    return table(cells, "text", kind)


def _attention(summary: PairSummary, network: _Network, facts: _Facts) -> Iterator[Section]:
    phrases = [row.source for row in summary.frequent.favourites()[:ATTENTION]]
    search, generator = network.model.network, network.generator
    if not isinstance(search, RnnSearch) or not phrases:
        return
    plots = []
    ids = [network.ids(phrase) for phrase in phrases]
    for phrase, read, found in zip(phrases, ids, generator.likeliest(ids, BEST), strict=True):
        target = [shown_text(word, facts.escaped) for word in generator.words(found[0])]
        target = target[::-1] if generator.reading.right_to_left else target
        alignment = _alignment(search, read, found[0].ids)
        source = [shown_text(word, facts.escaped) for word in phrase.split(b" ")]
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
    network: _Network, summary: PairSummary, facts: _Facts, settings: ReportSettings
) -> Iterator[tuple[str, Map | None]]:
    model = network.model
    shortlist = model.source.shortlist[: settings.words]
    embedding = model.network.source_embedding.weight.detach().numpy()
    vectors = embedding[len(SYMBOLS) : len(SYMBOLS) + len(shortlist)]
    words = [shown_text(word, model.escaped) for word in shortlist]
    yield "words", _map_of(words, vectors, settings.seed, "words")
    if isinstance(model.network, EncoderDecoder):
        vectors = _summary_vectors(network, model.network, summary.phrases)
        phrases = [shown_text(phrase, facts.escaped) for phrase in summary.phrases]
        yield "phrases", _map_of(phrases, vectors, settings.seed, "phrases")


def _map_of(names: Sequence[str], vectors: Floats32, seed: int, kind: str) -> Map | None:
    if len(names) < FEWEST:
        return None
    logger.info("laying out %s %s", f"{len(names):,}", kind)
    return make_map(names, vectors, seed)


@torch.inference_mode()
def _summary_vectors(
    network: _Network, encoder: EncoderDecoder, phrases: Sequence[bytes]
) -> Floats32:
    """Return the summaries c (n, H) of source phrases."""
    packed = Phrases.pack([network.ids(phrase) for phrase in phrases])
    parts = [np.empty((0, encoder.sizes.hidden), dtype=np.float32)]
    for first in range(0, len(phrases), ENCODED_TOGETHER):
        rows = np.arange(first, min(first + ENCODED_TOGETHER, len(phrases)))
        words, lengths = (torch.from_numpy(array) for array in packed.padded(rows, END))
        parts.append(encoder.encode(words, lengths).numpy())
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
