"""Every command line in the documents is one that the commands take."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from helpers.commands import all_commands, context_of, options_of
from helpers.files import ROOT
from helpers.options_page import PAGE, options_page

from moses_feature.phrases.settings import PRESETS, Sizes

WRITTEN = ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/results/*.md")
COPIES = {ROOT / "docs" / "_results", ROOT / "docs" / "_build"}
DOCUMENTS = sorted(
    document
    for pattern in WRITTEN
    for document in ROOT.glob(pattern)
    if not COPIES.intersection(document.parents) and document.name != "options.md"
)
PROGRAMS = sorted([*ROOT.glob("examples/**/*.sh"), *ROOT.glob("docker/*.sh")])
OF_OTHERS = {
    *("--n-best", "--output-type"),  # marian-decoder, Sockeye
    *("--build-arg", "--rm", "--nv", "--isolation", "--format"),  # docker, Singularity, buildah
    *("--address", "--head", "--wrap", "--nproc-per-node"),  # Ray, SLURM, torchrun
    *("--num-scores", "--num-lex-scores", "--log-prob", "--with-cmph", "--with-nplm"),  # Moses
    *("--max-kenlm-order", "--no-binary", "--force-reinstall", "--input-pt"),  # KenLM, pip, Moses
    *("--text", "--arpa", "--discount", "--skip", "--limit"),  # lmplz
}
COMMAND = re.compile(rf"(?:^|[\s(\"'])({'|'.join(sorted(all_commands(), key=len, reverse=True))}) ")


def command_lines(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands in the code of a document, or in a program, with their arguments."""
    joined = re.sub(r"\\\n\s*", " ", text)
    for line in joined.splitlines():
        parts = COMMAND.split(f"{line} ")
        for name, rest in zip(parts[1::2], parts[2::2], strict=True):
            arguments = re.split(r"\s[|<>&;)#]|2>|`|\s#", rest)[0]
            for quote in "'\"":
                if arguments.count(quote) % 2:  # a quotation began before the command
                    arguments = arguments.replace(quote, "")
            yield name, shlex.split(arguments)


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def code_of(document: Path) -> str:
    """Return the code in a document; all of a program."""
    text = document.read_text()
    if document.suffix != ".md":
        return text
    return "\n".join(re.findall(r"^\s*```[^\n]*\n(.*?)^\s*```", text, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("document", [*DOCUMENTS, *PROGRAMS], ids=name_of)
def test_command_lines(document):
    if document.name == "CHANGELOG.md" or document.parent.name == "results":
        pytest.skip("tells of commands as they were")
    for name, arguments in command_lines(code_of(document)):
        command = all_commands()[name]
        where = f"{name_of(document)}: {name} {' '.join(arguments)}"
        unknown = {
            a.partition("=")[0] for a in arguments if re.fullmatch("--?[a-z][a-z-]*(=.*)?", a)
        }
        assert unknown <= options_of(command), where
        if not any("…" in a or "..." in a or "$" in a for a in arguments):
            try:
                command.make_parser(context_of(command)).parse_args(list(arguments))
            except click.UsageError as error:
                pytest.fail(f"{where}: {error}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_options_that_are_named(document):
    if document.name == "CHANGELOG.md" or document.parent.name == "results":
        pytest.skip("tells of commands as they were")
    known = OF_OTHERS.union(*(options_of(command) for command in all_commands().values()))
    text = re.sub(r"^\s*```.*?^\s*```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    quoted = re.findall(r"`([^`\n]+)`", text)
    named = {option for code in quoted for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", code)}
    assert named <= known, f"{document.name}: {', '.join(sorted(named - known))}"


def anchors_of(document: Path) -> set[str]:
    """Return what a link to a place in a document may name: its headings, as GitHub has them."""
    text = re.sub(r"^\s*```.*?^\s*```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links(document):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", document.read_text()):
        path, _, anchor = target.partition("#")
        linked = (document.parent / path).resolve() if path else document
        assert linked.exists(), f"{name_of(document)}: {target}"
        if anchor and "{eval-rst}" not in linked.read_text():  # where Sphinx makes the headings
            assert anchor in anchors_of(linked), f"{name_of(document)}: {target}"


def test_the_picture_of_the_gains(tmp_path):
    """Its numbers are those of the log, and it is drawn from them."""
    results = ROOT / "benchmarks" / "results"
    for corpus in json.loads((results / "gains.json").read_text()):
        for system in corpus["systems"]:
            page = (results / system["page"]).read_text()
            baseline = f"{system['baseline']:.2f} ± {system['baseline_deviation']:.2f}"
            assert baseline in page, system
            mean, gain = (
                f"{system['mean']:.2f} ± {system['deviation']:.2f}",
                f"{system['difference']:+.2f}",
            )
            rows = [line for line in page.splitlines() if f"| {mean} | {gain} |" in line]
            assert rows, system
    program = ROOT / "benchmarks" / "gains.py"
    subprocess.run([sys.executable, program, "--output", tmp_path / "gains.svg"], check=True)
    drawn = (tmp_path / "gains.svg").read_text()
    assert drawn == (ROOT / "docs" / "pictures" / "gains.svg").read_text()


def test_the_page_of_options():
    """It is what the commands print: `make options` renews it."""
    assert PAGE.read_text() == options_page()


@pytest.mark.parametrize("package", ["mert", "moses_feature"])
def test_options_that_messages_name(package):
    """A message that names an option which is not there sends its reader astray."""
    known = OF_OTHERS.union(*(options_of(command) for command in all_commands().values()))
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", node.value))
                assert named <= known, f"{path} at line {node.lineno}: {sorted(named - known)}"


def test_sizes_of_presets():
    page = (ROOT / "docs" / "explanation" / "network.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", page, re.MULTILINE)
    shown = {name: Sizes(*map(int, sizes)) for name, *sizes in rows}
    assert shown == {name: of for name, of in PRESETS.items() if name != "characters"}


def test_the_parser_of_documents_finds_wrong_options():
    found = list(command_lines("moses-feature model train t m \\\n  --no-such 3 | tee x\n"))
    assert found == [("moses-feature model train", ["t", "m", "--no-such", "3"])]
    assert "--no-such" not in options_of(all_commands()["moses-feature model train"])
