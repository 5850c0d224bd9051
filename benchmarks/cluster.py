"""What one machine must do beside the products when many score (docs/explanation/scaling.md).

    python benchmarks/cluster.py TABLE MODEL [--lines 400000] [--workers 1]

Reading, packing, growing and compressing are timed alone; then the process that drives a run,
whose workers answer at once: in the same process, and on a Ray cluster of this machine.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from moses_feature.moses.lines import LineReader
from moses_feature.runtime.cluster import ActorPool, Cluster, connected
from moses_feature.tables.augment import LINES_PER_PART, augment
from moses_feature.tables.column_models import load_column_models
from moses_feature.tables.columns import NewColumns, ScoredPart
from moses_feature.tables.parts import PartOfTable, PartReader
from moses_feature.tables.settings import AugmentSettings


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("model", type=Path)
    parser.add_argument("--lines", type=int, default=400_000)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    models = load_column_models([("", [arguments.model])])
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / "table.gz"
        with (
            LineReader(arguments.table) as reader,
            gzip.open(table, "wb", compresslevel=6) as file,
        ):
            file.writelines(islice(reader, arguments.lines))
        parts, seconds = timed(lambda: read(table))
        lines = sum(len(part.numbers) for part in parts)
        size = sum(len(line) for part in parts for line in part.lines) / lines
        print(f"{lines:,} lines of {size:.0f} bytes, {table.stat().st_size / lines:.0f} compressed")
        row("reading and cutting into parts", lines, seconds)
        columns = NewColumns([models[0].columns(AugmentSettings())], str(table), "out.gz")
        packed, seconds = timed(lambda: [columns.pack(part) for part in parts])
        row("packing, one core", lines, seconds)
        log_probs = [np.full(len(one.target_lengths), -3.21) for (one,) in packed]
        grown, seconds = timed(
            lambda: [columns.append(*of) for of in enumerate([v] for v in log_probs)]
        )
        row("growing and compressing, one core", lines, seconds)
        output = str(Path(scratch) / "out.gz")
        for name, answers in (
            ("in one process", at_once(grown)),
            ("with Ray", over_ray(grown, arguments.workers)),
        ):
            with answers as open_pool:
                _, seconds = timed(
                    lambda: augment(str(table), output, models, open_pool, AugmentSettings())
                )
            row(f"the driver, {name}", lines, seconds)


def timed(work: Any) -> tuple[Any, float]:
    """Return what work returns, and the seconds that it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def row(name: str, lines: int, seconds: float) -> None:
    """Print a line of the report."""
    print(
        f"{name:<36} {lines / seconds:12,.0f} lines/s, {1e9 / lines * seconds / 60:6.1f} min "
        "for 10^9"
    )


def read(table: Path) -> list[PartOfTable]:
    """Read all parts of a table."""
    with LineReader(table) as reader:
        return list(PartReader(reader, LINES_PER_PART, None, None))


class Answers:
    """A pool that has every part grown already."""

    room = 8

    def __init__(self, grown: list[ScoredPart]) -> None:
        self._grown = grown

    def submit(self, part: PartOfTable) -> Future[ScoredPart]:
        """Answer at once."""
        future: Future[ScoredPart] = Future()
        future.set_result(self._grown[part.number])
        return future

    def close(self) -> None:
        """Do nothing."""


@contextmanager
def at_once(grown: list[ScoredPart]) -> Iterator[Any]:
    """Open pools that answer at once."""
    yield lambda _: closing(Answers(grown))


class Echo:
    """An actor that has every part grown already."""

    def __init__(self, grown: list[ScoredPart]) -> None:
        self._grown = grown

    def ready(self) -> None:
        """Be there."""

    def do(self, part: PartOfTable) -> ScoredPart:
        """Answer at once."""
        return self._grown[part.number]


class EchoPool:
    """Actors that answer at once; see `Pool`."""

    def __init__(self, cluster: Cluster, grown: list[ScoredPart], workers: int) -> None:
        shared = cluster.ray.put(grown)
        actor = cluster.ray.remote(Echo).options(num_cpus=0)
        self._crew = ActorPool(cluster, lambda: actor.remote(shared), workers, 3)
        self.room = 9 * workers

    def submit(self, part: PartOfTable) -> Future[ScoredPart]:
        """Send a part."""
        return self._crew.submit("a part", part)

    def close(self) -> None:
        """End the actors."""
        self._crew.close()


@contextmanager
def over_ray(grown: list[ScoredPart], workers: int) -> Iterator[Any]:
    """Open pools on a cluster of this machine."""
    with connected("local") as cluster:
        pool = EchoPool(cluster, grown, workers)
        for _ in range(workers):  # the actors are there before the clock starts
            pool.submit(PartOfTable(0, b"", [], 0, 0, "", None)).result()
        yield lambda _: closing(pool)


if __name__ == "__main__":
    main()
