"""How every command runs: logging, errors and exit codes; free of torch."""

from __future__ import annotations

import io
import logging
import os
import shlex
import signal
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from moses_feature.cli.common.gone import OPTIONS, OPTIONS_OF
from moses_feature.cli.common.paths import check_outputs
from moses_feature.cli.common.start import INTERRUPTED, TERMINATED
from moses_feature.runtime.errors import MosesFeatureError, OutputError, printable

DEBUG = "MOSES_FEATURE_DEBUG"
"""An environment variable: if it is set, an error shows its traceback."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, raised like Ctrl-C, so that everything started is ended and cleaned up."""


class Command(click.Command):
    """A command that reports an error in one line, with the right exit code."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        settings.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*arguments, **settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if row is not None:
                title = getattr(parameter, "help_group", "Options")
                groups.setdefault(title, []).append(row)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; an option that takes one file is given once.

        Of another option the last value counts, so that a script's own can be overridden.
        """
        words = list(args)
        known = {name for parameter in self.params for name in parameter.opts}
        for word in (word.partition("=")[0] for word in words if word.startswith("--")):
            if word not in known and (hint := _hint(word.removeprefix("--"), known, self.name)):
                ctx.fail(f"No such option: {word}. {hint}")
        given = Counter(word.partition("=")[0] for word in words)
        for parameter in self.params:
            one_file = isinstance(parameter.type, click.Path) and not parameter.multiple
            times = sum(given[name] for name in parameter.opts)
            if isinstance(parameter, click.Option) and one_file and times > 1:
                ctx.fail(f"{parameter.opts[0]} is given {times} times: expected once")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        _set_up_streams()
        try:
            check_outputs(ctx)
            with _termination_raised():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            hint = ""
            if ctx.params.get("plan"):
                pass  # nothing to continue
            elif "resume" in ctx.params:
                hint = "; the same command with --resume continues"
            elif "work_dir" in ctx.params or ctx.command.name == "build":
                hint = "; the same command continues"
            terminated = isinstance(error, Terminated)
            click.echo(f"\n{'terminated' if terminated else 'interrupted'}{hint}", err=True)
            ctx.exit(TERMINATED if terminated else INTERRUPTED)
        except (MemoryError, RuntimeError) as error:
            if DEBUG in os.environ or not _is_about_memory(error):
                raise
            click.echo(f"Error: not enough memory: {' '.join(str(error).split())[:200]}", err=True)
            ctx.exit(1)
        except (MosesFeatureError, OSError) as error:
            if DEBUG in os.environ or isinstance(error, BrokenPipeError):
                raise
            said = f"{error}"
            if isinstance(error, OSError) and error.filename and error.strerror:
                said = f"{error.filename}: {error.strerror}"
            click.echo(f"Error: {printable(said)}", err=True)
            ctx.exit(error.exit_code if isinstance(error, MosesFeatureError) else 1)


MEANT = {
    "input": ("dev", "source", "phrases-of"),
    "dev": ("source",),
    "source": ("dev",),
    "target": ("dev-reference", "reference"),
    "reference": ("dev-reference", "target"),
    "n-best": ("lists", "nbest-size"),
    "seeds": ("seed",),
}
"""Options that users may try, and those that mean it, the likeliest first."""


def _hint(word: str, known: Collection[str], command: str | None) -> str | None:
    """Return what to use instead of an unknown option; None if nothing is known of it."""
    meant = [other for other in MEANT.get(word, ()) if f"--{other}" in known]
    if meant:
        return f"Did you mean --{meant[0]}?"
    instead = OPTIONS.get(word) or OPTIONS_OF.get(command or "", {}).get(word)
    return f"It is gone: {instead}." if instead else None


class _Printable(logging.Formatter):
    """Removes characters of file names that could affect a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class _ClosedOutput(io.TextIOBase):
    """Replaces a standard output that is closed."""

    def write(self, text: str) -> int:  # noqa: ARG002
        """Refuse to write."""
        raise OutputError("the standard output is closed")

    @property
    def buffer(self) -> NoReturn:
        """There is none to write bytes to."""
        raise OutputError("the standard output is closed")


def _set_up_streams() -> None:
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Printable("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for package in ("mert", "moses_feature"):
        logging.getLogger(package).setLevel(logging.INFO)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may be no UTF-8
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _termination_raised() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM, which would otherwise end the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _is_about_memory(error: Exception) -> bool:
    """Return whether numpy or torch found no memory."""
    return (
        isinstance(error, MemoryError) or "allocat" in str(error) or "out of memory" in str(error)
    )


def command_line() -> str:
    """Return the command line, for the provenance of the outputs."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
