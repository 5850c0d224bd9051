"""One vocabulary: a word of the command line has one meaning and one type."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import click
import pytest
from helpers.commands import all_commands, context_of
from helpers.files import ROOT

from moses_feature import __version__

PAGE = (ROOT / "docs" / "reference" / "vocabulary.md").read_text()


def type_of(parameter: click.Parameter) -> str:
    """Return what the vocabulary says of a parameter's values; `…` where it is repeated."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return "flag"
    if isinstance(parameter.type, click.Choice):
        kind = "NAME"
    else:
        kind = parameter.metavar or parameter.type.name.upper()
        if isinstance(parameter, click.Argument):
            kind = parameter.type.name.upper()
    return f"{kind} …" if parameter.multiple or parameter.nargs == -1 else kind


def word_of(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return (parameter.name or "").upper()


def test_a_word_has_one_type_and_is_in_the_vocabulary():
    types: dict[str, set[str]] = defaultdict(set)
    for command in all_commands().values():
        for parameter in command.get_params(context_of(command)):
            types[word_of(parameter)].add(type_of(parameter))
    assert not {word: kinds for word, kinds in types.items() if len(kinds) > 1}
    described = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|", PAGE, re.MULTILINE))
    assert described == {word: kinds.pop().replace("|", " or ") for word, kinds in types.items()}


@pytest.mark.parametrize("name", all_commands())
def test_every_help_has_an_example(name):
    command = all_commands()[name]
    text = command.get_help(context_of(command, name))
    assert re.search(rf"Example:\n.*{name}", text, re.DOTALL)
    if name.startswith("moses-feature"):  # shown beside those of its group
        assert not command.get_short_help_str(63).endswith("...")


@pytest.mark.parametrize("program", ["moses-feature", "augment-phrase-table", "mert-tune"])
def test_version(program):
    path = Path(sys.executable).with_name(program)
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    assert __version__ in done.stdout


def test_help_is_light():
    """No module of the commands loads what takes seconds: that waits until a command runs."""
    places = [*ROOT.glob("moses_feature/cli/**/*.py"), *ROOT.glob("mert/cli/*.py")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in places]
    program = (
        "import sys; from importlib import import_module\n"
        f"for name in {names}: import_module(name.removesuffix('.__init__'))\n"
        "print([name for name in ('torch', 'numba', 'sacrebleu', 'plotly') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert len(names) > 40
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["tabel"], "table"),
        (["model", "trian"], "train"),
        (["transalte"], "translate"),
        (["rescore"], "list rescore"),
        (["rnnsearch"], "model train-sentences"),
    ],
)
def test_a_slip_of_the_keys_is_guessed(run, typed, meant):
    assert f"Did you mean '{meant}'?" in run(*typed, exit_code=2).stderr
