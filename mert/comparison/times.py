"""What takes a comparison its time: kept over runs that go on, and what is left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from moses_feature.runtime.files import write_json
from moses_feature.runtime.json_files import read_json, record


@dataclass
class Seconds:
    """What a system took besides its tuning runs.

    Attributes:
        loading: to read its models, for development and test set, in the process that came last.
        testing: to translate the test set with the weights of all runs.
    """

    loading: float = 0.0
    testing: float = 0.0


class Times:
    """The seconds of a system in a file, to which a run that goes on adds.

    Raises:
        FormatError: the file holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        what = "the times of a system"
        self.seconds = (
            record(Seconds, read_json(path, what), path, what) if path.exists() else Seconds()
        )
        self.seconds.loading = 0.0

    @contextmanager
    def spent_on(self, what: str) -> Iterator[None]:
        """Add what the block takes to a field of `Seconds`."""
        began = time.monotonic()
        yield
        spent = getattr(self.seconds, what) + time.monotonic() - began
        setattr(self.seconds, what, round(spent, 3))
        write_json(self._path, asdict(self.seconds))


class TimeLeft:
    """Estimates the rest of a comparison from the tuning runs that this process has done.

    Args:
        runs: tuning runs of all systems.
    """

    def __init__(self, runs: int) -> None:
        self._to_do = runs
        self._tuned: list[float] = []

    def add(self, seconds: float, was_done: bool) -> None:
        """Count a run that has ended, or that had ended in an earlier process."""
        self._to_do -= 1
        if not was_done:
            self._tuned.append(seconds)

    def __str__(self) -> str:
        """Return what is left in words, nothing where no run has ended yet."""
        if not self._tuned:
            return ""
        seconds = self._to_do * sum(self._tuned) / len(self._tuned)
        return f"; about {seconds / 60:.0f} min left for all" if seconds >= 60 else ""
