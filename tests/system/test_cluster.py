"""Work on a Ray cluster: the bytes of one process, though workers are lost on the way."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.files import write_gz
from helpers.moses import SENTENCES, tokens, write_replay
from helpers.tables import LONG_TABLE, start, waited_for

from mert.decoders.choice import make_decoder
from mert.settings import DecoderSettings, MosesSettings
from moses_feature.runtime import cluster as actors_module
from moses_feature.runtime.cluster import ATTEMPTS, ActorPool, Cluster, connected
from moses_feature.runtime.errors import LostProcessError, MosesFeatureError, UsageError
from moses_feature.tables import augment as augment_module
from moses_feature.tables.ray_pool import WorkerKind

pytestmark = pytest.mark.slow

TWO_CORES = {"RAY_OVERRIDE_RESOURCES": '{"CPU": 2}'}  # whatever the machine has
LARGE_TABLE = b"".join(
    line.replace(b" w", b" w%d" % copy)
    for copy in range(20)
    for line in LONG_TABLE.splitlines(True)
)


def descendants(name: bytes, root: int | None = None) -> list[int]:
    """Return the processes of that name that a process has started, and those that they have."""
    parents, names = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(status[1])
                names[int(folder.name)] = (folder / "cmdline").read_bytes()
            except OSError:
                continue
    found = {root or os.getpid()}
    for _ in range(6):
        found |= {process for process, parent in parents.items() if parent in found}
    return sorted(process for process in found if name in names.get(process, b""))


def busy_workers(root: int) -> list[int]:
    """Return the workers that have a helper, which they get with their second part."""
    workers = descendants(b"ray::PartWorker", root)
    return [worker for worker in workers if helpers_of(worker)]


def helpers_of(worker: int) -> list[int]:
    return descendants(b"moses_feature.runtime.processes", worker)


@contextmanager
def ended(process: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """End a process and all that it has started, whatever happens."""
    try:
        yield process
    finally:
        for other in descendants(b"", process.pid):
            with suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_two_workers_write_the_bytes_of_one_process_though_both_are_lost(
    run, tmp_path, model_directory, monkeypatch
):
    """One is killed, and a helper of the other; how fast either is does not matter."""
    monkeypatch.setattr(augment_module, "LINES_PER_PART", 97)
    write_gz(tmp_path / "in.gz", LARGE_TABLE)
    run("augment-phrase-table", "in.gz", "whole.gz", "--model", model_directory)

    ray = ("--model", model_directory, "--ray", "local")
    environment = {**os.environ, **TWO_CORES}
    with ended(start(tmp_path, "in.gz", "out.gz", *ray, env=environment)) as process:
        first = waited_for(lambda: busy_workers(process.pid), process)[0]
        os.kill(first, signal.SIGSTOP)  # so that the other one gets some parts, too
        second = waited_for(lambda: {*busy_workers(process.pid)} - {first}, process).pop()
        for victim in (first, helpers_of(second)[0]):
            os.kill(victim, signal.SIGKILL)
        messages = process.communicate(timeout=240)[1]
        assert process.returncode == 0, messages
    assert "2 workers with 1 CPU core each" in messages
    assert messages.count("a worker was lost") == 2
    assert (tmp_path / "out.gz").read_bytes() == (tmp_path / "whole.gz").read_bytes()
    of_one, of_two = (
        json.loads((tmp_path / f"{name}.features.json").read_text()) for name in ("whole", "out")
    )
    for facts in (of_one, of_two):
        del facts["command"], facts["output"]
    assert of_one == of_two


@pytest.mark.slow
def test_what_is_wrong_on_a_worker(tmp_path, model_directory):
    write_gz(tmp_path / "in.gz", LONG_TABLE + b"a ||| A\n")
    arguments = ("in.gz", "out.gz", "--model", model_directory, "--ray", "local")
    with ended(start(tmp_path, *arguments)) as process:
        messages = process.communicate(timeout=240)[1]
        assert process.returncode == 1
    assert "Error: in.gz at line 3001: expected 3 to 7 fields" in messages
    assert [path.name for path in tmp_path.iterdir()] == ["in.gz"]


def nbest(decoder, path: Path) -> bytes:
    decoder.write_nbest(decoder.features, 5, path)
    return gzip.decompress(path.read_bytes())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Ray
def test_either_decoder_on_a_cluster(toy, stand_in, tmp_path, caplog):
    """Shards merged in order; a lost worker, a failing Moses and one that never works."""
    sentences = tokens(SENTENCES)
    alone = make_decoder(DecoderSettings(), toy.ini, sentences)
    expected = nbest(alone, tmp_path / "alone.gz")
    jobs = len(sentences)  # more than there are cores
    decoder = make_decoder(DecoderSettings(ray="local", jobs=jobs), toy.ini, sentences)
    try:
        assert nbest(decoder, tmp_path / "two.gz") == expected
        workers = descendants(b"ray::ShardWorker")
        assert len(workers) == jobs
        os.kill(workers[1], signal.SIGKILL)
        assert nbest(decoder, tmp_path / "one-lost.gz") == expected
    finally:
        decoder.close()

    moses = MosesSettings(str(stand_in))
    alone = make_decoder(DecoderSettings("moses", moses=moses), toy.ini, sentences)
    expected = nbest(alone, tmp_path / "moses.gz")
    alone.close()
    decoder = make_decoder(
        DecoderSettings("moses", moses=moses, ray="local", jobs=2), toy.ini, sentences
    )
    try:
        assert nbest(decoder, tmp_path / "moses-2.gz") == expected
        calls = len((stand_in.parent / "calls.log").read_text().splitlines())
        write_replay(stand_in, crash=True)
        with pytest.raises(
            MosesFeatureError, match=r"sentences 1 to 2 failed 3 times.*exit code 3"
        ):
            nbest(decoder, tmp_path / "no.gz")
        assert not (tmp_path / "no.gz").exists()
        assert caplog.text.count("sentences 1 to 2: ") == ATTEMPTS - 1
        write_replay(stand_in, crash=False)
        assert len((stand_in.parent / "calls.log").read_text().splitlines()) >= calls + 4
        assert nbest(decoder, tmp_path / "again.gz") == expected
    finally:
        decoder.close()
    assert descendants(b"ray::ShardWorker") == []


def test_no_cluster_and_no_ray(tmp_path, model_directory):
    write_gz(tmp_path / "in.gz", LONG_TABLE)
    program = (
        "import sys; sys.modules['ray'] = None\n"
        "from moses_feature.cli.tables.augment import augment_phrase_table; augment_phrase_table()"
    )
    done = subprocess.run(
        ["python", "-c", program, "in.gz", "out.gz", "--model", model_directory, "--ray", "local"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{Path(os.sys.executable).parent}:{os.environ['PATH']}"},
    )
    assert done.returncode == 2
    assert "install it with pip install ray" in done.stderr


SMALL, LARGE, TWO, ODD = ((2, 0),), ((64, 8),), ((64, 8), (8, 4)), ((3, 0), (3, 0), (1, 0))


@pytest.mark.parametrize(
    ("machines", "device", "threads", "expected"),
    [
        (SMALL, "auto", None, (1, 2, 0)),
        (SMALL, "cpu", 1, (2, 1, 0)),
        (((64, 0),), "auto", None, (16, 4, 0)),
        (((10, 0),), "auto", None, (2, 4, 0)),
        (ODD, "auto", None, (2, 3, 0)),
        (ODD, "auto", 2, (2, 2, 0)),
        (LARGE, "auto", None, (8, 8, 1)),
        (LARGE, "cuda", 3, (8, 3, 1)),
        (LARGE, "cpu", None, (16, 4, 0)),
        (TWO, "auto", None, (12, 2, 1)),
        (TWO, "auto", 4, (10, 4, 1)),
    ],
)
def test_how_a_cluster_is_divided(machines, device, threads, expected):
    kind = WorkerKind.of(Cluster(None, machines), device, threads)
    assert (kind.count, kind.cores, kind.gpus) == expected
    assert kind.helpers >= 1


@pytest.mark.parametrize("device", ["cuda", "tpu"])
def test_a_cluster_without_such_a_device(device):
    with pytest.raises(UsageError, match="it has 0"):
        WorkerKind.of(Cluster(None, SMALL), device, None)


@pytest.mark.parametrize("machines", [SMALL, ODD, ((4, 1),)])
def test_a_cluster_without_so_many_cores(machines):
    with pytest.raises(UsageError, match=r"expected [234] at most.*, found 5"):
        WorkerKind.of(Cluster(None, machines), "auto", 5)


@pytest.mark.parametrize(
    ("address", "kind", "message"),
    [
        ("", UsageError, "expected local, auto or HOST:PORT"),
        ("nonsense", UsageError, "expected local, auto or HOST:PORT"),
        ("127.0.0.1:1", MosesFeatureError, "nobody answers there"),
        ("ray://127.0.0.1:1", MosesFeatureError, "nobody answers there"),
        ("127.0.0.1:port", MosesFeatureError, "nobody answers there"),
        ("127.0.0.1:99999", MosesFeatureError, "nobody answers there"),
    ],
)
def test_no_cluster_at_an_address(address, kind, message):
    with pytest.raises(kind, match=message), connected(address):
        pass


class LostError(Exception):
    """Stands for what Ray raises when an actor is lost."""


class FaultError(Exception):
    """Stands for what Ray raises when an actor's method does."""


@dataclass
class StandInRay:
    """Ray as far as a pool needs it; actors do their tasks when they are waited for."""

    log: list[object] = field(default_factory=list)
    exceptions: object = field(default_factory=lambda: SimpleNamespace(RayTaskError=FaultError))

    def get(self, reference):
        return reference()

    def wait(self, references, num_returns=1, **_):
        return references[:num_returns], references[num_returns:]


def remote(method):
    return SimpleNamespace(remote=lambda *arguments: lambda: method(*arguments))


class Worker:
    """An actor that squares numbers, and is lost with some of them."""

    def __init__(self, deadly: list[int], fails_to_start: bool = False) -> None:
        self._deadly = deadly
        self._fails_to_start = fails_to_start
        self.ready, self.do = remote(self._ready), remote(self._do)

    def _ready(self) -> None:
        if self._fails_to_start:
            raise LostError("Traceback\nno such model")

    def _do(self, number: int) -> int | MosesFeatureError:
        if number in self._deadly:
            self._deadly.remove(number)
            raise LostError("its machine is gone")
        if number < 0:
            return MosesFeatureError("negative")
        if number == 7:
            raise FaultError("a bug")
        return number**2


@pytest.fixture
def pool_of():
    pools = []

    def make(make_worker, size: int = 3, at_once: int = 2) -> ActorPool:
        pools.append(ActorPool(Cluster(StandInRay(), ()), make_worker, size, at_once))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def test_lost_work_is_done_by_others(pool_of):
    deadly = [5, 5, 6, 11]
    pool = pool_of(lambda: Worker(deadly))
    futures = [pool.submit(f"number {n}", n) for n in range(20) if n != 7]
    assert [f.result(10) for f in futures] == [n**2 for n in range(20) if n != 7]
    assert deadly == []


def test_what_kills_every_worker_is_given_up(pool_of):
    pool = pool_of(lambda: Worker([3] * 100), size=2, at_once=1)
    futures = [pool.submit(f"number {n}", n) for n in range(6)]
    assert [f.result(10) for n, f in enumerate(futures) if n != 3] == [0, 1, 4, 16, 25]
    with pytest.raises(LostProcessError, match="number 3: 3 workers were lost: its machine"):
        futures[3].result(10)


def test_errors_come_back(pool_of):
    pool = pool_of(lambda: Worker([]))
    with pytest.raises(MosesFeatureError, match="negative"):
        pool.submit("", -1).result(10)
    with pytest.raises(FaultError, match="a bug"):
        pool.submit("", 7).result(10)
    assert pool.submit("", 8).result(10) == 64


def test_no_worker_starts(pool_of):
    pool = pool_of(lambda: Worker([], fails_to_start=True))
    for _ in range(2):  # at once, and when it is known
        with pytest.raises(LostProcessError, match=r"number 4: .*no such model"):
            pool.submit("number 4", 4).result(10)


def test_the_user_is_told_to_wait(monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(actors_module, "SECONDS_BETWEEN_NEWS", 0.0)
    waits = iter([([], [None]), ([], [None])])
    ray = StandInRay()
    ray.wait = lambda references, **_: next(waits, (references[:1], references[1:]))
    pool = ActorPool(Cluster(ray, ()), lambda: Worker([]), 1, 1)
    assert pool.submit("", 3).result(10) == 9
    pool.close()
    assert caplog.text.count("waiting until the cluster has room") == 2
