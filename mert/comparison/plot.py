"""One page that shows BLEU by system and tuning run."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as graph
from plotly.subplots import make_subplots

from mert.comparison.results import Comparison
from moses_feature.files import write_whole

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")


def plot(comparison: Comparison, path: Path) -> None:
    """Write an HTML page that needs nothing else: a dot for each run, a bar for the mean."""
    figure = make_subplots(cols=2, subplot_titles=("dev", "test"), horizontal_spacing=0.1)
    names = [system.name for system in comparison.systems]
    for column, part in enumerate(("dev", "test"), 1):
        for place, system in enumerate(comparison.systems):
            bleu = system.bleu(part)
            colour = COLOURS[place % len(COLOURS)]
            figure.add_trace(
                graph.Scatter(
                    x=[place] * len(bleu),
                    y=bleu,
                    mode="markers",
                    name=system.name,
                    marker={"size": 11, "color": colour, "opacity": 0.75},
                    text=[f"seed {run.seed}" for run in system.runs],
                    showlegend=False,
                    hovertemplate="%{text}: %{y:.2f}<extra></extra>",
                ),
                row=1,
                col=column,
            )
            figure.add_shape(
                type="line",
                x0=place - 0.25,
                x1=place + 0.25,
                y0=bleu.mean(),
                y1=bleu.mean(),
                line={"color": colour, "width": 3},
                row=1,
                col=column,
            )
            figure.add_annotation(
                x=place + 0.28,
                y=bleu.mean(),
                text=f"{bleu.mean():.2f}",
                showarrow=False,
                xanchor="left",
                font={"color": colour},
                row=1,
                col=column,
            )
        figure.update_xaxes(
            tickvals=list(range(len(names))),
            ticktext=names,
            range=[-0.6, len(names) - 0.2],
            row=1,
            col=column,
        )
        figure.update_yaxes(title_text="BLEU", row=1, col=column)
    figure.update_layout(
        title="BLEU of each tuning run (dots) and their mean (bars)",
        template="plotly_white",
        height=480,
        width=1000,
    )
    write_whole(path, figure.to_html(include_plotlyjs=True).encode())
