"""Write `reference/options.md`: what `--help` prints of each command. `make options` runs it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import click

from moses_feature.cli.main import moses_feature
from moses_feature.cli.tables.augment import augment_phrase_table
from moses_feature.cli.tuning.compare import mert_compare
from moses_feature.cli.tuning.decode import mert_decode
from moses_feature.cli.tuning.optimise import mert_optimize
from moses_feature.cli.tuning.tune import mert_tune

PAGE = Path(__file__).resolve().parent / "reference" / "options.md"
SCRIPTS = augment_phrase_table, mert_compare, mert_tune, mert_decode, mert_optimize
WIDTH = 80


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a group, and of the groups in it, by what a user types."""
    context = click.Context(group)
    for part in group.list_commands(context):
        command = group.get_command(context, part)
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {part}")
        elif command is not None:
            yield f"{name} {part}", command


def page() -> str:
    """Return the page."""
    parts = [
        "# All options",
        "What `--help` prints of each command. [Commands](commands.md) has them by task, and "
        "[the words of the command line](vocabulary.md) by name.",
    ]
    everything = [(f"{script.name}", script) for script in SCRIPTS]
    for name, command in (*everything, *commands(moses_feature, "moses-feature")):
        context = click.Context(command, info_name=name, terminal_width=WIDTH)
        parts += [f"## {name}", f"```text\n{command.get_help(context).rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.parse_args().output.write_text(page())
