"""A page in one file: sections of text, tables and plots, for wide and narrow windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from zlib import crc32

import plotly.graph_objects as graph
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
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


CONFIG = {"responsive": True, "displaylogo": False, "displayModeBar": "hover", "scrollZoom": False}
_TEMPLATES = Environment(
    loader=PackageLoader("moses_feature.report"),
    autoescape=True,
    trim_blocks=True,
    undefined=StrictUndefined,
)


def rendered(template: str | Template, **values: object) -> Markup:
    """Return HTML of a template; text in the values is escaped, `Markup` is not.

    Args:
        template: one of this package by its name, or another one (see `template_of`).
        **values: what it names.
    """
    if isinstance(template, str):
        template = _TEMPLATES.get_template(template)
    return Markup(template.render(**values))  # noqa: S704  # the template escapes


def template_of(path: Path) -> Template:
    """Return a template of another package."""
    return _TEMPLATES.from_string(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading, as text.
        how_to_read: one or two sentences, as text.
        content: HTML.
        folded: whether the content is shown only when it is asked for, because it is long.
    """

    title: str
    how_to_read: str
    content: Markup = field(default_factory=Markup)
    folded: bool = False


def write_page(path: Path, title: str, sections: Sequence[Section], script: str = "") -> None:
    """Write a self-contained HTML page.

    Args:
        path: the page; it appears when it is complete.
        title: its title, as text.
        sections: in their order.
        script: JavaScript that runs when everything else is loaded.
    """
    page = rendered(
        "page.html",
        title=title,
        sections=sections,
        plotly=Markup(get_plotlyjs()),  # noqa: S704
        script=Markup(script),  # noqa: S704
    )
    write_whole(path, page.encode(errors="replace"))


def table(
    rows: Sequence[Sequence[str]], kind: str | None = None, name: str | None = None
) -> Markup:
    """Return a table, text in its cells.

    Args:
        rows: the first is the header.
        kind: `text` if other columns than the first contain words.
        name: the name by which a script finds it.
    """
    head, *body = rows
    return rendered("table.html", head=head, body=body, kind=kind, name=name)


def plot(figure: graph.Figure, label: str, name: str | None = None) -> Markup:
    """Return a figure; the label is read to those who do not see it.

    Args:
        figure: the figure.
        label: a description of the figure.
        name: the name by which a script finds it.
    """
    figure.update_layout(
        template="plotly_white",
        autosize=True,
        margin={"l": 50, "r": 10, "t": 70, "b": 40},  # the toolbar stands above the titles
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
    )
    name = name or f"plot-{crc32(label.encode()):08x}"  # else plotly draws one at random
    html = figure.to_html(full_html=False, include_plotlyjs=False, config=CONFIG, div_id=name)
    return Markup('<div role="img" aria-label="{}">{}</div>').format(label, Markup(html))  # noqa: S704


def plotted(text: str) -> str:
    """Return a text escaped for plotly, which interprets tags."""
    return escape(text, quote=False)
