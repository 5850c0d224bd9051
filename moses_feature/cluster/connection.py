"""A Ray cluster: this machine alone, or many."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from moses_feature.runtime.environment import of_workers
from moses_feature.runtime.errors import MosesFeatureError, UsageError

LOCAL = "local"
"""The address of a cluster that is made of this machine alone."""
SECONDS_TO_ANSWER = 10.0


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process has joined.

    Attributes:
        ray: the module, with which actors are made.
        machines: CPU cores and GPUs of each.
    """

    ray: Any
    machines: tuple[tuple[int, int], ...]

    @property
    def most_cores(self) -> int:
        """The CPU cores of the machine that has most of them."""
        return max((cores for cores, _ in self.machines), default=0)

    def places(self, cores: int) -> int:
        """Return how many workers of so many CPU cores there is room for."""
        return sum(of_one // cores for of_one, _ in self.machines)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Join the cluster at an address, or make one of this machine for as long as it is needed.

    Args:
        address: `local`; or what Ray takes, such as `auto` or HOST:PORT.

    Raises:
        UsageError: Ray is not installed, or the address is none.
        MosesFeatureError: there is no cluster at this address.
    """
    _check_address(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of the change
    if address == LOCAL:  # all that Ray starts listens on the loopback interface alone
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


def _check_address(address: str) -> None:
    """Check that somebody listens at HOST:PORT; Ray would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        if address not in (LOCAL, "auto"):
            raise UsageError(f"--ray {address!r}: expected local, auto or HOST:PORT")
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
    except (OSError, ValueError, OverflowError) as error:
        raise MosesFeatureError(f"--ray {address}: nobody answers there: {error}") from error
