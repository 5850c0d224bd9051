"""`moses-feature system pack`: what is unpacked elsewhere translates as before."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
from helpers.models import SEARCH_SIZES, random_model
from helpers.toy import make_toy, random_neural_lm

from moses_feature.build.settings import BuildSettings
from moses_feature.build.system import BuildData, build
from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.moses.system_directory import write_tuned
from moses_feature.networks.files import CHECKPOINT, write_model_files
from moses_feature.phrases.model import save_model

TEXT = b"a b c\nd\nb x a\n"


def unpacked(archive: Path, where: Path) -> Path:
    """Unpack into another folder, and remove where it came from."""
    with tarfile.open(archive) as files:
        files.extractall(where, filter="data")
    return where / archive.stem


def test_a_tuned_system_with_models_that_rescore(run, tmp_path, monkeypatch):
    make_toy(tmp_path / "old/toy", options=3)
    old = tmp_path / "old"
    ini = (old / "toy/moses.ini").read_text()
    write_model_files(old / "lm", LM_ARCHITECTURE, random_neural_lm(np.random.default_rng(1)))
    tuned = old / "tuned"
    tuned.mkdir()
    (tuned / "moses.ini").write_text(ini)
    weights = [line for line in ini.split("[weight]")[1].splitlines() if "=" in line]
    text = "\n".join([*(line for line in weights if "Unknown" not in line), "CSLM9= 3", "A= 9"])
    (tuned / "rescoring.weights").write_text(text + "\n")
    save_model(old / "net", random_model(SEARCH_SIZES))
    (old / "net" / CHECKPOINT).write_bytes(b"of a training")
    models = [("CSLM9", str(old / "lm")), ("A", f"own:{old / 'net'}")]
    write_tuned(tuned, None, models, "rescoring.weights", 100, {"bleu": 1})
    expected = run("translate", tuned, "--tokens", stdin=TEXT).stdout
    done = run("system", "pack", tuned, "packed.tar")
    assert "packed.tar: " in done.stderr
    run("system", "pack", tuned, "again.tar")
    size = Path("packed.tar").stat().st_size
    shutil.rmtree(old)
    there = unpacked(Path("packed.tar"), tmp_path / "new")
    assert not list(there.rglob(CHECKPOINT))
    monkeypatch.chdir("/")
    assert run("translate", there, "--tokens", stdin=TEXT).stdout == expected
    assert str(old) not in (there / "moses.ini").read_text() + (there / "system.json").read_text()
    run("system", "pack", there, tmp_path / "packed.tar")  # a packed one can be packed
    assert (tmp_path / "packed.tar").stat().st_size == pytest.approx(size, abs=20_000)


def test_a_file_behind_a_link_has_the_name_of_the_link(run, tmp_path):
    make_toy(tmp_path / "old", options=3)
    expected = run("translate", "old/moses.ini", "--tokens", stdin=TEXT).stdout
    table = Path("old/table0")
    table.rename(tmp_path / "a table # of old")
    table.symlink_to(tmp_path / "a table # of old")
    run("system", "pack", "old/moses.ini", "packed.tar")
    there = unpacked(Path("packed.tar"), tmp_path / "new")
    shutil.rmtree("old")
    assert (there / "files" / table.name).is_file()
    assert run("translate", there, "--tokens", stdin=TEXT).stdout == expected


def test_a_system_of_raw_text(run, tmp_path, monkeypatch):
    pytest.importorskip("sacremoses")
    (tmp_path / "old").mkdir()
    monkeypatch.chdir(tmp_path / "old")
    Path("en").write_text("The dog's here.\nA cat & a dog.\nYes.\n" * 6)
    Path("fr").write_text("Le chien est là.\nUn chat & un chien.\nL'oui.\n" * 6)
    Path("links").write_text("0-0\n0-0 1-1 2-2 3-3 4-4 5-5\n0-1 1-2\n" * 6)
    data = BuildData("en", "fr", "links", languages=("en", "fr"))
    build(data, BuildSettings(order=2, case="truecase"), Path("system"))
    source = b"A cat & a dog.\n"
    expected = run("translate", "system", stdin=source).stdout
    run("system", "pack", "system", tmp_path / "s.tar")
    shutil.rmtree("system")
    assert run("translate", unpacked(tmp_path / "s.tar", tmp_path), stdin=source).stdout == expected


def test_what_cannot_be_packed(run, tmp_path):
    make_toy(tmp_path / "toy", options=3)
    for name in ("...tar", "..tar", "a b.tar"):
        assert (
            "expected a name of" in run("system", "pack", "toy/moses.ini", name, exit_code=2).stderr
        )
    Path("empty").touch()
    assert "found no feature in it" in run("system", "pack", "empty", "o.tar", exit_code=1).stderr
    Path("tuned").mkdir()
    Path("tuned/moses.ini").write_bytes(Path("toy/moses.ini").read_bytes())
    write_tuned(Path("tuned"), tmp_path / "gone", [], None, 100, {})
    refused = run("system", "pack", "tuned", "o.tar", exit_code=1).stderr
    assert "gone: expected the system that this one was tuned from" in refused
    write_tuned(Path("tuned"), None, [], None, 0, {})
    assert "list_size: 1 to 10000" in run("system", "pack", "tuned", "o.tar", exit_code=1).stderr
    Path("nothing").mkdir()
    write_tuned(Path("tuned"), None, [("A", str(tmp_path / "nothing"))], "w", 1, {})
    refused = run("system", "pack", "tuned", "o.tar", exit_code=1).stderr
    assert "nothing: expected files of the system, found none" in refused
    assert "ends in .tar" in run("system", "pack", "toy/moses.ini", "o.zip", exit_code=2).stderr
    next((tmp_path / "toy").glob("*arpa*")).rename(tmp_path / "elsewhere")
    refused = run("system", "pack", "toy/moses.ini", "o.tar", exit_code=1).stderr
    assert "expected a file of the system, found none" in refused
    assert not Path("o.tar").exists()
