"""What a sentence network remembers of a text, in addition to its weights; free of torch.

For each sentence to translate or to score, the most similar sentences of the text are found, and
the network reads and writes these with their translations. Its states there, and the words that
followed them, take part in each word's probability: see `networks.datastores`.
"""

from __future__ import annotations

import hashlib
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

from moses_feature.networks.datastores import Datastore
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json, whole_file
from moses_feature.runtime.json_files import member, parse_json
from moses_feature.sentences.similar import SimilarSentences

SENTENCES = 32
"""Similar sentences that take part; 64 are better by 0.01 nats a word on laws, and cost twice."""
TEMPERATURE = 0.11
"""T in units of the variance of the states: best on captions, and on laws."""
LEAST_TEMPERATURE = 1e-20
"""It and its inverse are numbers in float32, far from what networks have."""
PAIRS_FOR_VARIANCE = 256
"""Of the text, from which the variance is estimated."""
TOGETHER = 16
"""Pairs whose states are computed together."""
MOST_STATES = 1 << 20
"""States that are kept: half a GB with 128 units."""
WHAT = "the memory of a network"


@dataclass(frozen=True)
class RememberedText:
    """The pairs of a text, as a network reads and writes them.

    Attributes:
        source, target: ids, uint32.
        temperature: T; see `networks.datastores`.
        network: the digest of the network without a memory.
        inputs: where the text comes from.
    """

    source: PackedSequences
    target: PackedSequences
    temperature: float
    network: str
    inputs: list[Json]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "source": self.source.ids,
            "source_offsets": self.source.offsets,
            "target": self.target.ids,
            "target_offsets": self.target.offsets,
        }

    def digest(self) -> str:
        """Return the SHA-256 of everything that determines scores."""
        hashed = hashlib.sha256(f"{self.network} {self.temperature!r}".encode())
        for array in self._arrays().values():
            hashed.update(array.tobytes())
        return hashed.hexdigest()

    def save(self, path: Path) -> None:
        """Write the text and the facts about it."""
        facts = {name: getattr(self, name) for name in ("temperature", "network", "inputs")}
        with whole_file(path) as temporary:
            save_file(self._arrays(), temporary, {WHAT: json.dumps(facts)})

    @classmethod
    def load(cls, path: Path) -> RememberedText:
        """Read what `save` wrote.

        Raises:
            FormatError: the file is damaged.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                facts = parse_json((file.metadata() or {}).get(WHAT, ""), path, WHAT)
                source, target = (_side(file, name) for name in ("source", "target"))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise FormatError(path, WHAT, f"a damaged file ({error})") from error
        if len(source) != len(target) or not len(source):
            raise FormatError(path, f"{WHAT}, of pairs", f"{len(source)} and {len(target)}")
        temperature = member(facts, "temperature", float, path, WHAT)
        if not LEAST_TEMPERATURE <= temperature <= 1 / LEAST_TEMPERATURE:
            raise FormatError(path, "a temperature above 0", f"{temperature}")
        network = member(facts, "network", str, path, WHAT)
        inputs = member(facts, "inputs", list[Json], path, WHAT)
        return cls(source, target, temperature, network, inputs)


def _side(file: Any, name: str) -> PackedSequences:
    ids, offsets = file.get_tensor(name), file.get_tensor(f"{name}_offsets")
    good = ids.dtype == np.uint32 and offsets.dtype == np.int64 and ids.ndim == offsets.ndim == 1
    good = good and len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(ids)
    if not good or (np.diff(offsets) < 1).any():
        raise ValueError(f"bad ids or offsets of the {name}")
    return PackedSequences(ids, offsets)


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

    def datastores(self, sentences: Sequence[Sequence[int]]) -> list[Datastore]:
        """Return the datastores of source sentences, given by ids."""
        of_sentences = [self._similar.find(sentence, SENTENCES) for sentence in sentences]
        states = self._states(np.unique(np.concatenate([*of_sentences, np.array([], np.int64)])))
        return [self._datastore(rows, states) for rows in of_sentences]

    def _datastore(self, rows: Integers, states: dict[int, Floats32]) -> Datastore:
        nothing = np.empty((0, self._network.softmax.units), dtype=np.float32)
        of_rows = np.concatenate([nothing, *(states[row] for row in rows.tolist())])
        target = self._text.target.some(rows)
        words = np.insert(target.ids.astype(np.int64), target.offsets[1:], END)
        return Datastore(of_rows, words, self._text.temperature)

    def _states(self, rows: Integers) -> dict[int, Floats32]:
        """Return the states (words + 1, D) of pairs."""
        with self._lock:
            found = {row: self._known[row] for row in rows.tolist() if row in self._known}
        missing = np.array([row for row in rows.tolist() if row not in found], dtype=np.int64)
        missing = missing[np.argsort(self._text.target.lengths(missing), kind="stable")]
        of_pairs = states_of(self._network, self._text.source, self._text.target, missing)
        new = dict(zip(missing.tolist(), of_pairs, strict=True))
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


def states_of(
    network: Any, source: PackedSequences, target: PackedSequences, rows: Integers
) -> list[Floats32]:
    """Return the features (words + 1, D) before each word, and before END, of some pairs."""
    found: list[Floats32] = []
    for first in range(0, len(rows), TOGETHER):
        some = rows[first : first + TOGETHER]
        written = target.some(some)
        behind = written.offsets[1:] + np.arange(1, len(some) + 1)
        found += np.split(network.features(source.some(some), written), behind[:-1])
    return found


def temperature_of(source: PackedSequences, target: PackedSequences, network: Any) -> float:
    """Return the temperature that is right for a network, from its states in some of the pairs."""
    rows = np.unique(np.linspace(0, len(source) - 1, PAIRS_FOR_VARIANCE).astype(np.int64))
    states = np.concatenate(states_of(network, source, target, rows)).astype(np.float64)
    return TEMPERATURE * float(((states - states.mean(0)) ** 2).sum(1).mean())
