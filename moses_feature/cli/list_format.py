"""The option that says whose n-best lists are read."""

from __future__ import annotations

import click

from moses_feature.nbest_formats.reader import FORMATS, MOSES

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=MOSES,
    show_default=True,
    help="Whose lists they are. Those of other decoders get a WordPenalty0, and what orders them.",
)
