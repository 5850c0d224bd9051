"""The command `moses-feature translate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.options import xml_option
from moses_feature.cli.common.paths import READ_SYSTEM_DIRECTORY
from moses_feature.cli.common.vocabulary import WholeRange, option
from moses_feature.cli.tuning.options import SearchOptions, search_options
from moses_feature.moses.system_directory import MOST_TRANSLATIONS
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.json_files import as_json
from moses_feature.runtime.processes import cores

AT_ONCE = 1 << 16
"""The most bytes that are read at a time."""


@click.command("translate", cls=Command, no_args_is_help=True)
@click.argument("system", type=READ_SYSTEM_DIRECTORY)
@option("tokens", "The text is tokenised and cased as the system's texts are; so is the output.")
@option(
    "json",
    "Write an object a line: the tokens, and the translations with scores, features and phrases.",
    to="in_json",
)
@option(
    "nbest-size",
    "Translations of a sentence in JSON.",
    to="list_size",
    default=1,
    within=WholeRange(1, MOST_TRANSLATIONS),
)
@xml_option
@search_options
def translate_command(
    system: str,
    tokens: bool,
    in_json: bool,
    list_size: int,
    xml_input: str | None,
    search: SearchOptions,
) -> None:
    """Translate text with a tuned system, a line at a time.

    The standard input has a sentence on each line.

    SYSTEM is the directory of mert-tune (or of a run of mert-compare), of system build, or a
    moses.ini. All that the system has takes part: raw text is tokenised as its texts were, lists
    are rescored by its models, and the translation is put together as text. A line is written as
    soon as its sentence is done, so it works in a pipe and at a terminal.

    The first time, an index is made beside each table, uncompressed.

    \b
    Example:
      moses-feature translate tuned < new.en > new.fr
      moses-feature translate tuned --tokens --json --nbest-size 5 < new.tok.en
    """
    from moses_feature.translation.stream import TranslationStream
    from moses_feature.translation.translated import Translated, make_translator

    if list_size > 1 and not in_json:
        raise UsageError("--nbest-size is for --json")
    if sys.stdin is None:
        raise MosesFeatureError("the standard input is closed")
    failed = 0
    jobs = search.jobs or cores()
    make = partial(make_translator, Path(system), tokens, search.limits, xml_input)
    with closing(TranslationStream(make, jobs)) as stream:
        warn_of_kept_phrases(system)
        found = stream.translated(_lines(sys.stdin.buffer), list_size)
        for number, translated in enumerate(found, start=1):
            if isinstance(translated, Translated):
                _write(as_json(asdict(translated)) if in_json else translated.translations[0].text)
                continue
            failed += 1
            click.echo(f"line {number}: {translated}", err=True)
            _write(as_json({"error": str(translated)}) if in_json else "")
    if failed:
        lines = "1 line has" if failed == 1 else f"{failed:,} lines have"
        raise MosesFeatureError(f"{lines} no translation")


def warn_of_kept_phrases(system: str) -> None:
    """Say which tables of a system were filtered for other texts."""
    from moses_feature.doctor.model_files import check_kept_phrases
    from moses_feature.moses.system_directory import SystemDirectory

    ini = SystemDirectory.read(Path(system)).moses_ini()
    for finding in check_kept_phrases(ini, "what is translated", ""):
        click.echo(str(finding), err=True)


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Yield the lines of a stream as they come.

    It is read without its buffer, whose lock a thread would hold when the process ends.
    """
    read = getattr(stream, "raw", stream).read
    left = b""
    while content := read(AT_ONCE):
        *lines, left = (left + content).split(b"\n")
        yield from (_text(line) for line in lines)
    if left:
        yield _text(left)


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode(errors="surrogateescape")


def _write(line: str) -> None:
    """Write a line at once."""
    click.echo(line.encode(errors="surrogateescape"))
    sys.stdout.flush()
