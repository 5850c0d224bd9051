"""A Ray cluster: this machine alone, or many."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from moses_feature.errors import MosesFeatureError, UsageError

LOCAL = "local"


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process has joined.

    Attributes:
        ray: the module, with which actors are made.
        cpus, gpus: of all its machines.
    """

    ray: Any
    cpus: int
    gpus: int


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Join the cluster at an address, or make one of this machine for as long as it is needed.

    Args:
        address: `local`; or what Ray takes: `auto`, HOST:PORT, ray://HOST:PORT.

    Raises:
        UsageError: Ray is not installed.
        MosesFeatureError: there is no cluster at this address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address == LOCAL:  # all that Ray starts listens on the loopback interface alone
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise UsageError("--ray needs Ray: pip install 'moses-feature[ray]'") from error
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address == LOCAL:
            ray.init(LOCAL, include_dashboard=False, **quiet)
        else:
            ray.init(address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise MosesFeatureError(f"--ray {address}: {reason}") from error
    try:
        resources = ray.cluster_resources()
        yield Cluster(ray, int(resources.get("CPU", 0)), int(resources.get("GPU", 0)))
    finally:
        ray.shutdown()
