"""Systems name their files relative to themselves: they can be moved, packed and read anywhere."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from mert.decoders.moses import MosesDecoder
from mert.settings import MosesSettings
from moses_feature.cli.tuning.decode import mert_decode
from moses_feature.moses.ini import SYSTEM, MosesIni
from moses_feature.moses.system_directory import INI, SystemDirectory, built_of, write_tuned


def texts(prefix: str, count: int = 120) -> None:
    """Write two texts: a word of the second one is that of the first, behind a prefix."""
    lines = [[f"s{(n * 7 + place) % 23}" for place in range(4)] for n in range(count)]
    Path("source").write_text("".join(" ".join(line) + "\n" for line in lines))
    translated = ([f"{prefix}{word}" for word in line] for line in lines)
    Path("target").write_text("".join(" ".join(line) + "\n" for line in translated))
    Path("links").write_text("0-0 1-1 2-2 3-3\n" * count)


@pytest.fixture
def home(run, tmp_path, monkeypatch) -> Path:
    """A folder with two systems, `project/a` and `project/b`, that translate differently."""
    monkeypatch.chdir(tmp_path)
    Path("project").mkdir()
    for name in "ab":
        texts(name)
        built = ("source", "target", f"project/{name}", "--alignment", "links", "--order", 2)
        run("system", "build", *built)
    return tmp_path


def named(ini: Path) -> set[str]:
    return MosesIni(ini, ini.read_bytes()).named_files()


def translated(ini: Path) -> str:
    text = io.BufferedReader(io.BytesIO(b"s1 s2 s3\n"))
    done = CliRunner().invoke(mert_decode, [str(ini)], input=text)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_system_can_be_moved(run, home, monkeypatch):
    assert named(Path("project/a/moses.ini")) == {
        "phrase-table.gz",
        "reordering-table.wbe-msd-bidirectional-fe.gz",
        "lm.arpa.gz",
    }
    assert json.loads(Path("project/a/system.json").read_text())["external"] == []
    expected = translated(home / "project/a/moses.ini")
    assert expected == "as1 as2 as3\n"
    monkeypatch.chdir(home / "project/b")  # which has files of the same names
    assert translated(home / "project/a/moses.ini") == expected
    assert translated(Path("../a/moses.ini")) == expected
    shutil.move(home / "project/a", home / "elsewhere")
    assert translated(home / "elsewhere/moses.ini") == expected
    assert "problem" not in run("doctor", home / "elsewhere").stdout


def test_elsewhere_paths_are_those_from_the_working_directory(home, monkeypatch):
    copy = home / "project/b/copy"
    copy.mkdir()
    shutil.copy(home / "project/a/moses.ini", copy / "moses.ini")
    monkeypatch.chdir(home / "project/b")
    assert translated(copy / "moses.ini") == "bs1 bs2 bs3\n"


def test_a_tuned_system_moves_with_what_it_was_built_of(run, home, monkeypatch):
    (home / "lm").mkdir()
    shutil.copy(home / "project/a/lm.arpa.gz", home / "lm/large.arpa.gz")
    tuned = home / "project/tuned"
    tuned.mkdir()
    ini = MosesIni.read("project/a/moses.ini")
    language_model = str(home / "project/a/lm.arpa.gz")
    ini.with_files({language_model: str(home / "lm/large.arpa.gz")}).write(tuned / INI)
    built = built_of(Path("project/a/moses.ini"))
    write_tuned(tuned, built, [("L", "project/a/lm.arpa.gz")], "w", 100, {})
    assert named(tuned / INI) == {
        "../a/phrase-table.gz",
        "../a/reordering-table.wbe-msd-bidirectional-fe.gz",
        str(home / "lm/large.arpa.gz"),
    }
    facts = json.loads((tuned / SYSTEM).read_text())
    assert facts["external"] == [str(home / "lm/large.arpa.gz")]
    assert facts["built"] == "../a"
    assert facts["rescoring"] == [["L", "../a/lm.arpa.gz"]]
    told = run("describe", "project/tuned").stdout
    assert f"needs from elsewhere   {home}/lm/large.arpa.gz" in told
    shutil.move("project", "moved")
    assert translated(home / "moved/tuned/moses.ini") == "as1 as2 as3\n"
    read = SystemDirectory.read(Path("moved/tuned"))
    assert read.built is not None
    assert (read.built / SYSTEM).is_file()
    assert Path(read.rescoring[0][1]).is_file()
    printed = run("describe", "moved/tuned", "--as-ini").stdout
    assert f"path={home}/moved/a/phrase-table.gz" in printed
    Path("printed.ini").write_text(printed)
    monkeypatch.chdir("/")
    assert translated(home / "printed.ini") == "as1 as2 as3\n"


@pytest.mark.usefixtures("home")
def test_a_folder_behind_a_link():
    Path("link").symlink_to("project/a")
    assert translated(Path("link/moses.ini")) == "as1 as2 as3\n"


def test_real_moses_gets_absolute_paths(home):
    """The ini that Moses is started with is written beside its input."""
    program = home / "moses"
    program.write_text('#!/bin/sh\ncp "$2" shown.ini\necho "LM0= 0.5"\n')
    program.chmod(0o755)
    ini = MosesIni.read("project/a/moses.ini")
    MosesDecoder(ini, [[b"s1"]], MosesSettings(binary=str(program))).close()
    assert named(home / "shown.ini") == {
        str(home / "project/a" / name) for name in named(Path("project/a/moses.ini"))
    }
