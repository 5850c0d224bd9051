"""The quickstart example: same seed, same files; a table and a model that hold together."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.files import EXAMPLE

from moses_feature.building.settings import BuildSettings
from moses_feature.building.system import BuildData, build
from moses_feature.doctor.examine import examine_table
from moses_feature.moses.alignments import links_of
from moses_feature.moses.ini import MosesIni


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("quickstart")
    make(directory, seed=1)
    return directory


def make(directory: Path, seed: int) -> None:
    subprocess.run(
        [sys.executable, EXAMPLE / "make.py", "--directory", directory, "--seed", str(seed)],
        check=True,
    )
    names = ("train.en", "train.fr", "aligned.grow-diag-final-and")
    settings = BuildSettings(phrase_length=5, order=3, reordering="none")
    build(BuildData(*(str(directory / name) for name in names)), settings, directory / "system")


def test_moses_would_read_it(data):
    assert list(examine_table(str(data / "system/phrase-table.gz"))) == []
    assert MosesIni.read(data / "system/moses.ini").table().score_count == 4
    for part, size in (("train", 3000), ("dev", 500), ("test", 1000)):
        for side in ("en", "fr"):
            assert len((data / f"{part}.{side}").read_text().splitlines()) == size


def test_the_links_are_those_of_the_words(data):
    names = "train.en", "train.fr", "aligned.grow-diag-final-and"
    texts = [(data / name).read_bytes().splitlines() for name in names]
    linked = 0
    for source, target, links in zip(*texts, strict=True):
        linked += len(links_of(links, len(source.split()), len(target.split())))
    assert linked > 10_000


@pytest.mark.slow
def test_the_seed_decides(data, tmp_path):
    make(tmp_path / "same", seed=1)
    make(tmp_path / "other", seed=2)
    for name in ("train.fr", "system/phrase-table.gz", "system/lm.arpa.gz"):
        assert (tmp_path / "same" / name).read_bytes() == (data / name).read_bytes()
        assert (tmp_path / "other" / name).read_bytes() != (data / name).read_bytes()


def test_relative_frequencies_sum_to_one(data):
    totals: dict[bytes, float] = {}
    for line in gzip.decompress((data / "system/phrase-table.gz").read_bytes()).splitlines():
        source, _, scores, *_ = line.split(b" ||| ")
        totals[source] = totals.get(source, 0.0) + float(scores.split()[2])
    assert all(total == pytest.approx(1, abs=1e-4) for total in totals.values())
