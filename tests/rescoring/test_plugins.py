"""Features of other packages: the page that shows one, run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.files import ROOT

PAGE = (ROOT / "docs/how-to/own-features.md").read_text()
LISTS = (
    "0 ||| 7 chiens  ||| LM0= -1 ||| -1\n"
    "0 ||| sept chiens  ||| LM0= -2 ||| -2\n"
    "1 ||| 1 2 3  ||| LM0= -3 ||| -3\n"
)


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Path:
    """Install the package of the page: a module, and metadata with its entry point."""
    (tmp_path / "copied_numbers.py").write_text(block("python"))
    metadata = tmp_path / "copied_numbers-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: copied-numbers\nVersion: 1\n")
    title, line = block("toml").splitlines()
    group = re.search('"(.*)"', title)
    assert group is not None
    (metadata / "entry_points.txt").write_text(f"[{group[1]}]\n{line.replace(chr(34), '')}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("lists").write_text(LISTS)
    Path("source").write_text("7 dogs\n1 2 2 4\n")
    return tmp_path


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("installed")
def test_the_feature_of_the_page(run):
    run("list", "rescore", "lists", "out", "--source", "source", "--model", "N=numbers:")
    lines = Path("out").read_text().splitlines()
    assert [line.split(" ||| ")[2] for line in lines] == [
        "LM0= -1 N= 0",
        "LM0= -2 N= -1",
        "LM0= -3 N= -2",
    ]
    run("list", "rescore", "lists", "out", "--source", "source", "--model", "numbers:")
    assert " Numbers0= 0 |||" in Path("out").read_text()
    missing = ("--source", "source", "--model", "numbers:nothing")
    assert "numbers:nothing" in run("list", "rescore", "lists", "o", *missing, exit_code=1).stderr


def test_a_mark_that_no_package_has(run):
    Path("lists").write_text(LISTS)
    Path("source").write_text("a\nb\n")
    options = ("--source", "source", "--model", "what:")
    refused = run("list", "rescore", "lists", "out", *options, exit_code=2).stderr
    assert "what: expected mbr: before a model, found another mark" in refused
    assert not Path("out").exists()
