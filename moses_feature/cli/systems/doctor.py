"""The command `moses-feature system doctor`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_SYSTEM_DIRECTORY
from moses_feature.cli.common.vocabulary import option
from moses_feature.doctor.finding import MOST_LINES
from moses_feature.moses.programs import find_program
from moses_feature.runtime.errors import UsageError, printable


@click.command("doctor", cls=Command, no_args_is_help=True)
@click.argument("system", type=READ_SYSTEM_DIRECTORY)
@option("source", "A text that it is to translate, tokenised.")
@option("reference", "A translation of that text. Repeatable.", to="references", many=True)
@option("most-lines", "Of each text table, to read at most; 0 for all.", default=MOST_LINES)
@option("moses", "The moses binary, or a folder of Moses, to be looked at, too.")
def doctor_command(
    system: str, source: str | None, references: tuple[str, ...], most_lines: int, moses: str | None
) -> None:
    """Find what would spoil hours of tuning, in seconds.

    Looks at a moses.ini, or at a system that was built, tuned or packed, its models, and texts.

    Each finding says what is the case and where, what it will cause, and how to mend it. The exit
    code is 1 if there is a problem; warnings and notes do not change it.

    \b
    Example:
      moses-feature system doctor moses.ini --source dev.en --reference dev.fr
    """
    from moses_feature.doctor.examine import examine

    if references and source is None:
        raise UsageError("--reference is for --source")
    looked_at: list[str] = []
    findings = list(
        examine(
            system,
            source,
            references,
            most_lines=most_lines or None,
            programs=_folder(moses),
            say=looked_at.append,
        )
    )
    counts = Counter(finding.severity for finding in findings)
    for severity in ("problem", "warning", "note"):
        for finding in findings:
            if finding.severity == severity:
                click.echo(printable(str(finding)))
    for said in looked_at:
        click.echo(printable(f"looked at {said}"))
    told = [f"{count} {name}{'s' if count > 1 else ''}" for name, count in sorted(counts.items())]
    click.echo(f"{system}: {', '.join(told) or 'nothing found'}")
    if counts["problem"]:
        sys.exit(1)


def _folder(moses: str | None) -> Path | None:
    """Return the folder of Moses' programs; one of them may be there without permission to run."""
    if moses is None:
        return None
    path = Path(moses)
    if not path.is_dir():
        return path.parent if path.exists() else find_program(["moses"], moses).parent
    return path / "bin" if (path / "bin").is_dir() else path
