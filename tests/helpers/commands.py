"""All commands of the project, by what a user types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import click

from moses_feature.cli.main import moses_feature
from moses_feature.cli.tables.augment import augment_phrase_table
from moses_feature.cli.tuning.compare import mert_compare
from moses_feature.cli.tuning.decode import mert_decode
from moses_feature.cli.tuning.optimise import mert_optimize
from moses_feature.cli.tuning.tune import mert_tune


@cache
def all_commands() -> dict[str, click.Command]:
    """Return the commands by their whole names, such as `moses-feature model train`."""
    scripts = augment_phrase_table, mert_compare, mert_decode, mert_optimize, mert_tune
    found = {script.name or "": script for script in scripts}
    return found | dict(_below(moses_feature, "moses-feature"))


def _below(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for part in group.list_commands(context):
        command = group.get_command(context, part)
        if isinstance(command, click.Group):
            yield from _below(command, f"{name} {part}")
        elif command is not None:
            yield f"{name} {part}", command


def options_of(command: click.Command) -> set[str]:
    """Return the options that a command takes, such as `--help`."""
    parameters = command.get_params(context_of(command))
    return {option for parameter in parameters for option in parameter.opts if option[:1] == "-"}


def context_of(command: click.Command, name: str = "", **settings: Any) -> click.Context:
    """Return a context as a user's call makes it; click keeps the first one's help option."""
    return command.make_context(name, [], resilient_parsing=True, **settings)
