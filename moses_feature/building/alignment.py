"""Word alignment: a model for each direction (sil-thot), and links made of both.

The heuristic is that of Koehn, Och and Marcu 2003 as `symal.cpp` of Moses has it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moses_feature.building.bitext import Bitext, NumberedText, TextPair, aligned
from moses_feature.building.settings import Aligner
from moses_feature.moses.alignments import PLACES
from moses_feature.runtime.arrays import Flags, Integers
from moses_feature.runtime.compiled import compiled, helper
from moses_feature.runtime.errors import MosesFeatureError, install
from moses_feature.runtime.processes import ObjectProcess

ITERATIONS_OF_FAST_ALIGN = 5
HEURISTIC = "grow-diag-final-and"
NO_LINK = -1
TOGETHER = 10_000


@dataclass(frozen=True)
class Way:
    """A way to align words.

    Attributes:
        aligner: eflomal (Östling and Tiedemann 2016) or fast_align (Dyer et al. 2013).
        seed: of the random numbers of eflomal.
        letters: words are taken for the same if they begin with the same letters, so many; None
            for all letters.
    """

    aligner: Literal["eflomal", "fast-align"]
    seed: int = 0
    letters: int | None = None


SEVERAL = (
    Way("eflomal"),
    Way("eflomal", 1),
    Way("eflomal", 2),
    Way("fast-align"),
    Way("eflomal", letters=5),
)
"""Ways whose phrases are better together: each errs elsewhere. Seeds are added to the given one.
Measured in benchmarks/results/small-corpora.md."""


def ways_of(aligner: Aligner, seed: int) -> list[Way]:
    """Return the ways to align that a user's choice means."""
    ways = SEVERAL if aligner == "several" else (Way(aligner),)
    return [replace(way, seed=way.seed + seed) for way in ways]


class DirectedAligner:
    """Aligns each target word to one source word or none, with a model of sil-thot.

    Args:
        source, target: the texts.
        way: how to align them.
    """

    def __init__(self, source: NumberedText, target: NumberedText, way: Way) -> None:
        from thot.alignment import EflomalAlignmentModel, FastAlignModel

        self._sentences = [list(_numbers(text, way.letters)) for text in (source, target)]
        self._model: Any
        if way.aligner == "eflomal":
            self._model = EflomalAlignmentModel()
            self._model.seed = way.seed
            self._model.deterministic = True
            self._model.emit_training_alignments = True
        else:
            self._model = FastAlignModel()
        self._samples = way.aligner == "eflomal"

    def align(self, report: Callable[[float], None] = lambda _: None) -> NDArray[np.int16]:
        """Train, and return for each target word the place of its source word, or `NO_LINK`.

        Args:
            report: called with further shares of the training.
        """
        model = self._model
        for pair in zip(*self._sentences, strict=True):
            model.add_sentence_pair(*pair)
        model.start_training()
        iterations = model.scheduled_iterations if self._samples else ITERATIONS_OF_FAST_ALIGN
        for _ in range(iterations):
            model.train()
            report(1 / iterations)
        model.end_training()
        return np.array(self._places(), dtype=np.int16) - 1

    def _places(self) -> list[int]:
        """Return the source place, from 1 on, of each target word; 0 for none."""
        places: list[int] = []
        sources, targets = self._sentences
        if self._samples:
            for number in range(len(sources)):
                places += self._model.get_training_alignment(number)[1].to_list()
            return places
        for first in range(0, len(sources), TOGETHER):
            some = slice(first, first + TOGETHER)
            for _, matrix in self._model.get_best_alignments(sources[some], targets[some]):
                places += matrix.to_list()
        return places


def _numbers(text: NumberedText, letters: int | None) -> Iterator[list[str]]:
    """Yield sentences, their words as texts of numbers: the aligner takes no bytes."""
    numbers: dict[str, str] = defaultdict(lambda: str(len(numbers)))
    words = [numbers[word.decode(errors="surrogateescape")[:letters]] for word in text.words]
    ids = text.ids.tolist()
    for first, end in pairwise(text.offsets.tolist()):
        yield [words[word] for word in ids[first:end]]


def align(pair: TextPair, way: Way, report: Callable[[float], None] = lambda _: None) -> Bitext:
    """Align two texts, both directions at the same time in two processes.

    Args:
        pair: the texts.
        way: how to align them.
        report: called with further shares of one direction.

    Raises:
        MosesFeatureError: sil-thot is not installed.
    """
    if find_spec("thot") is None:
        raise MosesFeatureError(
            f"word alignment needs a package: {install('build')} (or give --alignment, links that "
            "are there)"
        )
    workers = [
        ObjectProcess(partial(DirectedAligner, source, target, way), "a word aligner")
        for source, target in ((pair.source, pair.target), (pair.target, pair.source))
    ]
    try:
        forward, backward = workers
        waiting = [
            forward.call(DirectedAligner.align, report=report),
            backward.call(DirectedAligner.align),
        ]
        of_target, of_source = (future.result() for future in waiting)
    finally:
        for worker in workers:
            worker.close()
    return symmetrised(pair, of_target, of_source)


def symmetrised(
    pair: TextPair,
    of_target: NDArray[np.int16],
    of_source: NDArray[np.int16],
) -> Bitext:
    """Return the texts with links: those of both directions, joined by grow-diag-final-and.

    Args:
        pair: the texts.
        of_target: (target words,) the place of the source word of each target word, or `NO_LINK`.
        of_source: (source words,) that of the target word of each source word.
    """
    links = np.empty(len(of_target) + len(of_source), dtype=np.int64)
    offsets = np.zeros(len(pair.source) + 1, dtype=np.int64)
    _symmetrise(pair.source.offsets, pair.target.offsets, of_target, of_source, links, offsets)
    return aligned(pair, links[: offsets[-1]], offsets)


@compiled
def _symmetrise(  # the loops over a matrix
    source_offsets: Integers,
    target_offsets: Integers,
    of_target: NDArray[np.int16],
    of_source: NDArray[np.int16],
    links: Integers,
    offsets: Integers,
) -> None:
    """Write the links of all sentences, in the order of target and then source words."""
    count = 0
    for sentence in range(len(offsets) - 1):
        a = of_source[source_offsets[sentence] : source_offsets[sentence + 1]]
        b = of_target[target_offsets[sentence] : target_offsets[sentence + 1]]
        linked = np.zeros((len(b), len(a)), np.bool_)
        source_done, target_done = np.zeros(len(a), np.bool_), np.zeros(len(b), np.bool_)
        for source in range(len(a)):
            target = a[source]
            if target != NO_LINK and b[target] == source:
                linked[target, source] = source_done[source] = target_done[target] = True
        _grow(a, b, linked, source_done, target_done)
        _add_lonely(a, b, linked, source_done, target_done)
        for target in range(len(b)):
            for source in range(len(a)):
                if linked[target, source]:
                    links[count] = (target << PLACES) + source
                    count += 1
        offsets[sentence + 1] = count


@helper(inline=False)
def _grow(
    a: NDArray[np.int16],
    b: NDArray[np.int16],
    linked: Flags,
    source_done: Flags,
    target_done: Flags,
) -> None:
    """Add links of one direction beside links, while one of their words has none.

    A link that is added is grown from in the same pass if it stands behind the current one.
    """
    steps = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
    added = True
    while added:
        added = False
        for target in range(len(b)):
            for source in range(len(a)):
                if not linked[target, source]:
                    continue
                for down, right in steps:
                    t, s = target + down, source + right
                    if not (0 <= t < len(b) and 0 <= s < len(a)):
                        continue
                    if (b[t] == s or a[s] == t) and not (target_done[t] and source_done[s]):
                        linked[t, s] = target_done[t] = source_done[s] = True
                        added = True


@helper(inline=False)
def _add_lonely(
    a: NDArray[np.int16],
    b: NDArray[np.int16],
    linked: Flags,
    source_done: Flags,
    target_done: Flags,
) -> None:
    """Add links of one direction between words that have none, first those of target words."""
    for target in range(len(b)):
        source = b[target]
        if source != NO_LINK and not (target_done[target] or source_done[source]):
            linked[target, source] = target_done[target] = source_done[source] = True
    for target in range(len(b)):
        for source in range(len(a)):
            if a[source] == target and not (target_done[target] or source_done[source]):
                linked[target, source] = target_done[target] = source_done[source] = True
