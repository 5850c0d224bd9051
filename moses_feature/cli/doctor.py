"""The command `moses-feature doctor`."""

from __future__ import annotations

import sys
from collections import Counter

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_PATH
from moses_feature.cli.common.vocabulary import option
from moses_feature.doctor.finding import MOST_LINES
from moses_feature.runtime.errors import UsageError, printable


@click.command("doctor", cls=Command, no_args_is_help=True)
@click.argument("path", type=READ_PATH)
@option("source", "A text that the system is to translate, tokenised.")
@option("reference", "A translation of that text. Repeatable.", to="references", many=True)
@option("most-lines", "Of each table of a system, to read; 0 for all.", default=MOST_LINES)
def doctor_command(
    path: str, source: str | None, references: tuple[str, ...], most_lines: int
) -> None:
    """Find what would spoil hours of tuning, in seconds.

    PATH is a phrase table (of which all lines are read), a moses.ini, or a system that was built or
    tuned.

    Each finding says what is the case and where, what it will cause, and how to mend it. The exit
    code is 1 if there is a problem; warnings and notes do not change it.

    \b
    Example:
      moses-feature doctor augmented.gz
      moses-feature doctor moses.ini --source dev.en --reference dev.fr
    """
    from moses_feature.doctor.examine import examine, examine_table, is_table

    if references and source is None:
        raise UsageError("--reference is for --source")
    looked_at: list[str] = []
    if is_table(path):
        if source is not None:
            raise UsageError(f"--source is for a system: {path} is a phrase table")
        findings = list(examine_table(path, looked_at.append))
    else:
        findings = list(
            examine(path, source, references, most_lines=most_lines or None, say=looked_at.append)
        )
    counts = Counter(finding.severity for finding in findings)
    for severity in ("problem", "warning", "note"):
        for finding in findings:
            if finding.severity == severity:
                click.echo(printable(str(finding)))
    for said in looked_at:
        click.echo(printable(f"looked at {said}"))
    told = [f"{count} {name}{'s' if count > 1 else ''}" for name, count in sorted(counts.items())]
    click.echo(f"{path}: {', '.join(told) or 'nothing found'}")
    if counts["problem"]:
        sys.exit(1)
