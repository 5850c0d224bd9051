"""Ceilings of size, and no circles of imports: what keeps the product as small as it is."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter

import click
from helpers.commands import all_commands
from helpers.files import ROOT

MOST_COMMANDS, MOST_OPTIONS, MOST_OF_A_COMMAND = 26, 250, 30
PACKAGES = ("mert", "moses_feature")


def test_commands_and_options_are_few():
    """`--help`, which all have, does not count; nor does `--version`."""
    options = {
        name: [
            parameter.name
            for parameter in command.params
            if isinstance(parameter, click.Option) and parameter.name != "version"
        ]
        for name, command in all_commands().items()
    }
    assert len(options) <= MOST_COMMANDS
    assert sum(map(len, options.values())) <= MOST_OPTIONS
    assert max(map(len, options.values())) <= MOST_OF_A_COMMAND


def modules() -> dict[str, ast.Module]:
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_bytes())
    return found


def imported(module: ast.Module) -> set[str]:
    """Return what is imported when a module is loaded, as modules and as names in them."""
    found = set()
    for node in module.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_no_circle_of_imports():
    trees = modules()
    graph = {name: imported(tree) & trees.keys() - {name} for name, tree in trees.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


ABOVE_MERT = ("moses_feature.cli", "moses_feature.choosing", "moses_feature.refining")


def test_no_import_points_up():
    """The commands and the refining workflow stand above `mert`, and `mert` above the rest."""
    for name, tree in modules().items():
        found = imported(tree)
        if name.startswith("moses_feature") and not name.startswith(ABOVE_MERT):
            assert not [of for of in found if of.split(".")[0] == "mert"], name
        if not name.startswith(("moses_feature.cli", "moses_feature.__main__")):
            assert not [of for of in found if of.startswith("moses_feature.cli")], name
