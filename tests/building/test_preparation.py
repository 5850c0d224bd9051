"""Raw texts: prepared for a system, and for what it reads later."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

pytest.importorskip("sacremoses")

LANGUAGES = ["--source-language", "en", "--target-language", "fr"]


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """Raw texts, one pair of which is of unequal lengths, and links of the others."""
    monkeypatch.chdir(tmp_path)
    Path("en").write_text("The dog’s here, isn't it?\nA cat & a dog.\nYes.\n" * 6 + "Yes\n")
    Path("fr").write_text("Le chien est là ?\nUn chat & un chien.\nOui.\n" * 6 + "oui " * 40 + "\n")
    Path("links").write_text("0-0\n0-0 1-1\n0-0\n" * 6 + "\n")


@pytest.mark.usefixtures("raw")
def test_texts_are_prepared_as_moses_prepares_them(run):
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    done = run(*build, "--raw", "--case", "lower", *LANGUAGES)
    assert "18 sentence pairs of" in done.stderr
    table = gzip.decompress(Path("s/phrase-table.gz").read_bytes()).decode()
    assert table.startswith("&amp; a ||| ") or "a cat ||| un chat ||| " in table
    text = "The dog’s here, isn't it?\n".encode()
    prepared = run("text", "prepare", "s", stdin=text).stdout
    assert prepared == "the dog &apos;s here , isn &apos;t it ?\n"
    prepared = run("text", "prepare", "s", "--side", "target", stdin=b"L'eau [x]\n").stdout
    assert prepared == "l&apos; eau &#91; x &#93;\n"


@pytest.mark.usefixtures("raw")
def test_a_truecaser_is_trained_on_the_text(run):
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    run(*build, "--raw", "--case", "truecase", *LANGUAGES)
    prepared = run("text", "prepare", "s", stdin=b"A cat & THE Dog\n").stdout
    assert prepared == "a cat &amp; THE dog\n"


@pytest.mark.usefixtures("raw")
def test_errors(run, monkeypatch):
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    assert "--raw needs --source-language" in run(*build, "--raw", exit_code=2).stderr
    assert "are for --raw" in run(*build, *LANGUAGES, exit_code=2).stderr
    Path("en").write_bytes(Path("en").read_bytes().replace(b"cat", b"c\xe4t"))
    assert "en at line 2: expected UTF-8" in run(*build, "--raw", *LANGUAGES, exit_code=1).stderr
    assert not Path("s/phrase-table.gz").exists()
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert "raw text needs a package" in run(*build, "--raw", *LANGUAGES, exit_code=1).stderr


@pytest.mark.usefixtures("raw")
def test_a_system_of_prepared_texts_prepares_nothing(run):
    for name in ("en", "fr"):
        Path(name).write_text("".join(Path(name).read_text().splitlines(keepends=True)[:18]))
    Path("links").write_text("".join(Path("links").read_text().splitlines(keepends=True)[:18]))
    run("system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2)
    assert "raw" in run("text", "prepare", "s", stdin=b"a\n", exit_code=1).stderr
