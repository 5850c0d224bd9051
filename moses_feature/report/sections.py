"""The sections of a report on the pairs of a table, and on the network's training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from markupsafe import Markup

from moses_feature import __version__
from moses_feature.phrases.model import PhraseModel
from moses_feature.report.facts import COUNTS, LONG, Facts, PairSummary, ReadNetwork
from moses_feature.report.favourites import FEWEST_TARGETS, Favourites
from moses_feature.report.figures import density_figure, loss_figure
from moses_feature.report.page import NOTHING, Section, plot, rendered, shown_text, table
from moses_feature.tables.score_lines import ScoreLine

SAMPLES, BEST = 50, 5


def what_was_done(
    table_path: str,
    facts: Facts,
    network: PhraseModel,
    loss: float,
    summary: PairSummary,
    averaged: int,
) -> Section:
    """Return the facts about the table and the network."""
    sizes = ", ".join(
        f"{name} {size:,}" if isinstance(size, int) else f"{name} {size}"
        for name, size in vars(network.network.sizes).items()
    )
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
        (network.measure, network.shown_loss(loss)),
        ("command", facts.command),
        ("written by", f"moses-feature {__version__}"),
    ]
    of_mean = ""
    if averaged > 1:
        of_mean = (
            f" The column is the mean of {averaged} networks; what is said of one is of this one."
        )
    how = f"The table that was scored, and the network that scored it.{of_mean}"
    return Section("What was done", how, table(rows, "text"))


def training(network: PhraseModel) -> Iterator[Section]:
    """Yield the losses of the training run, if there are several."""
    history = network.training.get("history")
    if not (isinstance(history, list) and len(history) > 1):
        return
    if network.loss[0] < 0:
        yield Section(
            "Refining",
            "The BLEU, 0 to 1, that is expected of the lists by the system with this network: of "
            "sentences that it learns from, and of those that were held out. Both should rise. "
            "Where the second falls, it learns by heart; the best network was kept.",
            plot(loss_figure(history, *network.loss), "Expected BLEU by updates"),
        )
    else:
        yield Section(
            "Training",
            "The loss on pairs that the network was trained on, and on those that were held out. "
            "Where the second goes up, it learns by heart; where it still falls at the end, more "
            "training would help. The first is a mean over the updates since the last point, and "
            "has the dropout, so that it may well be the higher one.",
            plot(loss_figure(history, *network.loss), "Training and held-out loss by updates"),
        )


def agreement(summary: PairSummary, facts: Facts) -> Section:
    """Return log p by the table against log p by the network."""
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


def disagreement(summary: PairSummary, facts: Facts) -> Section:
    """Return the pairs that table and network disagree on most."""

    def rows(lines: Sequence[ScoreLine]) -> Markup:
        if not lines:
            return Markup("<p>None.</p>")
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
        "it does not believe in; targets with words that it does not know are left out. Wrong "
        "alignments tend to be among the second. Among the first are plausible pairs that were "
        "seldom seen and, if the network was trained briefly, frequent words that it overrates.",
        rendered(
            "disagreement.html",
            by_network=rows(summary.preferred_by_network),
            by_table=rows(summary.preferred_by_table),
        ),
    )


@dataclass(frozen=True)
class Preferred:
    """A long source phrase, and targets as texts with p(target | source), the best first.

    Attributes:
        source: the phrase, and how often it was seen.
        by_table, by_network: the targets of the table that each of them prefers.
        drawn: the likeliest targets that the network draws by itself.
    """

    source: str
    by_table: list[str]
    by_network: list[str]
    drawn: list[str]


Tables = dict[str, list[Preferred]]
"""The paper's Tables 2 and 3: of frequent phrases, and of rare ones."""


def long_phrases(summary: PairSummary, network: ReadNetwork, facts: Facts, seed: int) -> Tables:
    """Return targets of long phrases: by the table, by the network, and drawn."""
    kinds = {"frequent": summary.frequent.favourites(), "rare": summary.rare.favourites()}
    return {kind: _preferred(found, network, facts, seed) for kind, found in kinds.items() if found}


def _preferred(
    found: Sequence[Favourites], network: ReadNetwork, facts: Facts, seed: int
) -> list[Preferred]:
    generator = network.generator
    drawn = generator.samples([network.ids(row.source) for row in found], SAMPLES, seed=seed)

    def shown(phrase: bytes) -> str:
        return shown_text(phrase, facts.escaped)

    def with_probabilities(targets: Sequence[tuple[bytes, float]]) -> list[str]:
        return [f"{p:.2g} {shown(target)}" for target, p in targets]

    return [
        Preferred(
            f"{shown(row.source)} ({row.count:g} times)",
            with_probabilities(row.by_table),
            with_probabilities(row.by_network),
            [shown(b" ".join(generator.words(target))) for target in targets[:BEST]],
        )
        for row, targets in zip(found, drawn, strict=True)
    ]


HEAD = ("source", "by the table", "by the network", "drawn")


def long_phrases_section(tables: Tables) -> Section:
    """Return the section of the long phrases."""
    title = "Long phrases (the paper's Tables 2 and 3)"
    if not tables:
        how = f"No source phrase of {LONG} words or more has {FEWEST_TARGETS} targets."
        return Section(title, how)
    of_kinds = {}
    for kind, rows in tables.items():
        cells = [
            (
                row.source,
                *("\n".join(part) for part in (row.by_table, row.by_network, row.drawn)),
            )
            for row in rows
        ]
        of_kinds[kind] = table([HEAD, *cells], "text", kind)
    return Section(
        title,
        f"Source phrases of {LONG} words and more: the targets that the table prefers, those that "
        f"the network prefers among them, and the likeliest {BEST} of {SAMPLES} targets that the "
        "network draws by itself. Rare ones are some of those that were seen least often and have "
        f"{FEWEST_TARGETS} targets at least; {NOTHING} is a target without words.",
        rendered("long_phrases.html", tables=of_kinds),
    )


def long_phrases_text(tables: Tables) -> str:
    """Return the tables of long phrases as plain text."""
    lines = []
    for kind, rows in tables.items():
        lines.append(f"Long phrases, {kind}")
        for row in rows:
            cells = [HEAD[1:], *zip_longest(row.by_table, row.by_network, row.drawn, fillvalue="")]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines += ["", row.source]
            for line in cells:
                padded = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
                lines.append(f"    {'   '.join(padded)}".rstrip())
        lines.append("")
    return "\n".join(lines)
