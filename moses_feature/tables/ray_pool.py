"""Scoring parts of a table on a Ray cluster: a worker for each GPU, or for some CPU cores each."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass

import torch

from moses_feature.networks.architectures import Dtype
from moses_feature.runtime.cluster import ActorPool, Cluster, connected
from moses_feature.runtime.errors import LostProcessError, MosesFeatureError, UsageError
from moses_feature.tables.column_models import ColumnModels
from moses_feature.tables.columns import NewColumns, ScoredPart
from moses_feature.tables.parts import PartOfTable
from moses_feature.tables.pipeline import OpenPool, Pipeline

logger = logging.getLogger(__name__)

CORES_PER_WORKER = 4
"""The default number of CPU cores of a worker without a GPU."""
CORES_PER_GPU = 17
"""The most CPU cores of a worker with a GPU: for the scorer, and for helpers."""
SPARE_PARTS = 2
"""Waiting parts for each part in progress, so that a slow worker does not stop the others."""


@dataclass(frozen=True)
class WorkerKind:
    """The resources of a worker.

    Attributes:
        count: the number of workers.
        cores: CPU cores of each.
        gpus: GPUs of each.
        helpers: processes of each that pack parts and append columns beside the scorer.
    """

    count: int
    cores: int
    gpus: int

    @property
    def helpers(self) -> int:
        """See above."""
        if self.gpus:
            return max(1, self.cores - 1)
        return -(-self.cores // CORES_PER_WORKER)

    @classmethod
    def of(cls, cluster: Cluster, device: str, threads: int | None) -> WorkerKind:
        """Divide a cluster: a worker for each GPU, or for each `threads` cores.

        Raises:
            UsageError: the cluster has no GPU, or no machine with that many cores.
        """
        kind = device.partition(":")[0]
        with_gpus = [(cores, gpus) for cores, gpus in cluster.machines if gpus]
        if kind not in ("auto", "cpu", "cuda") or (kind == "cuda" and not with_gpus):
            raise UsageError(
                f"--device {device} with --ray: expected auto, cpu, or cuda where the cluster has "
                f"GPUs; it has {sum(gpus for _, gpus in with_gpus)}"
            )
        if with_gpus and kind != "cpu":
            spare = min(cores // gpus for cores, gpus in with_gpus)
            cores = threads or max(1, min(CORES_PER_GPU, spare))
            count = sum(min(gpus, of_one // cores) for of_one, gpus in with_gpus)
        else:
            cores = threads or max(1, min(CORES_PER_WORKER, cluster.most_cores))
            count = cluster.places(cores)
        if not count:
            raise UsageError(
                f"--threads with --ray: expected {cluster.most_cores} at most, the CPU cores of "
                f"the largest machine, found {cores}"
            )
        return cls(count, cores, int(bool(with_gpus) and kind != "cpu"))


class PartWorker:
    """The work of an actor: takes parts, returns them with the new columns."""

    def __init__(
        self,
        models: Sequence[ColumnModels],
        columns: NewColumns,
        dtype: Dtype,
        kind: WorkerKind,
    ) -> None:
        device = torch.device("cuda" if kind.gpus else "cpu")
        torch.set_num_threads(kind.cores)
        scorers = [of.scorer(device, dtype, kind.cores) for of in models]
        self._pipeline = Pipeline(scorers, columns, kind.helpers)

    def ready(self) -> None:
        """Return once the model is loaded."""

    def do(self, part: PartOfTable) -> ScoredPart | MosesFeatureError:
        """Append the columns to a part; return the error if that fails.

        A worker that has lost a helper process ends, so that another one replaces it.
        """
        try:
            return self._pipeline.submit(part).result()
        except LostProcessError:
            os._exit(1)
        except MosesFeatureError as error:
            return error


class RayPool:
    """Scores parts on a cluster; see `ScoringPool`."""

    def __init__(
        self,
        cluster: Cluster,
        models: Sequence[ColumnModels],
        columns: NewColumns,
        dtype: Dtype,
        kind: WorkerKind,
    ) -> None:
        ray = cluster.ray
        at_once = kind.helpers + 2  # one for each helper, one being scored, one on its way
        actor = ray.remote(PartWorker).options(
            num_cpus=kind.cores, num_gpus=kind.gpus, max_concurrency=at_once + 1
        )
        shared = ray.put(models), ray.put(columns)
        self._pool = ActorPool(
            cluster, lambda: actor.remote(*shared, dtype, kind), kind.count, at_once
        )
        self.room = kind.count * at_once * (1 + SPARE_PARTS)

    def submit(self, part: PartOfTable) -> Future[ScoredPart]:
        """Send a part to the cluster."""
        lines = f"lines {part.numbers[0]} to {part.numbers[-1]}" if part.numbers else "no lines"
        return self._pool.submit(lines, part)

    def close(self) -> None:
        """Stop sending parts."""
        self._pool.close()


@contextmanager
def ray_pools(
    address: str,
    models: Sequence[ColumnModels],
    dtype: Dtype,
    device: str,
    threads: int | None,
) -> Iterator[OpenPool]:
    """Connect to the cluster at an address, and yield a function that opens a pool there.

    See `connection.connected` for addresses and errors.
    """
    with connected(address) as cluster:
        kind = WorkerKind.of(cluster, device, threads)
        logger.info(
            "%d worker%s with %d CPU core%s%s each",
            kind.count,
            "s"[: kind.count > 1],
            kind.cores,
            "s"[: kind.cores > 1],
            " and a GPU" if kind.gpus else "",
        )

        yield lambda columns: closing(RayPool(cluster, models, columns, dtype, kind))
