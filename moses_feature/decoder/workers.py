"""The embedded decoder in several processes, each with a part of the sentences.

The parts are contiguous, and what a process knows of tables and language models is kept from one
time to the next. The result does not depend on the number of processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from moses_feature.decoder.decoder import EmbeddedDecoder, SearchErrors, SearchLimits
from moses_feature.decoder.source_phrases import Sentence
from moses_feature.decoder.system import System
from moses_feature.moses.features import FeatureSet
from moses_feature.runtime.files import whole_file
from moses_feature.runtime.processes import ObjectProcess


def embedded_decoder(
    system: System,
    sentences: Sequence[Sentence],
    limits: SearchLimits,
    jobs: int,
    first: int = 0,
    references: Sequence[Sentence] | None = None,
) -> EmbeddedDecoder | Workers:
    """Return a decoder for the sentences that runs in this process, or in several.

    Args:
        system: the models.
        sentences: as tokens.
        limits: of the search.
        jobs: processes.
        first: the number of the first sentence, for one process.
        references: of training sentences whose own counts are taken off.
    """
    if (jobs := min(jobs, len(sentences))) > 1:
        return Workers(system, sentences, limits, jobs, references)
    return EmbeddedDecoder(system, sentences, limits, first, references)


class Workers:
    """Embedded decoders in processes of their own; see `Decoder`.

    Raises:
        MosesFeatureError: a process could not read the models.
        LostProcessError: a process ended before its time.
    """

    def __init__(
        self,
        system: System,
        sentences: Sequence[Sentence],
        limits: SearchLimits,
        jobs: int,
        references: Sequence[Sentence] | None = None,
    ) -> None:
        self.features: FeatureSet = system.features
        self._workers: list[ObjectProcess] = []
        bounds = [len(sentences) * job // jobs for job in range(jobs + 1)]
        try:
            for first, last in pairwise(bounds):
                mine = list(sentences[first:last])
                theirs = None if references is None else list(references[first:last])
                make = partial(EmbeddedDecoder, system, mine, limits, first, theirs)
                self._workers.append(ObjectProcess(make, "a decoding process"))
            for worker in self._workers:
                worker.ready.result()
        except BaseException:
            self.close()
            raise

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate all sentences; see `Decoder`."""
        self._write(EmbeddedDecoder.write_nbest, (features, count), path, report)

    def _write(
        self,
        method: Callable[..., None],
        arguments: tuple[Any, ...],
        path: Path,
        report: Callable[[int], None],
    ) -> None:
        """Have each process write its part of a file."""
        parts = [path.with_name(f".{path.name}.part-{n}.gz") for n in range(len(self._workers))]
        try:
            done = [
                worker.call(method, *arguments, part, report=report)
                for worker, part in zip(self._workers, parts, strict=True)
            ]
            for future in done:
                future.result()
            with whole_file(path) as temporary, temporary.open("wb") as file:
                for part in parts:  # gzip members one after the other are a gzip file
                    with part.open("rb") as content:
                        shutil.copyfileobj(content, file)
        except BaseException:
            self.close()  # they may still be at work
            raise
        finally:
            for part in parts:
                part.unlink(missing_ok=True)

    def search_errors(self, features: FeatureSet, count: int) -> SearchErrors:
        """Count those of the first process; see `Decoder`."""
        errors: SearchErrors = (
            self._workers[0].call(EmbeddedDecoder.search_errors, features, count).result()
        )
        return errors

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.close()
        self._workers = []
