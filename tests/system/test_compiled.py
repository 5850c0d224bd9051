"""Compiled code that is kept on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import moses_feature.runtime.compiled

pytestmark = pytest.mark.slow

CALLED = """
from moses_feature.runtime.compiled import helper

@helper
def number():
    return {}
"""
CALLING = """
from mert.called import number
from moses_feature.runtime.compiled import compiled

@compiled
def twice():
    return 2 * number()
"""
PROGRAM = """
from mert.calling import twice
print(twice(), sum(twice.stats.cache_hits.values()), sum(twice.stats.cache_misses.values()))
"""


def run_in(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **variables},
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two packages of their own."""
    for package in ("mert", "moses_feature"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    runtime = Path(moses_feature.runtime.compiled.__file__).parent
    shutil.copytree(runtime, tmp_path / "moses_feature/runtime")
    (tmp_path / "mert" / "calling.py").write_text(CALLING)
    (tmp_path / "mert" / "called.py").write_text(CALLED.format(1))
    return tmp_path


def test_code_is_kept_until_a_file_that_it_calls_changes(folder):
    kept = folder / "kept"
    for number, answer in ((1, "2 0 1"), (1, "2 1 0"), (3, "6 0 1"), (3, "6 1 0")):
        (folder / "mert" / "called.py").write_text(CALLED.format(number))
        assert run_in(folder, NUMBA_CACHE_DIR=str(kept)).stdout.strip() == answer
    assert len(list(kept.iterdir())) == 2


def test_without_a_place_for_code(folder):
    (folder / "file").touch()
    done = run_in(folder, NUMBA_CACHE_DIR=str(folder / "file" / "under"))
    assert done.stdout.strip() == "2 0 1"
    assert done.stderr.count("no folder for compiled code can be written") == 1
