"""One page that shows a comparison: Table 1, BLEU of all runs, weights, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import plotly.graph_objects as graph
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from mert.comparison.report import notes, table
from mert.comparison.results import Comparison, SystemResult
from moses_feature.files import write_whole

COLOURS = ("#4477aa", "#ee6677", "#228833", "#b8860b", "#3399bb", "#aa3377", "#777777")
STYLE = """
body { font-family: system-ui, sans-serif; line-height: 1.5; margin: 0 auto; max-width: 70rem;
  padding: 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; } th, td { padding: .3rem .8rem; text-align: right; }
th:first-child, td:first-child { text-align: left; } tr { border-bottom: 1px solid #ddd; }
.wide { overflow-x: auto; } code { overflow-wrap: anywhere; } p { max-width: 45rem; }
"""


def write_page(comparison: Comparison, path: Path, settings: Mapping[str, object]) -> None:
    """Write an HTML page that needs nothing else, on a wide window or a narrow one.

    Args:
        comparison: the results.
        path: of the page.
        settings: shown at the end, by their names.
    """
    body = "".join(
        f"<section><h2>{escape(title)}</h2><p>{escape(text)}</p>{content}</section>"
        for title, text, content in _sections(comparison, settings)
    )
    title = f"Comparison of {', '.join(system.name for system in comparison.systems)}"
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><script>{get_plotlyjs()}</script></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )
    write_whole(path, page.encode(errors="replace"))


def _sections(comparison: Comparison, settings: Mapping[str, object]) -> list[tuple[str, str, str]]:
    """Return title, a sentence on how to read it, and content of each section."""
    runs = len(comparison.systems[0].runs)
    return [
        (
            "Table 1",
            "BLEU on the development set that the weights were tuned on, and on the test set that "
            "nothing was tuned on: mean and standard deviation over the tuning runs. A difference "
            "counts if its p-values are small; below 0.05 is usual.",
            _table(table(comparison)) + "".join(f"<p>{escape(n)}</p>" for n in notes(comparison)),
        ),
        (
            "BLEU of each run",
            "A dot is a tuning run, a bar the mean. Runs of one system differ by chance: compare "
            "the clouds, not the best dots.",
            _figure(_bleu(comparison), "BLEU of each tuning run by system"),
        ),
        (
            "Weights",
            "Of each feature, in each run; absolute values sum to 1. A weight that changes its "
            "sign from run to run is one that the tuning does not know what to do with.",
            _figure(_weights(comparison), "Weights of the features by system and run"),
        ),
        (
            "Learning curves",
            "BLEU of the first translations of the development set, iteration by iteration.",
            _figure(_curves(comparison), "BLEU by iteration of each tuning run"),
        ),
        (
            "Time",
            "Minutes of each system: for reading the models, for decoding the development set in "
            "all iterations of all runs, for finding weights on the n-best lists, and for "
            "translating the test set. What rescores the lists counts as decoding.",
            _table(
                [
                    ("system", "iterations", "loading", "decoding", "optimising", "testing"),
                    *map(_times, comparison.systems),
                ]
            ),
        ),
        (
            "Settings",
            f"{runs} tuning run{'s' if runs > 1 else ''} a system; BLEU: {comparison.signature}.",
            _table(
                [
                    ("setting", "value"),
                    *((k, "by default" if v is None else str(v)) for k, v in settings.items()),
                ]
            ),
        ),
    ]


def _times(system: SystemResult) -> tuple[str, ...]:
    decoding, optimising = (sum(run.seconds[step] for run in system.runs) for step in (0, 1))
    seconds = (system.seconds.loading, decoding, optimising, system.seconds.testing)
    iterations = sum(run.iterations for run in system.runs)
    return system.name, f"{iterations}", *(f"{of_step / 60:.1f}" for of_step in seconds)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body
    )
    return f'<div class="wide"><table><tr>{cells}</tr>{lines}</table></div>'


def _figure(figure: graph.Figure, label: str) -> str:
    figure.update_layout(
        template="plotly_white", autosize=True, margin={"l": 50, "r": 10, "t": 40, "b": 40}
    )
    html = figure.to_html(full_html=False, include_plotlyjs=False, config={"responsive": True})
    return f'<div role="img" aria-label="{escape(label)}">{html}</div>'


def _bleu(comparison: Comparison) -> graph.Figure:
    figure = make_subplots(cols=2, subplot_titles=("dev", "test"), horizontal_spacing=0.12)
    names = [_text(system.name) for system in comparison.systems]
    for column, part in enumerate(("dev", "test"), 1):
        for place, system in enumerate(comparison.systems):
            bleu = system.bleu(part)
            colour = COLOURS[place % len(COLOURS)]
            dots = graph.Scatter(
                x=[place] * len(bleu),
                y=bleu,
                mode="markers",
                showlegend=False,
                marker={"size": 11, "color": colour, "opacity": 0.75},
                text=[f"seed {run.seed}" for run in system.runs],
                hovertemplate="%{text}: %{y:.2f}<extra></extra>",
            )
            mean = graph.Scatter(
                x=[place - 0.25, place + 0.25],
                y=[bleu.mean()] * 2,
                mode="lines+text",
                showlegend=False,
                line={"color": colour, "width": 3},
                text=["", f"{bleu.mean():.2f}"],
                textposition="top center",
                hoverinfo="skip",
            )
            figure.add_traces([dots, mean], rows=[1, 1], cols=[column, column])
        ticks = list(range(len(names)))
        axis = {"tickvals": ticks, "ticktext": names, "range": [-0.6, len(names) - 0.4]}
        figure.update_xaxes(**axis, row=1, col=column)
    figure.update_yaxes(title_text="BLEU", row=1, col=1)
    return figure


def _weights(comparison: Comparison) -> graph.Figure:
    figure = graph.Figure()
    for place, system in enumerate(comparison.systems):
        for number, run in enumerate(system.runs):
            figure.add_trace(
                graph.Scatter(
                    x=[_text(name) for name in run.weights],
                    y=list(run.weights.values()),
                    mode="markers",
                    name=_text(system.name),
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
                    name=_text(system.name),
                    legendgroup=system.name,
                    showlegend=number == 0,
                    line={"color": COLOURS[place % len(COLOURS)]},
                    hovertemplate=f"seed {run.seed}, iteration %{{x}}: %{{y:.2f}}<extra></extra>",
                )
            )
    figure.update_xaxes(title_text="iteration", dtick=1)
    figure.update_yaxes(title_text="BLEU on dev")
    return figure


def _text(name: str) -> str:
    """Return a name as plotly shows it, which takes tags for its own."""
    return escape(name)
