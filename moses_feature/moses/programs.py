"""Find and run Moses' own programs, and report their errors."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from moses_feature.runtime.errors import MosesFeatureError, UsageError

LINES_SHOWN = 12
"""The number of a program's last output lines that an error shows."""
FOLDERS = ("bin", "", "moses-cmd")
"""The folders under MOSES_HOME that may contain programs."""


def find_program(names: Sequence[str], place: str | None = None) -> Path:
    """Return the path of a program of Moses.

    Args:
        names: its possible names.
        place: the `moses` binary beside it, or a folder, if the user gave one; else the program is
            searched for in `MOSES_HOME` and on the PATH.

    Raises:
        UsageError: the program was not found; says where it was searched for.
    """
    looked = []
    candidates: list[Path] = []
    if place is not None:
        path = Path(place)
        looked.append(str(path))
        if path.is_dir():
            candidates = [path / folder / name for folder in FOLDERS for name in names]
        else:
            candidates = [path, *(path.parent / name for name in names)]
    else:
        if home := os.environ.get("MOSES_HOME"):
            candidates = [Path(home) / folder / name for folder in FOLDERS for name in names]
            looked += map(str, candidates)
        looked.append(f"{names[0]} on the PATH")
        candidates += [Path(found) for name in names if (found := shutil.which(name))]
    for candidate in candidates:
        if _is_program(candidate, names, given=candidate == Path(place or "")):
            return candidate.absolute()
    raise UsageError(
        f"no Moses program {' or '.join(names)}: looked for {', '.join(looked)} (set MOSES_HOME, "
        "or give --moses PATH where a command takes it)"
    )


def _is_program(path: Path, names: Sequence[str], *, given: bool) -> bool:
    """Return whether a path can be run; a binary given by the user may also be `moses`."""
    usable = path.is_file() and os.access(path, os.X_OK)
    return usable and (path.name in names or (given and "moses" in names))


def run_program(
    command: Sequence[str],
    log: Path,
    *,
    seconds: float | None = None,
    environment: dict[str, str] | None = None,
) -> bytes:
    """Run a program in the current directory and return its standard output.

    Args:
        command: the program, and its arguments.
        log: a file for its standard error.
        seconds: time limit; None for none.
        environment: additional variables.

    Raises:
        MosesFeatureError: the program cannot be run, fails, or takes too long; with its last lines.
    """
    program = command[0]
    try:
        with log.open("wb") as errors:
            done = subprocess.run(  # noqa: S603  # the user's own Moses
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=seconds,
                check=False,
                env={**os.environ, **(environment or {})},
            )
    except subprocess.TimeoutExpired:
        raise MosesFeatureError(
            f"{program} was ended after {seconds:g} s; it had said:\n{last_lines(log)}"
        ) from None
    except OSError as error:
        raise MosesFeatureError(f"{program}: {error.strerror}") from error
    if done.returncode != 0:
        raise MosesFeatureError(
            f"{program} ended with exit code {done.returncode}; it had said:\n{last_lines(log)}\n"
            f"The command was: {shlex.join(command)}"
        )
    return done.stdout


def last_lines(log: Path) -> str:
    """Return the last lines of a program's output, without progress bars."""
    lines = log.read_text(errors="replace").splitlines()
    kept = [line for line in lines if not re.fullmatch(r"[\s*\-0-9.]*", line)]
    return "\n".join(kept[-LINES_SHOWN:])
