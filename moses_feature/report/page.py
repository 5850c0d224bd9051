"""A page in one file: sections of text, tables and plots, for wide and narrow windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import plotly.graph_objects as graph
from plotly.offline import get_plotlyjs

from moses_feature.moses.words import unescape
from moses_feature.runtime.errors import printable
from moses_feature.runtime.files import write_whole

NOTHING = "∅"
"""A target without words."""


def shown_text(phrase: bytes, escaped: bool = True) -> str:
    r"""Return a phrase as text, without Moses' escapes if it is escaped.

    Bytes that are not UTF-8, and control characters, are shown as `\x…`.
    """
    plain = unescape(phrase) if escaped else phrase
    return printable(plain.decode("utf-8", errors="backslashreplace")) or NOTHING


STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --line: #ddd; --faint: #666;
  --mark: #ffe08a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --paper: #181818; --line: #444; --faint: #aaa;
    --mark: #6b5510; } }
body { font-family: system-ui, sans-serif; line-height: 1.5; margin: 0 auto; max-width: 70rem;
  padding: 1rem; color: var(--ink); background: var(--paper); }
table { border-collapse: collapse; } th, td { padding: .3rem .8rem; text-align: right;
  vertical-align: top; }
th:first-child, td:first-child, table.text th, table.text td { text-align: left;
  white-space: pre-line; }
tr { border-bottom: 1px solid var(--line); }
section { min-width: 0; } [role=img] { overflow: hidden; }
.wide { overflow-x: auto; } code { overflow-wrap: anywhere; } p { max-width: 45rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
mark { color: inherit; background: var(--mark); } h3 { margin-bottom: .3rem; }
.controls { display: flex; flex-wrap: wrap; gap: 1rem; align-items: end; }
.controls label { color: var(--faint); } .controls input, .controls select { font: inherit; }
"""
CONFIG = {"responsive": True, "displaylogo": False, "displayModeBar": "hover", "scrollZoom": False}
FOLLOW_THEME = """
(() => {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const colour = () => {
    const ink = getComputedStyle(document.documentElement).getPropertyValue('--ink').trim();
    const line = getComputedStyle(document.documentElement).getPropertyValue('--line').trim();
    for (const plot of document.querySelectorAll('.js-plotly-plot')) {
      const change = { 'font.color': ink, paper_bgcolor: 'rgba(0,0,0,0)',
        plot_bgcolor: 'rgba(0,0,0,0)' };
      for (const axis of Object.keys(plot.layout).filter((name) => /^[xy]axis/.test(name)))
        change[axis + '.gridcolor'] = change[axis + '.zerolinecolor'] = line;
      Plotly.relayout(plot, change);
      Plotly.Plots.resize(plot);
    }
  };
  dark.addEventListener('change', colour);
  addEventListener('load', colour);
})();
"""


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading, text.
        how_to_read: a sentence or two, text.
        content: HTML.
    """

    title: str
    how_to_read: str
    content: str


def write_page(path: Path, title: str, sections: Sequence[Section], script: str = "") -> None:
    """Write an HTML page that needs nothing else.

    Args:
        path: of the page; it appears whole.
        title: text.
        sections: in their order.
        script: JavaScript that runs when all else is there.
    """
    body = "".join(
        f"<section><h2>{escape(section.title)}</h2><p>{escape(section.how_to_read)}</p>"
        f"{section.content}</section>"
        for section in sections
    )
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><script>{get_plotlyjs()}</script></head>"
        f"<body><h1>{escape(title)}</h1>{body}<script>{FOLLOW_THEME}{script}</script></body></html>\n"
    )
    write_whole(path, page.encode(errors="replace"))


def table(rows: Sequence[Sequence[str]], kind: str = "", name: str = "") -> str:
    """Return a table, text in its cells.

    Args:
        rows: the first is the head.
        kind: `text` if not only the first column is words.
        name: by which a script finds it.
    """
    head, *body = rows
    cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body
    )
    attributes = (f' class="{kind}"' if kind else "") + (f' id="{name}"' if name else "")
    return (
        f'<div class="wide"><table{attributes}><thead><tr>{cells}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def plot(figure: graph.Figure, label: str, name: str | None = None) -> str:
    """Return a figure; the label is read to those who do not see it.

    Args:
        figure: the figure.
        label: what it shows.
        name: by which a script finds it.
    """
    figure.update_layout(
        template="plotly_white", autosize=True, margin={"l": 50, "r": 10, "t": 40, "b": 40}
    )
    html = figure.to_html(full_html=False, include_plotlyjs=False, config=CONFIG, div_id=name)
    return f'<div role="img" aria-label="{escape(label)}">{html}</div>'


def plotted(text: str) -> str:
    """Return a text as plotly shows it, which takes tags for its own."""
    return escape(text, quote=False)
