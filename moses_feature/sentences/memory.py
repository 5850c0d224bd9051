"""What a sentence network remembers of a text, beside what its weights know; free of torch.

For each sentence to translate or to score, the most similar sentences of the text are found, and
the network reads and writes these with their translations. Its states there, and the words that
followed them, take part in each word's probability: see `networks.recall`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from moses_feature.networks.phrases import Phrases
from moses_feature.networks.recall import Remembered
from moses_feature.networks.vocabulary import END
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json, whole_file
from moses_feature.runtime.json_files import member, parse_json
from moses_feature.sentences.similar import SimilarSentences

SENTENCES = 32
"""Similar sentences that are remembered for one; twice as many take twice as long, and are better
by 0.01 nats a word on laws."""
TEMPERATURE = 0.11
"""T in units of the states' variance: best on captions, and on laws."""
PAIRS_FOR_VARIANCE = 256
TOGETHER = 64
"""Pairs whose states are computed together."""
MOST_STATES = 1 << 20
"""States that are kept: half a GB with 128 units."""
SIDES = "source", "target"
WHAT = "the memory of a network"


@dataclass(frozen=True)
class RememberedText:
    """The pairs of a text, as a network reads and writes them.

    Attributes:
        source, target: ids.
        temperature: see `networks.recall`.
        inputs: where the text comes from.
    """

    source: Phrases
    target: Phrases
    temperature: float
    inputs: list[Json]

    def save(self, path: Path) -> None:
        """Write a file of two texts."""
        arrays: dict[str, NDArray[Any]] = {
            "source": self.source.ids.astype(np.uint32),
            "source_offsets": self.source.offsets,
            "target": self.target.ids.astype(np.uint32),
            "target_offsets": self.target.offsets,
        }
        facts = {"temperature": self.temperature, "inputs": self.inputs}
        with whole_file(path) as temporary:
            save_file(arrays, temporary, {WHAT: json.dumps(facts)})

    @classmethod
    def load(cls, path: Path) -> RememberedText:
        """Read what `save` wrote.

        Raises:
            FormatError: the file is damaged.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                facts = parse_json((file.metadata() or {}).get(WHAT, ""), path, WHAT)
                sides = [_side(file, name) for name in SIDES]
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise FormatError(path, WHAT, f"a damaged file ({error})") from error
        source, target = sides
        if len(source) != len(target) or not len(source):
            raise FormatError(path, f"{WHAT}, of pairs", f"{len(source)} and {len(target)}")
        temperature = member(facts, "temperature", float, path, WHAT)
        if not 0 < temperature < np.inf:
            raise FormatError(path, "a temperature above 0", f"{temperature}")
        return cls(source, target, temperature, member(facts, "inputs", list[Json], path, WHAT))


def _side(file: Any, name: str) -> Phrases:
    ids, offsets = file.get_tensor(name), file.get_tensor(f"{name}_offsets")
    good = ids.ndim == offsets.ndim == 1 and len(offsets) and not offsets[0]
    if not good or offsets[-1] != len(ids) or (np.diff(offsets) < 0).any():
        raise ValueError(f"{name}: bad offsets")
    return Phrases(ids, offsets.astype(np.int64))


class Memory:
    """Finds what a network remembers; thread-safe.

    Args:
        text: the text.
        network: the network, without a memory.
    """

    def __init__(self, text: RememberedText, network: Any) -> None:
        self._text = text
        self._network = network
        self._similar = SimilarSentences(text.source)
        self._known: dict[int, Floats32] = {}
        self._held = 0
        self._lock = Lock()

    def recall(self, sentences: Sequence[Sequence[int]]) -> list[Remembered]:
        """Return what is remembered for source sentences, given by ids."""
        of_sentences = [self._similar.find(sentence, SENTENCES) for sentence in sentences]
        states = self._states(np.unique(np.concatenate([*of_sentences, np.array([], np.int64)])))
        return [self._remembered(rows, states) for rows in of_sentences]

    def _remembered(self, rows: Integers, states: dict[int, Floats32]) -> Remembered:
        nothing = np.empty((0, self._network.softmax.units), dtype=np.float32)
        of_rows = np.concatenate([nothing, *(states[row] for row in rows.tolist())])
        return Remembered(of_rows, with_ends(self._text.target.some(rows)), self._text.temperature)

    def _states(self, rows: Integers) -> dict[int, Floats32]:
        """Return the states (words + 1, D) of pairs."""
        with self._lock:
            found = {row: self._known[row] for row in rows.tolist() if row in self._known}
        missing = np.array([row for row in rows.tolist() if row not in found], dtype=np.int64)
        missing = missing[np.argsort(self._text.target.lengths(missing), kind="stable")]
        new: dict[int, Floats32] = {}
        for first in range(0, len(missing), TOGETHER):
            some = missing[first : first + TOGETHER]
            source, target = self._text.source.some(some), self._text.target.some(some)
            behind = target.offsets + np.arange(len(some) + 1)
            of_pairs = np.split(self._network.features(source, target), behind[1:-1])
            new.update(zip(some.tolist(), of_pairs, strict=True))
        self._keep(new)
        return found | new

    def _keep(self, states: dict[int, Floats32]) -> None:
        """Keep states, and forget the oldest ones when there are too many."""
        with self._lock:
            for row, of_pair in states.items():
                if row not in self._known:
                    self._known[row] = of_pair
                    self._held += len(of_pair)
            while self._held > MOST_STATES:
                self._held -= len(self._known.pop(next(iter(self._known))))


def with_ends(phrases: Phrases) -> Integers:
    """Return the words of phrases, END behind each."""
    places = phrases.offsets[1:] + np.arange(len(phrases))
    words = np.full(len(phrases.ids) + len(phrases), END)
    inside = np.ones(len(words), dtype=np.bool_)
    inside[places] = False
    words[inside] = phrases.ids
    return words


def temperature_of(source: Phrases, target: Phrases, network: Any) -> float:
    """Return the temperature that is right for a network, from its states in some of the pairs."""
    rows = np.unique(np.linspace(0, len(source) - 1, PAIRS_FOR_VARIANCE).astype(np.int64))
    states = network.features(source.some(rows), target.some(rows)).astype(np.float64)
    return TEMPERATURE * float(((states - states.mean(0)) ** 2).sum(1).mean())
