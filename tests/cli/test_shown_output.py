"""What pages show after a command is what it prints, on the example of the quickstart."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest
from helpers.files import ROOT

PAGES = (
    *("building", "doctor", "translating", "nbest", "sentence-networks", "tuning"),
    *("other-networks", "selection", "augmenting", "looking", "language-model"),
)
"""In this order: each continues in the folder of those before it."""


def shown(page: str) -> Iterator[tuple[str, str]]:
    """Yield the commands in the console blocks of a page, and the output that follows each."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text()
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, output = re.match(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()
            yield command, output


def pattern_of(expected: str) -> str:
    """Return a pattern in which … is any text; alone on a line, any number of lines."""
    return "".join(
        "(?s:(?:.*\n)?)" if line == "…\n" else re.escape(line).replace("…", "(?s:.*)")
        for line in expected.splitlines(keepends=True)
    )


@pytest.fixture
def commands(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has the commands of this working tree."""
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    for line in parser["options.entry_points"]["console_scripts"].split("\n"):
        name, _, function = line.partition(" = ")
        module, _, function = function.partition(":")
        if name:
            script = tmp_path / "bin" / name
            script.parent.mkdir(exist_ok=True)
            script.write_text(
                f"#!{sys.executable}\nfrom {module} import {function} as run\nrun()\n"
            )
            script.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


@pytest.mark.slow
def test_pages_show_what_commands_print(tmp_path, commands):
    folder = tmp_path / "example"
    make = [sys.executable, ROOT / "examples" / "quickstart" / "make.py", "--directory", folder]
    subprocess.run(make, check=True)
    for page in PAGES:
        found = [*shown(page)]
        assert found, page
        for command, expected in found:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=commands,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert done.returncode == int("problem: " in expected), (page, command, done.stdout)
            assert re.fullmatch(pattern_of(expected), done.stdout), (page, command, done.stdout)
