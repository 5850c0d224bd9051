"""The embedded decoder or Moses on a Ray cluster: each worker translates some sentences."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any

from mert.decoders.decoder import Decoder
from moses_feature.decoder.source_phrases import Sentence
from moses_feature.moses.features import FeatureSet
from moses_feature.runtime.cluster import ATTEMPTS, ActorPool, Cluster, connected
from moses_feature.runtime.errors import LostProcessError, MosesFeatureError
from moses_feature.runtime.files import whole_file

logger = logging.getLogger(__name__)

MakeDecoder = Callable[[Sequence[Sentence], int], Decoder]
"""Makes a decoder of some sentences, given the number of the first one."""


@dataclass(frozen=True)
class _Shard:
    """The sentences of one worker.

    Attributes:
        name: describes them, for messages.
        size: the number of sentences.
        pool: the pool of that one worker.
    """

    name: str
    size: int
    pool: ActorPool

    def start(self, features: FeatureSet, count: int) -> Future[bytes]:
        """Start to decode; the future returns the file that the decoder writes."""
        return self.pool.submit(self.name, features, count)


class ClusterDecoder:
    """Workers on a cluster, each with contiguous sentences; see `Decoder`.

    A worker keeps its models from one run to the next. A lost worker is replaced, and failed work
    is repeated. The workers read the models at the paths in the ini.

    Args:
        address: of the cluster; see `moses_feature.runtime.cluster.connected`.
        make: makes a decoder, on a worker.
        features: the features of the system.
        sentences: all sentences.
        cores: CPU cores that a decoder uses.
        workers: the number of workers; None for as many as the cluster has cores for.

    Raises:
        MosesFeatureError: there is no cluster, or a worker cannot read the models.
    """

    def __init__(
        self,
        address: str,
        make: MakeDecoder,
        features: FeatureSet,
        sentences: Sequence[Sentence],
        cores: int,
        workers: int | None,
    ) -> None:
        self.features = features
        with ExitStack() as stack:
            cluster = stack.enter_context(connected(address))
            places = cluster.places(cores)
            count = min(workers or max(1, places), max(1, len(sentences)))
            reserved = cores if count <= places else 0  # else workers would wait for each other
            bounds = [len(sentences) * shard // count for shard in range(count + 1)]
            logger.info(
                "%d worker%s, %d CPU core%s each", count, "s"[: count > 1], cores, "s"[: cores > 1]
            )
            self._shards = []
            for first, last in pairwise(bounds):
                arguments = Path.cwd(), make, sentences[first:last], first
                pool = ActorPool(cluster, _makes_workers(cluster, reserved, arguments), 1, 1)
                stack.callback(pool.close)
                self._shards.append(_Shard(f"sentences {first + 1} to {last}", last - first, pool))
            self._stack = stack.pop_all()

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate all sentences; see `Decoder`."""
        asked = features, count
        started = [shard.start(*asked) for shard in self._shards]
        with whole_file(path) as temporary, temporary.open("wb") as file:
            for shard, part in zip(self._shards, started, strict=True):
                file.write(_retried(part, shard, *asked))  # concatenated gzip members
                report(shard.size)

    def search_errors(self, features: FeatureSet, count: int) -> None:
        """Return None: search errors are not counted on a cluster."""

    def close(self) -> None:
        """Leave the cluster; the workers end."""
        self._stack.close()


def _makes_workers(cluster: Cluster, cores: int, arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """Return functions that make a worker, and replace it when there may be fewer machines."""
    actor = cluster.ray.remote(ShardWorker)
    needs = chain([cores], repeat(0))
    return lambda: actor.options(num_cpus=next(needs)).remote(*arguments)


def _retried(part: Future[bytes], shard: _Shard, *asked: Any) -> bytes:
    """Wait for a part of a file; if it fails, start it again."""
    for _ in range(ATTEMPTS - 1):
        try:
            return part.result()
        except LostProcessError:  # the pool has already tried other workers
            raise
        except MosesFeatureError as error:
            logger.warning("%s: %s; trying again", shard.name, error)
            part = shard.start(*asked)
    try:
        return part.result()
    except MosesFeatureError as error:
        raise MosesFeatureError(f"{shard.name} failed {ATTEMPTS} times: {error}") from error


class ShardWorker:
    """The work of an actor: takes weights, returns n-best lists.

    Args:
        directory: where the command was started; relative paths in an ini refer to it.
        make: makes the decoder.
        sentences: the sentences to translate.
        first: the number of the first one.
    """

    def __init__(
        self, directory: Path, make: MakeDecoder, sentences: Sequence[Sentence], first: int
    ) -> None:
        os.chdir(directory)
        self._decoder = make(sentences, first)

    def ready(self) -> None:
        """Return once the models have been read."""

    def do(self, features: FeatureSet, count: int) -> bytes | MosesFeatureError:
        """Return the gzip file that the decoder writes, or the error."""
        try:
            with tempfile.TemporaryDirectory(prefix="mert-shard-") as scratch:
                path = Path(scratch) / "part.gz"
                self._decoder.write_nbest(features, count, path)
                return path.read_bytes()
        except MosesFeatureError as error:
            return error
