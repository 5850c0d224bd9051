"""Ceilings of size, and no circles of imports: what keeps the product as small as it is."""

from __future__ import annotations

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from types import ModuleType

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


def is_compiled(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef):
        return False
    names = (of.func if isinstance(of, ast.Call) else of for of in node.decorator_list)
    return any(isinstance(of, ast.Name) and of.id in {"compiled", "helper"} for of in names)


def plain_number(argument: ast.expr, module: ModuleType) -> int | None:
    """Return an integer that stands in a call, or the constant of a module that is one."""
    try:
        value = ast.literal_eval(argument)
    except ValueError:
        value = getattr(module, argument.id, None) if isinstance(argument, ast.Name) else None
    return value if type(value) is int else None


def test_compiled_functions_are_compiled_once():
    """A plain number in a call would have numba compile a function once more; see `helper`."""
    trees = modules()
    functions = {name: [*filter(is_compiled, ast.walk(tree))] for name, tree in trees.items()}
    known = {function.name for of_module in functions.values() for function in of_module}
    given: dict[tuple[str, int], set[int | None]] = defaultdict(set)
    for name, of_module in functions.items():
        for node in (node for function in of_module for node in ast.walk(function)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                for place, argument in enumerate(node.args):
                    given[node.func.id, place].add(plain_number(argument, import_module(name)))
    assert not [of for of, numbers in given.items() if of[0] in known and len(numbers) > 1]
