"""Objects in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from moses_feature.runtime.errors import DataError, LostProcessError
from moses_feature.runtime.processes import ObjectProcess


class Worker:
    """Does what tests ask for."""

    def __init__(self, fails: bool = False) -> None:
        if fails:
            raise DataError("bad data")

    def process(self) -> int:
        return os.getpid()

    def fail(self) -> None:
        raise DataError("bad data")

    def count(self, most: int, report) -> int:
        for _ in range(most):
            report(1)
        return most


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)


def worker(**options) -> ObjectProcess:
    return ObjectProcess(partial(Worker, **options), "a worker")


def test_methods_are_called_there(monkeypatch):
    monkeypatch.setattr("moses_feature.runtime.processes.SECONDS_BETWEEN_REPORTS", 0.0)
    process = worker()
    try:
        process.ready.result()
        assert process.call(Worker.process).result() != os.getpid()
        with pytest.raises(DataError, match="bad data"):
            process.call(Worker.fail).result()
        assert process.call(Worker.count, 7, report=lambda _: None).result() == 7
    finally:
        process.close()


def test_an_object_that_cannot_be_made():
    process = worker(fails=True)
    try:
        with pytest.raises(DataError, match="bad data"):
            process.ready.result()
    finally:
        process.close()


def test_signals_are_not_for_it_and_death_is_told():
    process = worker()
    try:
        pid = process.call(Worker.process).result()
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(pid, number)
        assert process.call(Worker.process).result() == pid
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(LostProcessError, match="a worker ended without a word, exit code -9"):
            process.call(Worker.process).result()
        with pytest.raises(
            LostProcessError
        ):  # not a broken pipe, which is taken for a closed stdout
            process.call(Worker.process).result()
    finally:
        process.close()


PARENT = """
import sys, time
sys.path.insert(0, {here!r})
from test_processes import Worker, worker
process = worker()
print(process.call(Worker.process).result(), flush=True)
time.sleep(600)
"""


def test_it_ends_with_its_parent():
    program = PARENT.format(here=str(Path(__file__).parent))
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{child}").exists():
        if (Path(f"/proc/{child}") / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_modules_that_lie_about_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "struct.py").write_text("raise SystemExit('wrong struct')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    process = worker()
    try:
        process.ready.result()
    finally:
        process.close()
