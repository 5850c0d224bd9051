"""The command `moses-feature table propose`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command, command_line, debug_option
from moses_feature.cli.common.paths import (
    READ_AUGMENTED,
    READ_MODEL,
    WRITE_TABLE,
)
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.vocabulary import FiniteRange, WholeRange, option
from moses_feature.tables.settings import ProposeSettings
from moses_feature.tables.shards import MAX_LENGTH

DEFAULTS = ProposeSettings()


@click.command("propose", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_AUGMENTED)
@click.argument("model", type=READ_MODEL)
@click.argument("output", type=WRITE_TABLE)
@option("phrases-of", "A text whose phrases get new targets. Repeatable.", many=True, required=True)
@option("best", "New targets of a source phrase at most.", default=DEFAULTS.best)
@option("enough", "A source phrase with so many targets gets no more.", default=DEFAULTS.enough)
@option(
    "longest",
    "Words of a source phrase at most.",
    default=DEFAULTS.longest,
    within=WholeRange(1, MAX_LENGTH),
)
@option(
    "least",
    "log p(target | source) of a new target at least, for each word, the end being one.",
    default=DEFAULTS.least,
    within=FiniteRange(max=0),
)
@option(
    "beam", "Prefixes of the search for targets.", default=DEFAULTS.beam, within=WholeRange(1, 1000)
)
@option(
    "lexical",
    "PREFIX.f2e and PREFIX.e2f, which Moses' training leaves as model/lex.*: lexical weights "
    "of new pairs.",
)
@debug_option
def propose_command(
    table: str,
    model: str,
    output: str,
    phrases_of: tuple[str, ...],
    best: int,
    enough: int,
    longest: int,
    least: float,
    beam: int,
    lexical: str | None,
) -> None:
    """Add targets that a network finds likely to a table.

    All phrases of these texts are looked at, those that the table does not have, too. A new
    pair has the network's p(target | source) in the place of each probability, links to what the
    network looks at (or along the diagonal, if it looks at no single words), and e in a new last
    column, where all old lines have 1: its weight is what a proposed pair gains or loses, and has
    to be tuned.

    \b
    Example:
      moses-feature table propose augmented.gz augmented.model more.gz --phrases-of dev.en \\
          --phrases-of test.en
    """
    from moses_feature.phrases.generation.generator import generator_of
    from moses_feature.tables.propose import propose

    settings = ProposeSettings(best, enough, longest, least, beam, lexical)
    generator = generator_of(Path(model))
    with Progress(has_end=True) as progress:

        def report(done: int, phrases: int) -> None:
            progress.show(f"{done:,} of {phrases:,} phrases", done / phrases)

        found = propose(table, generator, output, phrases_of, settings, command_line(), report)
    click.echo(
        f"{output}: {found.lines:,} new lines for {found.helped:,} of {found.phrases:,} phrases "
        f"of the texts; the table has {found.covered:,} of them, and {found.added:,} that it does "
        "not have got lines",
        err=True,
    )
