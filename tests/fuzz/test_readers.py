"""Some damaged files for every reader; `make fuzz` tries many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.readers import Readers, fuzz, make_models

EXAMPLES = 60


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Readers:
    return Readers(make_models(tmp_path_factory.mktemp("models")))


@pytest.mark.parametrize("name", sorted(Readers(Path()).all()))
def test_damaged_files_are_read_or_refused(readers, name):
    fuzz(name, readers.all()[name], EXAMPLES, seed=1)
