"""An HTML page of a comparison: Table 1, the metric of all runs, weights, learning curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import plotly.graph_objects as graph
from markupsafe import Markup
from plotly.subplots import make_subplots

from mert.comparison.report import new_weights, notes, number_of_runs, on_many, pairs, table
from mert.comparison.results import Comparison, SystemResult
from mert.comparison.translations import changes_section
from mert.tuning.corpus import Corpus
from moses_feature.report import page
from moses_feature.report.page import Section

SCRIPT = Path(__file__).with_name("changes.js")
COLOURS = ("#4477aa", "#ee6677", "#228833", "#b8860b", "#3399bb", "#aa3377", "#777777")


def write_page(
    comparison: Comparison, test: Corpus, path: Path, settings: Mapping[str, object]
) -> None:
    """Write a self-contained HTML page, for wide and narrow windows.

    Args:
        comparison: the results.
        test: the test text.
        path: the page.
        settings: shown at the end, by name.
    """
    title = f"Comparison of {', '.join(system.name for system in comparison.systems)}"
    sections = _sections(comparison, test, settings)
    page.write_page(path, title, sections, SCRIPT.read_text())


def _sections(
    comparison: Comparison, test: Corpus, settings: Mapping[str, object]
) -> list[Section]:
    label = comparison.metric.label
    where = "on the test set"
    tuned = any(run.weights for system in comparison.systems for run in system.runs)
    if tuned:
        where = (
            "on the development set that the weights were tuned on, and on the test set that "
            "nothing was tuned on"
        )
    return [
        Section(
            "Table 1",
            f"{label} {where}: mean and standard deviation over the runs. A difference counts if "
            "p is small; below 0.05 is usual. p is two-sided, and covers the choice of sentences "
            "and the luck of tuning.",
            page.table(table(comparison))
            + Markup().join(Markup("<p>{}</p>").format(note) for note in notes(comparison)),
        ),
        *(
            [Section("All pairs", on_many(comparison), page.table(of_pairs))]
            if (of_pairs := pairs(comparison))
            else []
        ),
        Section(
            f"{label} of each run",
            "A dot is a run, a bar the mean. Runs of one system differ by chance: compare "
            "the clouds, not the best dots.",
            page.plot(_scores(comparison), f"{label} of each run by system"),
        ),
        *(_of_tuning(comparison) if tuned else []),
        *_changes(comparison, test),
        *([_time(comparison)] if tuned else []),
        Section(
            "Settings",
            f"{number_of_runs(comparison)}; {label}: {comparison.signature}.",
            page.table(
                [
                    ("setting", "value"),
                    *((k, "by default" if v is None else str(v)) for k, v in settings.items()),
                ]
            ),
        ),
    ]


def _changes(comparison: Comparison, test: Corpus) -> Iterator[Section]:
    """Yield what each system changes in the translations of the baseline."""
    baseline, *others = comparison.systems
    for system in others:
        yield changes_section(baseline, system, test, comparison.metric)


def _of_tuning(comparison: Comparison) -> list[Section]:
    """Return the sections about tuning; none if nothing was tuned."""
    label = comparison.metric.label
    return [
        Section(
            "Weights",
            "Of each feature, in each run, scaled so that absolute values sum to 1; an ini may "
            "have another scale, which changes nothing. A weight that changes its sign from run "
            "to run is one that the tuning does not know what to do with.",
            Markup().join(Markup("<p>{}</p>").format(note) for note in new_weights(comparison))
            + page.plot(_weights(comparison), "Weights of the features by system and run"),
        ),
        Section(
            "Learning curves",
            f"{label} of the first translations of the development set, iteration by iteration.",
            page.plot(_curves(comparison), f"{label} by iteration of each tuning run"),
        ),
    ]


def _time(comparison: Comparison) -> Section:
    return Section(
        "Time",
        "Minutes of each system: for reading the models, for decoding the development set in "
        "all iterations of all runs, for finding weights on what was decoded, and for "
        "translating the test set. What rescores the lists counts as decoding.",
        page.table(
            [
                ("system", "iterations", "loading", "decoding", "optimising", "testing"),
                *map(_times, comparison.systems),
            ]
        ),
    )


def _times(system: SystemResult) -> tuple[str, ...]:
    decoding, optimising = (sum(run.seconds[step] for run in system.runs) for step in (0, 1))
    seconds = (system.seconds.loading, decoding, optimising, system.seconds.testing)
    iterations = sum(run.iterations for run in system.runs)
    return system.name, f"{iterations}", *(f"{of_step / 60:.1f}" for of_step in seconds)


def _scores(comparison: Comparison) -> graph.Figure:
    tuned = [s for s in comparison.systems if not np.isnan(s.scores("dev")).any()]
    parts = {"dev": tuned, "test": comparison.systems} if tuned else {"test": comparison.systems}
    figure = make_subplots(cols=len(parts), subplot_titles=list(parts), horizontal_spacing=0.12)
    names = [page.plotted(system.name) for system in comparison.systems]
    for column, (part, systems) in enumerate(parts.items(), 1):
        for system in systems:
            place = names.index(page.plotted(system.name))
            scores = system.scores(part)
            colour = COLOURS[place % len(COLOURS)]
            dots = graph.Scatter(
                x=[place] * len(scores),
                y=scores,
                mode="markers",
                showlegend=False,
                marker={"size": 11, "color": colour, "opacity": 0.75},
                text=[f"run {run.seed}" for run in system.runs],
                hovertemplate="%{text}: %{y:.2f}<extra></extra>",
            )
            mean = graph.Scatter(
                x=[place - 0.25, place + 0.25],
                y=[scores.mean()] * 2,
                mode="lines+text",
                showlegend=False,
                line={"color": colour, "width": 3},
                text=["", f"{scores.mean():.2f}"],
                textposition="top center",
                hoverinfo="skip",
            )
            figure.add_traces([dots, mean], rows=[1, 1], cols=[column, column])
        ticks = list(range(len(names)))
        axis = {"tickvals": ticks, "ticktext": names, "range": [-0.6, len(names) - 0.4]}
        figure.update_xaxes(**axis, row=1, col=column)
    figure.update_yaxes(title_text=comparison.metric.label, row=1, col=1)
    return figure


def _weights(comparison: Comparison) -> graph.Figure:
    figure = graph.Figure()
    for place, system in enumerate(comparison.systems):
        for number, run in enumerate(system.runs):
            figure.add_trace(
                graph.Scatter(
                    x=[page.plotted(name) for name in run.weights],
                    y=list(run.weights.values()),
                    mode="markers",
                    name=page.plotted(system.name),
                    legendgroup=system.name,
                    showlegend=number == 0,
                    marker={"size": 9, "color": COLOURS[place % len(COLOURS)], "opacity": 0.7},
                    hovertemplate=f"seed {run.seed}, %{{x}}: %{{y:.4f}}<extra></extra>",
                )
            )
    figure.update_yaxes(title_text="weight", zeroline=True, zerolinecolor="#999")
    return figure


def _curves(comparison: Comparison) -> graph.Figure:
    figure = graph.Figure()
    for place, system in enumerate(comparison.systems):
        for number, run in enumerate(system.runs):
            figure.add_trace(
                graph.Scatter(
                    x=np.arange(1, len(run.curve) + 1),
                    y=run.curve,
                    mode="lines+markers",
                    name=page.plotted(system.name),
                    legendgroup=system.name,
                    showlegend=number == 0,
                    line={"color": COLOURS[place % len(COLOURS)]},
                    hovertemplate=f"seed {run.seed}, iteration %{{x}}: %{{y:.2f}}<extra></extra>",
                )
            )
    figure.update_xaxes(title_text="iteration", dtick=1)
    figure.update_yaxes(title_text=f"{comparison.metric.label} on dev")
    return figure
