"""The example of spelling, and the program that stands around train-model.perl in EMS."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.files import EXAMPLE

from moses_feature.building.settings import BuildSettings
from moses_feature.building.system import BuildData, build
from moses_feature.doctor.examine import examine
from moses_feature.moses.ini import MosesIni

pytestmark = pytest.mark.slow

EXAMPLES = EXAMPLE.parent


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("normalisation")
    make = EXAMPLES / "normalisation" / "make.py"
    subprocess.run([sys.executable, make, "--directory", folder], check=True)
    names = ("train.old", "train.new", "aligned")
    settings = BuildSettings(phrase_length=10, order=6, reordering="none", distortion_limit=0)
    build(BuildData(*(str(folder / name) for name in names)), settings, folder / "system")
    return folder


def test_the_words_of_the_test_set_are_new_and_the_system_is_sound(data):
    words = {
        part: (data / f"{part}.new").read_text().splitlines() for part in ("train", "dev", "test")
    }
    assert [len(of) for of in words.values()] == [4000, 400, 800]
    assert not set(words["test"]) & set(words["train"])
    old = (data / "test.old").read_text().splitlines()
    assert sum(a != b for a, b in zip(old, words["test"], strict=True)) > 400
    texts = str(data / "dev.old"), [str(data / "dev.new")]
    assert list(examine(data / "system/moses.ini", *texts)) == []
    lines = gzip.decompress((data / "system/phrase-table.gz").read_bytes()).decode().splitlines()
    assert max(len(line.split(" ||| ")[0].split()) for line in lines) == 10


def test_the_program_around_train_model(tmp_path):
    """Runs what it is given, and counts the scores of the table in the ini that it wrote."""
    (tmp_path / "table.gz").write_bytes(
        gzip.compress(b"a ||| b ||| 0.5 0.5 0.5 0.5 0.25 1 ||| 0-0 ||| 1 1 1 ||| |||\n")
    )
    ini = (
        f"[feature]\nPhraseDictionaryMemory name=TM0 num-features=4 path={tmp_path / 'table'}\n"
        "[weight]\nTM0= 0.2 0.2 0.2 0.2\n"
    )
    trainer = tmp_path / "trainer"
    trainer.write_text(f"#!/bin/sh\necho called \"$@\"\nprintf '{ini}' > moses.ini\n")
    trainer.chmod(0o755)
    program = EXAMPLES / "ems" / "train-model-with-columns"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(*arguments: str, exit_code: int = 0) -> str:
        done = subprocess.run(
            [program, trainer, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == exit_code, done.stderr
        return done.stdout

    assert run("-first-step", "3") == "called -first-step 3\n"
    assert MosesIni.read(tmp_path / "moses.ini").table().score_count == 4
    assert "called -first-step 9" in run("-first-step", "9", "-config", "moses.ini", "-x", "y")
    table = MosesIni.read(tmp_path / "moses.ini").table()
    assert table.score_count == 6
    assert table.arguments["path"] == str(tmp_path / "table.gz")
    trainer.write_text("#!/bin/sh\nexit 3\n")
    run("-config", "moses.ini", exit_code=3)
