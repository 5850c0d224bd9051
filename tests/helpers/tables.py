"""Phrase tables, and runs of `augment-phrase-table` in a process of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

TABLES = {
    "all seven fields": b"a ||| A ||| 0.5 1 ||| 0-0 ||| 1 2 3 ||| s 1 ||| {{Tree [NP]}}\n",
    "trailing fields empty": b"a b ||| A B ||| 0.5 ||| 0-0 1-1 ||| 1 2 3 ||| |||\n",
    "three fields": b"a ||| A ||| 0.5 1\nb ||| B ||| .5 1e-3\n",
    "four fields": b"a ||| A ||| 0.5 ||| 0-0\n",
    "empty alignment": b"a ||| A ||| 0.5 |||  ||| 1 1\n",
    "six fields": b"a ||| A ||| 0.5 ||| 0-0 ||| 1 1 1 ||| sparse 0.5\n",
    "odd white space": b"a\t b|||\tA  B |||0.5\t1  |||\n",
    "separators of Unicode": "a\u00a0b c ||| A\u2028B \u0085 ||| 1 ||| 0-0\n".encode(),
    "Latin-1": b"\xe9t\xe9 ||| \xe9 noir ||| 0.1 0.2\n",
    "escapes": b"the &#124; ||| le &#124; &apos; ||| 0.5 ||| 0-0\n",
    "CRLF": b"a ||| A ||| 0.5 1\r\nb ||| B ||| 0.5 1 ||| 0-0\r\n",
    "no final newline": b"a ||| A ||| 0.5\nb ||| B ||| 0.5",
    "duplicates": b"a ||| A ||| 0.5\n" * 3,
    "tiny scores": b"a ||| A ||| 1e-300 0 -1 ||| \n",
    "unknown words": b"x y ||| z z z ||| 1 ||| 0-0\n",
    "empty sides": b" ||| A ||| 1\na |||  ||| 1\n",
    "one line": b"the dog ||| le chien ||| 1 ||| 0-0 1-1\n",
    "empty": b"",
    "shared prefixes": b"".join(
        b"%b ||| %b ||| 0.25 0.5\n" % (source, target)
        for source in (b"a", b"a b", b"a b c", b"a b d", b"the dog")
        for target in (b"A", b"A B", b"A B C", b"A noir", b"le chien noir", b"noir")
    ),
}


PROGRAM = (
    "import moses_feature.tables.augment as a; a.LINES_PER_PART = 97\n"
    "from moses_feature.cli.tables.augment import augment_phrase_table; augment_phrase_table()"
)
LONG_TABLE = b"".join(
    b"%b w%d ||| %b ||| 0.5 0.25\n" % (source, number, target)
    for number in range(500)
    for source in (b"a", b"a b")
    for target in (b"A", b"A B", b"le chien noir")
)


def without_new_columns(content: bytes) -> bytes:
    """Take the last two scores of every line away again."""
    lines = []
    for line in content.split(b"\n"):
        fields = line.split(b"|||")
        if len(fields) > 2:
            scores = fields[2].rstrip(b" \t\r")
            kept = scores.rsplit(b" ", 2)[0]
            fields[2] = kept + fields[2][len(scores) :]
        lines.append(b"|||".join(fields))
    return b"\n".join(lines)


def new_columns(content: bytes) -> list[tuple[float, float]]:
    """Return the last two scores of every line."""
    scores = [line.split(b"|||")[2].split() for line in content.split(b"\n") if line]
    return [(float(line[-2]), float(line[-1])) for line in scores]


def lines_in(journal: Path) -> int:
    return json.loads(journal.read_text().partition("\n")[2])["progress"]["lines"]


def start(directory: Path, *arguments: object, **options) -> subprocess.Popen:
    """Start the command; Ctrl-C reaches it even where the tests run in the background."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments), "--threads", "1"],
        cwd=directory,
        stderr=subprocess.PIPE,
        text=True,
        **{"preexec_fn": listen_to_ctrl_c, **options},
    )


def listen_to_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def waited_for(condition: Callable[[], T], process: subprocess.Popen, seconds: float = 240) -> T:
    """Return what a condition returns as soon as it is true, while a process runs."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return value


def has_written(journal: Path, lines: int = 1) -> bool:
    """Return whether a run has written so many lines, as its journal says."""
    return journal.exists() and lines_in(journal) >= lines
