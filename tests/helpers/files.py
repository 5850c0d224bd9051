"""The project's folders, the shared data, and gzip files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "quickstart"
SHARED = ROOT.parent / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")


def write_gz(path: Path, content: bytes) -> Path:
    """Write a gzip file."""
    path.write_bytes(gzip.compress(content, mtime=0))
    return path


def read_gz(path: Path) -> bytes:
    """Return what a gzip file holds."""
    return gzip.decompress(path.read_bytes())
