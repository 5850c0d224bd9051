"""The command `moses-feature`, and how the commands are found: each is loaded when it is called.

What loads torch is imported by the functions that need it, so that `--help` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from moses_feature import __version__
from moses_feature.cli.start import loading, start
from moses_feature.runtime.environment import quiet_threads

COMMANDS = {
    "binarise": "moses_feature.cli.binarise:binarise_command",
    "check": "moses_feature.cli.check:check_command",
    "cslm": "moses_feature.cli.cslm:cslm_group",
    "describe": "moses_feature.cli.describe:describe_command",
    "doctor": "moses_feature.cli.doctor:doctor_command",
    "favourites": "moses_feature.cli.favourites:favourites_command",
    "ini": "moses_feature.cli.ini:ini_group",
    "joint": "moses_feature.cli.joint:joint_group",
    "merge": "moses_feature.cli.merge:merge_command",
    "propose": "moses_feature.cli.propose:propose_command",
    "refine": "moses_feature.cli.refine:refine_command",
    "report": "moses_feature.cli.report:report_command",
    "rescore": "moses_feature.cli.rescore:rescore_command",
    "sample": "moses_feature.cli.sample:sample_command",
    "score": "moses_feature.cli.score:score_command",
    "search": "moses_feature.cli.search:search_group",
    "select": "moses_feature.cli.select:select_command",
    "train": "moses_feature.cli.train:train_command",
}
"""Where each command of `moses-feature` is."""


class LazyGroup(click.Group):
    """A group whose commands are loaded when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """Load a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        with loading():
            command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def moses_feature() -> None:
    """Neural scores for Moses phrase tables."""


def main(**options: Any) -> None:
    """Run `moses-feature`."""
    start("moses_feature.cli.main:moses_feature", quiet_threads, **options)


def augment() -> None:
    """Run `augment-phrase-table`."""
    start("moses_feature.cli.augment:augment_phrase_table", quiet_threads)
