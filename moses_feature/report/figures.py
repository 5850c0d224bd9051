"""The plots of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as graph

from moses_feature.report.facts import BIN, Density
from moses_feature.report.page import plotted, shown_text
from moses_feature.runtime.files import Json

if TYPE_CHECKING:
    from moses_feature.report.maps import Map

SHOWN_FIRST = 0.999
"""The share of all pairs that is visible before zooming out."""
LABELS = 60
"""The most labelled points of a map."""
LABEL_SIZE = 0.14, 0.03
"""The width and height of a label, as parts of those of the map."""


def density_figure(density: Density, escaped: bool) -> graph.Figure:
    """Return log p by the table against log p by the network, coloured by the number of pairs."""
    shape = tuple(1 + max(bins) for bins in zip(*density.counts, strict=True))[::-1]
    y, x = ([-BIN * (place + 0.5) for place in range(bins)] for bins in shape)
    counts = np.zeros(shape, dtype=np.int64)  # rows belong to the network
    texts = np.full(counts.shape, "", dtype=object)
    for (by_table, by_network), count in density.counts.items():
        line = density.examples[by_table, by_network]
        pair = f"{shown_text(line.source, escaped)} → {shown_text(line.target, escaped)}"
        counts[by_network, by_table] = count
        texts[by_network, by_table] = plotted(
            f"{count:,} pairs, such as {pair}" if count > 1 else pair
        )
    with np.errstate(divide="ignore"):
        shades = np.where(counts > 0, np.log10(counts), np.nan)
    top = int(np.ceil(np.nanmax(shades)))
    figure = graph.Figure(
        graph.Heatmap(
            x=x,
            y=y,
            z=np.round(shades, 2).tolist(),
            text=texts.tolist(),
            hovertemplate="table %{x:.1f}, network %{y:.1f}: %{text}<extra></extra>",
            colorscale="Viridis",
            colorbar={
                "title": "pairs",
                "tickvals": list(range(top + 1)),
                "ticktext": [f"{10**power:,}" for power in range(top + 1)],
            },
        )
    )
    ends = [-BIN * shape[1], 0]
    figure.add_trace(
        graph.Scatter(
            x=ends,
            y=ends,
            mode="lines",
            line={"color": "#ee6677", "dash": "dot"},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    figure.update_xaxes(title_text="log p by the table")
    of_most = np.searchsorted(np.cumsum(counts.sum(axis=1)), SHOWN_FIRST * counts.sum())
    lowest = -BIN * max(int(of_most) + 1, shape[1])
    figure.update_yaxes(title_text="log p by the network", range=[lowest, 0])
    figure.update_layout(height=560)
    return figure


def loss_figure(history: Sequence[Json], sign: int, what: str) -> graph.Figure:
    """Return the losses of a training over its updates, times a sign, and what they are."""
    figure = graph.Figure()
    for name, key in (("training", "training_loss"), ("held-out", "held_out_loss")):
        figure.add_trace(
            graph.Scatter(
                x=[row["update"] for row in history],
                y=[None if key not in row else sign * row[key] for row in history],
                mode="lines+markers",
                name=name,
                hovertemplate=f"{name}, update %{{x:,}}: %{{y:.3f}}<extra></extra>",
            )
        )
    figure.update_xaxes(title_text="updates")
    figure.update_yaxes(title_text=what)
    figure.update_layout(legend={"orientation": "h", "y": -0.2})
    return figure


def map_figure(points: Map) -> graph.Figure:
    """Return a map; its colours are set by the page's script."""
    figure = graph.Figure(
        graph.Scattergl(
            x=np.round(points.places[:, 0], 2).tolist(),
            y=np.round(points.places[:, 1], 2).tolist(),
            mode="markers",
            text=[plotted(name) for name in points.names],
            hovertemplate="%{text}<extra></extra>",
            marker={"size": 5, "opacity": 0.7},
        )
    )
    labelled = _with_room_for_a_label(points)
    figure.add_trace(
        graph.Scatter(
            x=np.round(points.places[labelled, 0], 2).tolist(),
            y=np.round(points.places[labelled, 1], 2).tolist(),
            mode="text",
            text=[plotted(points.names[place]) for place in labelled],
            hoverinfo="skip",
            showlegend=False,
        )
    )
    axis = {"showticklabels": False, "zeroline": False, "showgrid": False}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis, scaleanchor="x")
    figure.update_layout(height=640, showlegend=False)
    return figure


def _with_room_for_a_label(points: Map) -> list[int]:
    """Return the points to label: the most frequent ones that are not too close together."""
    spread = np.ptp(points.places, axis=0) * LABEL_SIZE
    chosen: list[int] = []
    for place in range(len(points.names)):
        apart = np.abs(points.places[chosen] - points.places[place]) / spread
        if len(chosen) < LABELS and (apart > 1).any(axis=1).all():
            chosen.append(place)
    return chosen
