"""A toy system, and a server of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.serving import Served, serve
from helpers.toy import make_toy


@pytest.fixture(scope="module")
def ini(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("toy") / "toy"
    make_toy(folder, options=3)
    return folder / "moses.ini"


@pytest.fixture(scope="module")
def served(ini) -> Iterator[Served]:
    found = serve(ini, "--jobs", 2)
    yield found
    found.end()
