"""The embedded decoder: phrase-based search for the systems that train-model.perl makes.

The sentences may be divided among several processes, one contiguous part each. Each process keeps
its table rows and language model look-ups from one decoding run to the next. The result does not
depend on the number of processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moses_feature.decoder.best_paths import best_paths
from moses_feature.decoder.graph import Graph
from moses_feature.decoder.language_model import BUFFER
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.links import shifted
from moses_feature.decoder.options import Options
from moses_feature.decoder.path_features import features_of_paths, words_of_paths
from moses_feature.decoder.phrase_options import PhraseOptions
from moses_feature.decoder.reordering_constraints import NONE, constraints_of
from moses_feature.decoder.resources import Resources
from moses_feature.decoder.search import SearchTask, advance, begin, most_hypotheses, room_for
from moses_feature.decoder.source_phrases import Sentence, surface
from moses_feature.decoder.system import System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.nbest_lists import Hypothesis, format_nbest
from moses_feature.moses.segmentation import PhrasePlace, write_segmentation
from moses_feature.moses.xml_input import Marks
from moses_feature.runtime.arrays import Integers, Record
from moses_feature.runtime.files import open_output, whole_file
from moses_feature.runtime.processes import ObjectProcess, cores

PATHS_PER_HYPOTHESIS = 20
"""Paths to look at for each distinct translation wanted (`n-best-factor` of Moses)."""
FEWEST_PATHS = 2_000
"""Paths to look at for a short list, at most, so that it is the beginning of a longer one."""


class SearchErrors(NamedTuple):
    """The number of sentences for which a wider search finds a better translation.

    Attributes:
        found: sentences with another translation of a higher score.
        sentences: sentences compared.
    """

    found: int
    sentences: int


class EmbeddedDecoder:
    """Translates a fixed set of sentences, again and again with other weights.

    Table rows and language model scores are kept from one run to the next.

    Args:
        system: the models.
        sentences: the sentences, as tokens.
        limits: the limits of the search.
        first: the number of the first sentence in n-best lists.
        buffer: n-grams that a neural model scores in one batch, at most.
        resources: the models of the system, if they are loaded already.
        marks: what the input says of the translation of the sentences.
    """

    def __init__(
        self,
        system: System,
        sentences: Sequence[Sentence],
        limits: SearchLimits | None = None,
        first: int = 0,
        buffer: int = BUFFER,
        resources: Resources | None = None,
        marks: Marks | None = None,
    ) -> None:
        surfaces = [surface(sentence) for sentence in sentences]
        self._options = PhraseOptions(system, surfaces, buffer, resources, marks)
        self._constraints = [constraints_of(of) for of in marks.sentences] if marks else None
        self._limits = system.limits(limits or SearchLimits())
        self._first = first
        self._segmentation, self._alignments = system.segmentation, system.alignments
        self._room = room_for(0, 0)  # memory for the graph of one search, used again by the next
        self.features: FeatureSet = system.features
        self._use(self.features)

    def __len__(self) -> int:
        return len(self._options.spans)

    def close(self) -> None:
        """Do nothing: the decoder holds no processes or open files."""

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate all sentences; see `Decoder`."""
        self._use(features)
        with open_output(path, 1) as file:
            for sentence in range(len(self)):
                hypotheses = self.translate(sentence, count)
                file.write(format_nbest(self._first + sentence, hypotheses, features))
                report(1)

    def translate(
        self,
        sentence: int,
        count: int = 1,
        distinct: bool = True,
        features: FeatureSet | None = None,
    ) -> list[Hypothesis]:
        """Return the best translations of a sentence, best first.

        Args:
            sentence: its index.
            count: the number of translations, at most; none are returned if the distortion limit
                allows no complete translation.
            distinct: whether their words must differ.
            features: the features whose weights are used from now on; None keeps the weights.
        """
        if features is not None:
            self._use(features)
        if not len(self._options.spans[sentence]):
            nothing = np.zeros(int(self._tuneable.sum()))
            return [Hypothesis((), nothing, 0.0, *self._derivation(()))]
        graph = self._search(sentence, self._weighted, np.empty(0, np.int64), forced=False)
        return self._best(graph, self._weighted, count, distinct)

    def force(self, sentence: int, words: Sentence) -> list[Hypothesis]:
        """Return the best derivation of a given translation; an empty list if none is found.

        The search has the usual limits, but keeps only hypotheses that begin the translation.
        """
        reference = self._options.word_numbers(words)
        options = self._options.only_from(sentence, self._weighted, reference)
        graph = self._search(sentence, options, reference, forced=True)
        return self._best(graph, options, 1, distinct=True)

    def search_errors(self, features: FeatureSet, count: int) -> SearchErrors:
        """Count sentences that twice the limits translate better; see `Decoder`."""
        sentences = range(min(count, len(self)))
        self._use(features)
        found = [self.translate(sentence) for sentence in sentences]
        limits = self._limits
        self._limits = limits._replace(pops=2 * limits.pops, stack=2 * limits.stack)
        try:
            wider = [self.translate(sentence) for sentence in sentences]
        finally:
            self._limits = limits
        return SearchErrors(
            sum(
                other[0].words != one[0].words and other[0].score > one[0].score
                for one, other in zip(found, wider, strict=True)
                if one and other
            ),
            len(sentences),
        )

    def _use(self, features: FeatureSet) -> None:
        self._weights = features.weights
        self._tuneable = features.tuneable
        self._weighted = self._options.weighted(self._weights)

    def _search(self, sentence: int, options: Options, reference: Integers, forced: bool) -> Graph:
        models = self._options.models
        task = SearchTask(
            self._options.spans[sentence],
            self._limits,
            reference,
            forced,
            self._constraints[sentence] if self._constraints else NONE,
        )
        most = most_hypotheses(len(task.phrases), self._limits)
        if most > len(self._room.records):
            self._room = room_for(most, len(models))
        progress = begin(task, options, self._room)
        graph: Graph = models.settled(partial(advance, task, options, self._room, progress))
        return graph

    def _best(self, graph: Graph, options: Options, count: int, distinct: bool) -> list[Hypothesis]:
        if not len(graph.complete):
            return []
        most = count
        if distinct and count > 1:
            most = max(count * PATHS_PER_HYPOTHESIS, FEWEST_PATHS)
        shown = self._options.shown(options)
        paths = best_paths(graph, shown, count, most, distinct)
        given = graph, options, *paths, self._options.layout
        of_paths = partial(features_of_paths, *given)
        all_values = self._options.models.settled(of_paths)
        numbers, ends = words_of_paths(graph, shown, *paths)
        words = [self._options.target_words[number] for number in numbers.tolist()]
        first, found = 0, []
        for row, (end, of_path) in enumerate(zip(ends.tolist(), all_values, strict=True)):
            score = float(of_path @ self._weights)
            steps = graph.hypotheses[paths[0][row, : paths[1][row]][::-1]]
            values = of_path[self._tuneable]
            derivation = self._derivation(steps)
            found.append(Hypothesis(tuple(words[first:end]), values, score, *derivation))
            first = end
        return found

    def _derivation(self, steps: Iterable[Record]) -> tuple[bytes | None, bytes | None]:
        """Return segmentation and word alignments of a path; None for what the ini does not ask."""
        if not (self._segmentation or self._alignments):
            return None, None
        places, links, written = [], [], 0
        offsets = self._weighted.word_offsets
        for step in steps:
            option, start = int(step["option"]), int(step["start"])
            target = self._weighted.target[option]
            words = int(offsets[target + 1] - offsets[target])
            if self._alignments:
                links.append(shifted(self._options.links[option], start, written))
            places.append(PhrasePlace(start, int(step["end"]) + 1, written, written + words))
            written += words
        return (
            write_segmentation(places) if self._segmentation else None,
            b" ".join(part for part in links if part) if self._alignments else None,
        )


SENTENCES_OF_A_JOB = 200
"""A process with fewer sentences hardly pays for reading the models."""


def usual_jobs(sentences: int) -> int:
    """Return how many processes decode a text by default: the cores, fewer for short texts."""
    return max(1, min(cores(), sentences // SENTENCES_OF_A_JOB))


def embedded_decoder(
    system: System,
    sentences: Sequence[Sentence],
    limits: SearchLimits,
    jobs: int | None,
    first: int = 0,
) -> EmbeddedDecoder | Workers:
    """Return a decoder for the sentences that runs in this process, or in several.

    Args:
        system: the models.
        sentences: the sentences, as tokens.
        limits: the limits of the search.
        jobs: the number of processes; None for `usual_jobs`.
        first: the number of the first sentence in n-best lists; with several processes it is 0.
    """
    jobs = min(jobs or usual_jobs(len(sentences)), len(sentences))
    if jobs > 1:
        return Workers(system, sentences, limits, jobs)
    return EmbeddedDecoder(system, sentences, limits, first)


class Workers:
    """Embedded decoders in several processes; see `Decoder`.

    Raises:
        MosesFeatureError: a process could not read the models.
        LostProcessError: a process ended unexpectedly.
    """

    def __init__(
        self,
        system: System,
        sentences: Sequence[Sentence],
        limits: SearchLimits,
        jobs: int,
    ) -> None:
        self.features: FeatureSet = system.features
        self._workers: list[ObjectProcess] = []
        bounds = [len(sentences) * job // jobs for job in range(jobs + 1)]
        try:
            for first, last in pairwise(bounds):
                mine = list(sentences[first:last])
                make = partial(EmbeddedDecoder, system, mine, limits, first)
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
        """Have each process write its part, then join the parts; see `Decoder`."""
        parts = [path.with_name(f".{path.name}.part-{n}.gz") for n in range(len(self._workers))]
        try:
            done = [
                worker.call(EmbeddedDecoder.write_nbest, features, count, part, report=report)
                for worker, part in zip(self._workers, parts, strict=True)
            ]
            for future in done:
                future.result()
            with whole_file(path) as temporary, temporary.open("wb") as file:
                for part in parts:  # concatenated gzip members are a valid gzip file
                    with part.open("rb") as content:
                        shutil.copyfileobj(content, file)
        except BaseException:
            self.close()  # the processes may still be decoding
            raise
        finally:
            for part in parts:
                part.unlink(missing_ok=True)

    def search_errors(self, features: FeatureSet, count: int) -> SearchErrors:
        """Count search errors among the sentences of the first process; see `Decoder`."""
        return self._workers[0].call(EmbeddedDecoder.search_errors, features, count).result()

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.close()
        self._workers = []
