"""Compiled code that is kept on disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import moses_feature.runtime.compiled
from moses_feature.runtime.compiled import compiled, source_stamp

pytestmark = pytest.mark.slow

CALLED = """
from moses_feature.runtime.compiled import inner

@inner
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
print(twice(), sum(twice._cache_hits.values()), sum(twice._cache_misses.values()))
"""


def test_code_is_kept_until_a_file_that_it_calls_changes(tmp_path):
    for package in ("mert", "moses_feature"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    runtime = Path(moses_feature.runtime.compiled.__file__).parent
    shutil.copytree(runtime, tmp_path / "moses_feature/runtime")
    (tmp_path / "mert" / "calling.py").write_text(CALLING)
    for number, answer in ((1, "2 0 1"), (1, "2 1 0"), (3, "6 0 1"), (3, "6 1 0")):
        (tmp_path / "mert" / "called.py").write_text(CALLED.format(number))
        assert run_in(tmp_path) == answer


def run_in(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_without_a_place_for_code():
    """As where neither the package's folder nor a cache can be written."""
    program = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "from moses_feature.runtime.hash_table import size_for; print(size_for(9))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "32\n"
    assert done.stderr.count("no folder for compiled code can be written") == 1


def test_the_private_parts_of_numba():
    """What `_keep_code` sets is there in these versions; try it before another is added."""
    assert version("numba").rpartition(".")[0] in ("0.68",)
    dispatcher = compiled(lambda: 1)
    assert source_stamp(Path(__file__))[:12] in dispatcher._cache._cache_file._index_name
