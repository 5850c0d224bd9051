"""Stages of a long run: what is done is not done again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import Json, write_json
from moses_feature.runtime.json_files import difference, member, read_json

STAGES = "stages.json"
WHAT = "the stages of a run"


class Stages:
    """The stages of a run in a directory.

    Attributes:
        record: the identity of the run, and the stages that are done with their seconds.

    Args:
        directory: locked by the caller.
        identity: what the run is of; a run of something else is not continued.
        resume: whether a run that is there is to be continued.
        say: called with a line before each stage.

    Raises:
        UsageError: there is another run, or one that is not to be continued.
        FormatError: the file of the stages is damaged.
    """

    def __init__(
        self, directory: Path, identity: Json, resume: bool, say: Callable[[str], None]
    ) -> None:
        self._say = say
        self._path = directory / STAGES
        self.record: Json = {"identity": identity, "stages": []}
        if not self._path.exists():
            return
        there = read_json(self._path, WHAT)
        if not resume:
            raise UsageError(f"{directory} holds a run: --resume continues it")
        if other := difference(
            identity, member(there, "identity", dict[str, Any], self._path, WHAT)
        ):
            raise UsageError(
                f"{directory} holds a run with other {other.key}: expected {other.expected}, "
                f"found {other.found}; remove it, or write to another file"
            )
        for stage in member(there, "stages", list[dict[str, Any]], self._path, WHAT):
            member(stage, "stage", str, self._path, WHAT)
            member(stage, "seconds", float, self._path, WHAT)
        self.record = there

    def save(self) -> None:
        """Write what is done; without it, a run whose first stage is killed cannot be continued."""
        write_json(self._path, self.record)

    def seconds(self) -> float:
        """Return the time of all stages that are done."""
        return float(sum(stage["seconds"] for stage in self.record["stages"]))

    def run(self, what: str, work: Callable[[], Json | None]) -> Json:
        """Do a stage, unless it is done; return its record, with what the work has found."""
        for stage in self.record["stages"]:
            if stage["stage"] == what:
                self._say(f"== {what}: done")
                done: Json = stage
                return done
        self._say(f"== {what}")
        begun = time.monotonic()
        earlier = self.record.setdefault("interrupted", {})
        try:
            found = work() or {}
        except KeyboardInterrupt:
            earlier[what] = earlier.get(what, 0.0) + time.monotonic() - begun
            self.save()
            raise
        seconds = round(time.monotonic() - begun + earlier.pop(what, 0.0), 1)
        done = {"stage": what, "seconds": seconds, **found}
        self.record["stages"].append(done)
        self.save()
        return done
