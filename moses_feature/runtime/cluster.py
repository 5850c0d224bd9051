"""A Ray cluster of this machine or of several, and actors on it that do tasks.

The tasks of a lost actor are done by another one.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from typing import Any

from moses_feature.runtime.environment import of_workers
from moses_feature.runtime.errors import LostProcessError, MosesFeatureError, UsageError

logger = logging.getLogger(__name__)

LOCAL = "local"
"""The address of a cluster made of this machine only."""
SECONDS_TO_ANSWER = 10.0


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process has joined.

    Attributes:
        ray: the module `ray`, with which actors are made.
        machines: CPU cores and GPUs of each machine.
    """

    ray: Any
    machines: tuple[tuple[int, int], ...]

    @property
    def most_cores(self) -> int:
        """The largest number of CPU cores of a machine."""
        return max((cores for cores, _ in self.machines), default=0)

    def places(self, cores: int) -> int:
        """Return how many workers with `cores` CPU cores each fit on the cluster."""
        return sum(of_one // cores for of_one, _ in self.machines)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Join the cluster at an address, or make one of this machine for the time of the block.

    Args:
        address: `local`, or an address that Ray accepts, such as `auto` or HOST:PORT.

    Raises:
        UsageError: Ray is not installed, or the address is invalid.
        MosesFeatureError: there is no cluster at this address.
    """
    check_address(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of the change
    if address == LOCAL:  # Ray's processes listen only on the loopback interface
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise UsageError("--ray needs Ray: install it with pip install ray") from error
    settings = {
        "log_to_driver": False,
        "logging_level": "ERROR",
        "runtime_env": {"env_vars": of_workers()},
    }
    try:
        if address == LOCAL:
            ray.init(LOCAL, include_dashboard=False, **settings)
        else:
            ray.init(address, **settings)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise MosesFeatureError(f"--ray {address}: {reason}") from error
    try:
        resources = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        yield Cluster(ray, tuple((int(r.get("CPU", 0)), int(r.get("GPU", 0))) for r in resources))
    finally:
        ray.shutdown()


def check_address(address: str) -> None:
    """Check an address: that a server listens at HOST:PORT, for which Ray would try for minutes.

    Raises:
        UsageError: it is none.
        MosesFeatureError: nobody answers there.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        if address not in (LOCAL, "auto"):
            raise UsageError(f"--ray {address!r}: expected local, auto or HOST:PORT")
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
    except (OSError, ValueError, OverflowError) as error:
        raise MosesFeatureError(f"--ray {address}: nobody answers there: {error}") from error


ATTEMPTS = 3
"""The number of actors that may be lost with one task, or consecutively without doing any."""
SECONDS_BETWEEN_LOOKS = 0.05
SECONDS_BETWEEN_NEWS = 60.0


@dataclass
class _ActorTask:
    """A task.

    Attributes:
        what: a description, for errors.
        arguments: arguments of the actors' method.
        done: the future of the result.
        attempts: the number of actors that were lost with it.
    """

    what: str
    arguments: tuple[Any, ...]
    done: Future[Any] = field(default_factory=Future)
    attempts: int = 0


class ActorPool:
    """Actors that do tasks of one kind, several at a time.

    An actor that dies, with its process or with its machine, is replaced as soon as the cluster
    has room for another one; meanwhile the others do its tasks.

    Ray's own `max_restarts` and `max_task_retries` are not enough. They count a loss against all
    tasks of the actor, so a task that kills actors also fails innocent ones; tasks wait for their
    own actor even if others are idle; and an actor is restarted with the same resources, which a
    smaller cluster may no longer have.

    Args:
        cluster: the cluster.
        make: makes an actor; its method `ready` returns once it can begin, and `do` does a task,
            or returns the `MosesFeatureError` that prevented it.
        size: the number of actors.
        at_once: the number of tasks that an actor has at a time.
    """

    def __init__(self, cluster: Cluster, make: Callable[[], Any], size: int, at_once: int) -> None:
        self._ray = cluster.ray
        self._make = make
        self._at_once = at_once
        self._waiting: deque[_ActorTask] = deque()
        self._changed = threading.Condition()
        self._places = size
        self._closed = False
        self._last_words = ""
        self._threads = [threading.Thread(target=self._attend, daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def submit(self, what: str, *arguments: Any) -> Future[Any]:
        """Queue a task, and return the future of its result.

        Args:
            what: a description, for errors.
            arguments: arguments of `do`.
        """
        task = _ActorTask(what, arguments)
        with self._changed:
            if self._places:
                self._waiting.append(task)
                self._changed.notify()
            else:
                self._give_up(task)
        return task.done

    def close(self) -> None:
        """Accept no more tasks; the actors end with the connection to the cluster."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:  # no thread may use a cluster that has been left
            thread.join()

    def _attend(self) -> None:
        """Keep one place of the pool filled with an actor; replace it if it is lost."""
        losses = 0  # consecutive losses without a finished task
        while losses < ATTEMPTS and not self._closed:
            pending: dict[Any, _ActorTask] = {}
            losses += 1
            try:
                for _ in self._serve(self._make(), pending):
                    losses = 0
            except Exception as error:  # any error of Ray about a lost actor
                if not self._closed:
                    self._put_back(list(pending.values()), error)
        # This place stays empty. When all places are empty, the waiting tasks fail.
        with self._changed:
            self._places -= 1
            while self._waiting and not self._places:
                self._give_up(self._waiting.popleft())

    def _serve(self, actor: Any, pending: dict[Any, _ActorTask]) -> Iterator[None]:
        """Send tasks to an actor, and yield after each finished one, until the pool is closed."""
        self._wait_for(actor)
        while not self._closed:
            if (task := self._next(pending.values())) is not None:
                pending[actor.do.remote(*task.arguments)] = task
                continue
            finished, _ = self._ray.wait(
                list(pending), num_returns=1, timeout=SECONDS_BETWEEN_LOOKS
            )
            for reference in finished:
                self._finish(reference, pending[reference].done)
                del pending[reference]
                yield

    def _wait_for(self, actor: Any) -> None:
        ready = actor.ready.remote()
        news = time.monotonic() + SECONDS_BETWEEN_NEWS
        while not self._closed and not self._ray.wait([ready], timeout=SECONDS_BETWEEN_LOOKS)[0]:
            if time.monotonic() > news:
                logger.info("waiting until the cluster has room for a worker")
                news = time.monotonic() + SECONDS_BETWEEN_NEWS
        if not self._closed:
            self._ray.get(ready)

    def _finish(self, reference: Any, done: Future[Any]) -> None:
        """Pass on a result; raise if the actor was lost."""
        try:
            result = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:  # a bug of this program
            result = error
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)

    def _next(self, pending: Collection[_ActorTask]) -> _ActorTask | None:
        """Return the next task for an actor; wait for one if the actor has none.

        A task that was lost with an actor is done alone, to find out which task kills actors.
        """
        with self._changed:
            while not self._waiting and not pending and not self._closed:
                self._changed.wait()
            # A lost task is done alone: if the actor is lost again, the task is the cause.
            suspects = any(task.attempts for task in (*pending, *islice(self._waiting, 1)))
            room = 1 if suspects else self._at_once
            if self._waiting and len(pending) < room and not self._closed:
                return self._waiting.popleft()
            return None

    def _put_back(self, tasks: list[_ActorTask], error: Exception) -> None:
        """Put the tasks of a lost actor back at the head of the queue, for the others."""
        self._last_words = (str(error).strip().splitlines() or [repr(error)])[-1][:300]
        logger.warning("a worker was lost, its work is done by another one: %s", self._last_words)
        with self._changed:
            for task in reversed(tasks):
                task.attempts += 1
                if task.attempts < ATTEMPTS:
                    self._waiting.appendleft(task)
                else:
                    self._give_up(task)
            self._changed.notify_all()

    def _give_up(self, task: _ActorTask) -> None:
        task.done.set_exception(
            LostProcessError(f"{task.what}: {ATTEMPTS} workers were lost: {self._last_words}")
        )
