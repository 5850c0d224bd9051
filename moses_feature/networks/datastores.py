"""Words that followed similar states in a text, as a part of p(next word); free of torch.

A nearest-neighbour model (Khandelwal et al. 2021, "Nearest neighbor machine translation") of the
states in the translations of similar sentences (Dai et al. 2023, "Simple and scalable nearest
neighbor machine translation"). With d_k the squared distance of state k, w_k the word after it, d
the least of all d_k, and a temperature T:

    p(w) = T / (T + d) * sum over w_k = w of exp(-d_k / T) / sum over k of exp(-d_k / T)
         + d / (T + d) * p_network(w)

All states count, not the nearest alone. The weight T / (T + d) is ours: it needs no tuning.

Axes: N rows of features, K states of a source sentence, D units, V words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from moses_feature.networks.kernels import exp, sum_of
from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.compiled import compiled

F = np.float32
LEAST = F(4e-4)
"""The least d, in units of T: the network keeps a part of p, however near a state is."""


class Datastore:
    """States, and the word that followed each.

    Args:
        states: (K, D) features, inputs of the output layer.
        words: (K,).
        temperature: T.
    """

    def __init__(self, states: Floats32, words: Integers, temperature: float) -> None:
        self.states = states
        self.words = words
        self.temperature = F(temperature)
        self.squares = squares(states)


@dataclass(frozen=True)
class Datastores:
    """The datastores of rows of features.

    Attributes:
        of_source: the datastore of each source sentence.
        source: (N,) the source sentence of each row.
    """

    of_source: Sequence[Datastore]
    source: Integers

    def of(self, row: Integers) -> Datastores:
        """Return those of some of the rows."""
        return Datastores(self.of_source, self.source[row])

    def mix_all(self, features: Floats32, log_probs: Floats) -> None:
        """Change log p (N, V) of all words of the network to those with the datastores."""
        sums = np.zeros(log_probs.shape[1])
        for _, rows, datastore, shares, own in self._shares(features):
            add_shares(shares, datastore.words, own, rows, log_probs, sums)

    def mix_at(self, features: Floats32, row: Integers, word: Integers, log_probs: Floats) -> None:
        """Change log p (n,) of words, each of which follows a row of features."""
        of_asked = self.source[row]
        for source, rows, datastore, shares, own in self._shares(features):
            here = np.flatnonzero(of_asked == source)
            place = np.searchsorted(rows, row[here])
            add_shares_at(shares, datastore.words, own, place, word[here], here, log_probs)

    def _shares(
        self, features: Floats32
    ) -> Iterator[tuple[int, Integers, Datastore, Floats32, Floats32]]:
        """Yield sources, their rows and datastores, the shares (rows, K), and the network's."""
        for source in np.unique(self.source).tolist():
            datastore = self.of_source[source]
            if not len(datastore.words):
                continue
            rows = np.flatnonzero(self.source == source)
            some = features[rows]
            shares, own = some @ datastore.states.T, np.empty(len(rows), dtype=np.float32)
            of_states = datastore.states, datastore.squares, datastore.temperature
            weigh(some, shares, *of_states, own)
            yield source, rows, datastore, shares, own


class FindsDatastores(Protocol):
    """What a network remembers; see `sentences.memory`."""

    def datastores(self, sentences: Sequence[Sequence[int]]) -> list[Datastore]:
        """Return the datastores of source sentences, given by ids."""


class WithMemory:
    """A network that may have a memory.

    Attributes:
        memory: of a text; None without one.
    """

    memory: FindsDatastores | None = None

    def datastores(self, sentences: Sequence[Sequence[int]]) -> Datastores | None:
        """Return the datastores of source sentences, given by ids, a row each."""
        if self.memory is None:
            return None
        return Datastores(self.memory.datastores(sentences), np.arange(len(sentences)))


@compiled(floats="contracted")
def squares(x: Floats32) -> Floats32:
    """Return the sums (n,) of the squares of rows (n, D)."""
    found = np.empty(len(x), dtype=np.float32)
    for row in range(len(x)):
        found[row] = sum_of(x[row] * x[row])
    return found


@compiled(floats="contracted")
def weigh(
    features: Floats32,
    products: Floats32,
    states: Floats32,
    state_squares: Floats32,
    temperature: np.float32,
    own: Floats32,
) -> None:
    """Turn products of rows and states into the states' shares of p; see above.

    The distance of the nearest state is computed from the differences: that of large vectors, from
    squares and a product, is good to some 0.001 only.

    Args:
        features: (N, D) the rows.
        products: (N, K) overwritten by the shares.
        states: (K, D).
        state_squares: (K,).
        temperature: T.
        own: (N,) overwritten by the network's share.
    """
    for row in range(len(products)):
        distances = products[row]  # but for the row's own square
        nearest = 0
        for k in range(len(distances)):
            distances[k] = state_squares[k] - F(2.0) * distances[k]
            if distances[k] < distances[nearest]:
                nearest = k
        first, total = distances[nearest], 0.0
        for k in range(len(distances)):
            distances[k] = exp((first - distances[k]) / temperature)
            total += distances[k]
        differences = features[row] - states[nearest]
        least = max(sum_of(differences * differences), LEAST * temperature)
        factor = F(temperature / (temperature + least) / total)
        for k in range(len(distances)):
            distances[k] *= factor
        own[row] = least / (temperature + least)


@compiled(floats="contracted")
def mixed(log_prob: float, log_own: float, share: float) -> float:
    """Return log p, given that of the network, the log of its share, and the datastore's part."""
    log_prob += log_own
    return np.log(np.exp(log_prob) + share) if share > 0.0 else log_prob


@compiled(floats="contracted")
def add_shares(
    shares: Floats32,
    words: Integers,
    own: Floats32,
    rows: Integers,
    log_probs: Floats,
    sums: Floats,
) -> None:
    """Change log p of all words in some rows; `sums` (V,) are zeros before and after."""
    for place in range(len(rows)):
        of_row, log_own = log_probs[rows[place]], np.log(np.float64(own[place]))
        for k in range(len(words)):
            sums[words[k]] += shares[place, k]
        for word in range(len(of_row)):
            of_row[word] = mixed(of_row[word], log_own, sums[word])
            sums[word] = 0.0


@compiled(floats="contracted")
def add_shares_at(
    shares: Floats32,
    words: Integers,
    own: Floats32,
    place: Integers,
    word: Integers,
    here: Integers,
    log_probs: Floats,
) -> None:
    """Change log p of the words (n,) that stand `here` and follow the rows in some places."""
    for asked in range(len(here)):
        total = 0.0
        for k in range(len(words)):
            if words[k] == word[asked]:
                total += shares[place[asked], k]
        log_own = np.log(np.float64(own[place[asked]]))
        log_probs[here[asked]] = mixed(log_probs[here[asked]], log_own, total)
