"""Benchmarks are run seldom: what they take from the packages must be there."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest
from helpers.files import ROOT


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.name)
def test_what_benchmarks_import(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("moses_feature", "mert")
        ):
            module = import_module(node.module)
            missing = [name.name for name in node.names if not hasattr(module, name.name)]
            missing = [name for name in missing if not _is_module(f"{node.module}.{name}")]
            assert not missing, f"{node.module} has no {', '.join(missing)}"


def _is_module(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError:
        return False
    return True
