"""The command `moses-feature` and its groups; each command is loaded when it is called.

Modules that load torch or numba are imported inside the functions that need them, so that `--help`
is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pkgutil import resolve_name
from typing import Any

import click

from moses_feature import __version__
from moses_feature.cli.common.gone import COMMANDS
from moses_feature.cli.common.start import loading

GROUPS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "table": (
        "Phrase tables: filter, look at. (augment-phrase-table adds a network's scores.)",
        {
            "filter": "moses_feature.cli.tables.filter:filter_command",
            "report": "moses_feature.cli.tables.report:report_command",
        },
    ),
    "model": (
        "Networks: train, score with, translate with, export.",
        {
            "train": "moses_feature.cli.models.train:train_command",
            "train-sentences": "moses_feature.cli.models.train_sentences:train_command",
            "train-cslm": "moses_feature.cli.models.train_cslm:train_cslm_command",
            "score": "moses_feature.cli.models.score:score_command",
            "sample": "moses_feature.cli.models.sample:sample_command",
            "translate": "moses_feature.cli.models.translate:translate_command",
            "export": "moses_feature.cli.models.export:export_command",
        },
    ),
    "list": (
        "N-best lists of any decoder: add features, tune their weights, put them in a new order.",
        {
            "rescore": "moses_feature.cli.lists.rescore:rescore_command",
            "tune": "moses_feature.cli.tuning.tune_lists:tune_lists_command",
        },
    ),
    "system": (
        "Systems: build one from texts, add a feature. "
        "(mert-tune and mert-compare tune and compare.)",
        {
            "build": "moses_feature.cli.systems.build:build_command",
            "add": "moses_feature.cli.systems.add:add_command",
        },
    ),
    "text": (
        "Texts: select the lines that are like a domain, tokenise raw text for a system.",
        {
            "select": "moses_feature.cli.texts.select:select_command",
            "prepare": "moses_feature.cli.texts.prepare:prepare_command",
        },
    ),
}
"""For each group of commands its help, and the location of each command."""


PLACES = {
    "doctor": "moses_feature.cli.doctor:doctor_command",
    "describe": "moses_feature.cli.describe:describe_command",
    "translate": "moses_feature.cli.translate:translate_command",
    "serve": "moses_feature.cli.serve:serve_command",
}
"""The locations of commands that are in no group."""


SYNONYMS = {"rnnsearch": "model train-sentences", "cslm": "model train-cslm", "ini": "system add"}
"""Names that users may try, and the commands that do it."""


class LazyGroup(click.Group):
    """A group whose commands are loaded when they are asked for.

    Args:
        places: MODULE:NAME of each command.
        meant: other names that users may try, and the commands that they mean.
    """

    def __init__(
        self, places: Mapping[str, str], meant: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.places = places
        self._meant = meant or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands and groups."""
        return [*self.places, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command, or return a group."""
        if cmd_name not in self.places:
            return super().get_command(ctx, cmd_name)
        with loading():
            command: click.Command = resolve_name(self.places[cmd_name])
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; suggest one for a slip of the keys, or for one of an older version."""
        if instead := COMMANDS.get(f"{self.name} {args[0]}"):
            ctx.fail(f"{self.name} {args[0]} is gone: {instead}")
        names = {name: name for name in self.list_commands(ctx)}
        likely = {**self._meant, **names}
        if args[0] not in names and (close := get_close_matches(args[0], likely, 1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {likely[close[0]]!r}?")
        return super().resolve_command(ctx, args)


HELP = {"help_option_names": ["-h", "--help"]}


IN_GROUPS = {name: f"{of} {name}" for of, (_, places) in GROUPS.items() for name in places}


@click.group(cls=LazyGroup, places=PLACES, meant=SYNONYMS | IN_GROUPS, context_settings=HELP)
@click.version_option(__version__)
def moses_feature() -> None:
    """Neural scores for Moses phrase tables.

    Five commands stand alone: augment-phrase-table adds the scores of a network to a table;
    mert-tune, mert-compare, mert-decode and mert-optimize tune weights, compare systems, and
    decode as tuning does.
    """


for _name, (_help, _places) in GROUPS.items():
    moses_feature.add_command(
        LazyGroup(_places, name=_name, help=_help, context_settings=HELP, no_args_is_help=True)
    )
