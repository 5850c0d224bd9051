"""The sections of a report on the pairs of a table, and on the network's training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from markupsafe import Markup

from moses_feature import __version__
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import PhraseModel
from moses_feature.report.facts import COUNTS, LONG, Facts, PairSummary, ReadNetwork
from moses_feature.report.figures import attention_figure, density_figure, loss_figure
from moses_feature.report.page import NOTHING, Section, plot, rendered, shown_text, table
from moses_feature.rnnsearch.network import RnnSearch
from moses_feature.runtime.arrays import Floats32
from moses_feature.tables.favourites import FEWEST_TARGETS, Favourites
from moses_feature.tables.score_lines import ScoreLine

SAMPLES, BEST = 50, 5
ATTENTION = 4
"""The number of phrases whose attention is shown."""


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
        ("held-out loss", network.shown_loss(loss)),
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
    if isinstance(history, list) and len(history) > 1:
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


def long_phrases(summary: PairSummary, network: ReadNetwork, facts: Facts, seed: int) -> Section:
    """Return targets of long phrases: by the table, by the network, and sampled."""
    title = "Long phrases (the paper's Tables 2 and 3)"
    kinds = {"frequent": summary.frequent.favourites(), "rare": summary.rare.favourites()}
    if not any(kinds.values()):
        how = f"No source phrase of {LONG} words or more has {FEWEST_TARGETS} targets."
        return Section(title, how)
    tables = {
        kind: _favourites_table(kind, rows, network, facts, seed)
        for kind, rows in kinds.items()
        if rows
    }
    return Section(
        title,
        f"Source phrases of {LONG} words and more: the targets that the table prefers, those that "
        f"the network prefers among them, and the likeliest {BEST} of {SAMPLES} targets that the "
        "network draws by itself. Rare ones are some of those that were seen least often and have "
        f"{FEWEST_TARGETS} targets at least; {NOTHING} is a target without words.",
        rendered("long_phrases.html", tables=tables),
    )


def _favourites_table(
    kind: str, rows: Sequence[Favourites], network: ReadNetwork, facts: Facts, seed: int
) -> Markup:
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


def attention(summary: PairSummary, network: ReadNetwork, facts: Facts) -> Iterator[Section]:
    """Yield RNNsearch's attention while it writes."""
    phrases = [row.source for row in summary.frequent.favourites()[:ATTENTION]]
    search, generator = network.model.network, network.generator
    if not isinstance(search, RnnSearch) or not phrases:
        return
    plots = []
    ids = [network.ids(phrase) for phrase in phrases]
    for phrase, read, found in zip(phrases, ids, generator.likeliest(ids, BEST), strict=True):
        target = [shown_text(word, facts.escaped) for word in generator.words(found[0])]
        target = target[::-1] if generator.model.direction.right_to_left else target
        alignment = _alignment(search, read, found[0].ids)
        source = [shown_text(word, facts.escaped) for word in phrase.split(b" ")]
        figure = attention_figure([*source, "⏎"], [*target, "⏎"], alignment)
        plots.append(plot(figure, f"Attention of {' '.join(target)} to {' '.join(source)}"))
    yield Section(
        "Attention",
        "Which source words the network looks at, darker for more, when it writes each word of the "
        "likeliest target, in the order in which it writes; ⏎ is the end.",
        Markup().join(plots),
    )


@torch.inference_mode()
def _alignment(network: RnnSearch, source: Sequence[int], target: Sequence[int]) -> Floats32:
    """Return the alignment (target words + END, source words + END) of a target."""
    lengths = torch.tensor([len(source)])
    annotations = network.annotations(torch.tensor([[*source, END]]), lengths)
    _, alignments = network.decode(annotations, lengths, torch.tensor([[END, *target]]).t())
    found: Floats32 = alignments[:, 0].numpy()
    return found
