"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from moses_feature import __version__

project = "moses-feature"
author = "the moses-feature developers"
project_copyright = "2026, the moses-feature developers"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
default_role = "code"  # docstrings quote code in single backticks
smartquotes = False  # an option begins with --
myst_heading_anchors = 3
napoleon_use_ivar = True
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"moses-feature {release}"


HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
LOG = "_results"  # what is measured stands outside this folder, and Sphinx reads nothing outside


def copy_results(_app: Sphinx) -> None:
    """Copy the log of the measurements to where Sphinx finds it."""
    shutil.rmtree(HERE / LOG, ignore_errors=True)
    (HERE / LOG).mkdir()
    for page in RESULTS.glob("*.md"):
        shutil.copy2(page, HERE / LOG)


def lead_to_the_copy(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Make links to the log, and from it, lead to the copy."""
    text = re.sub(r"\]\((\.\./)+benchmarks/results/", f"](/{LOG}/", source[0])
    source[0] = text.replace("](../../docs/", "](/")


def names_together(
    _app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    """Keep names that a docstring describes together from being taken for a type and a name."""
    lines[:] = [
        re.sub("^:(ivar|param) [^:]+", lambda names: names[0].replace(", ", ","), line)
        for line in lines
    ]


def setup(app: Sphinx) -> None:
    """Bring in the log, and change what docstrings become."""
    app.connect("builder-inited", copy_results)
    app.connect("source-read", lead_to_the_copy)
    app.connect("autodoc-process-docstring", names_together, priority=900)
