"""Words that followed like states in a text, as a part of p(next word); free of torch.

A nearest-neighbour model (Khandelwal et al. 2021, "Nearest neighbor machine translation") of the
states in the translations of similar sentences (Dai et al. 2023, "Simple and scalable nearest
neighbor machine translation"). With d_k the squared distance of state k, the word w_k after it, d
the least of all d_k, and a temperature T:

    p(w) = T / (T + d) * sum over w_k = w of exp(-d_k / T) / sum over k of exp(-d_k / T)
         + d / (T + d) * p_network(w)

Axes: N rows of features, K states of a source sentence, D units, V words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from moses_feature.networks.kernels import exp, sum_of
from moses_feature.networks.products import Matrix
from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.compiled import exact

F = np.float32
LEAST = F(1e-3)
"""The least squared distance: the network keeps a part of p, whatever is remembered."""


class Remembered:
    """States, and the word that followed each.

    Args:
        states: (K, D) features, inputs of the output layer.
        words: (K,).
        temperature: see above.
    """

    def __init__(self, states: Floats32, words: Integers, temperature: float) -> None:
        self.words = words
        self.temperature = F(temperature)
        self.matrix = Matrix(np.ascontiguousarray(states.T))
        self.squares = squares(states)


class Remembers(Protocol):
    """Finds what is remembered for sentences."""

    def recall(self, sentences: Sequence[Sequence[int]]) -> list[Remembered]:
        """Return what is remembered for source sentences, given by ids."""


class WithMemory:
    """A network that may have a memory.

    Attributes:
        memory: of a text; None without one.
    """

    memory: Remembers | None = None

    def recall(self, sentences: Sequence[Sequence[int]]) -> Recall | None:
        """Return what is remembered for source sentences, given by ids, a row each."""
        if self.memory is None:
            return None
        return Recall(self.memory.recall(sentences), np.arange(len(sentences)))


@dataclass(frozen=True)
class Recall:
    """What is remembered for rows of features.

    Attributes:
        remembered: for each source sentence.
        source: (N,) the source sentence of each row.
    """

    remembered: Sequence[Remembered]
    source: Integers

    def of(self, row: Integers) -> Recall:
        """Return what is remembered for some of the rows."""
        return Recall(self.remembered, self.source[row])

    def mix_all(self, features: Floats32, log_probs: Floats) -> None:
        """Change log p (N, V) of all words of the network to those with what is remembered."""
        sums = np.zeros(log_probs.shape[1])
        for rows, found, shares, own in self._shares(features):
            of_rows = log_probs[rows]
            add_shares(shares, found.words, own, of_rows, sums)
            log_probs[rows] = of_rows

    def mix_at(self, features: Floats32, row: Integers, word: Integers, log_probs: Floats) -> None:
        """Change log p (n,) of words, each of which follows a row of features."""
        for rows, found, shares, own in self._shares(features):
            place = np.searchsorted(rows, row)
            here = np.flatnonzero(rows[np.minimum(place, len(rows) - 1)] == row)
            of_words = log_probs[here]
            add_shares_at(shares, found.words, own, place[here], word[here], of_words)
            log_probs[here] = of_words

    def _shares(
        self, features: Floats32
    ) -> Iterator[tuple[Integers, Remembered, Floats32, Floats32]]:
        """Yield the rows of each source, its states, their shares (rows, K), and the network's."""
        for source in np.unique(self.source):
            found = self.remembered[source]
            if not len(found.words):
                continue
            rows = np.flatnonzero(self.source == source)
            some = features[rows]
            shares, own = found.matrix.product(some), np.empty(len(rows), dtype=np.float32)
            weigh(shares, squares(some), found.squares, found.temperature, own)
            yield rows, found, shares, own


@exact
def squares(x: Floats32) -> Floats32:
    """Return the sums (n,) of the squares of rows (n, D)."""
    found = np.empty(len(x), dtype=np.float32)
    for row in range(len(x)):
        found[row] = sum_of(x[row] * x[row])
    return found


@exact
def weigh(
    products: Floats32,
    of_rows: Floats32,
    of_states: Floats32,
    temperature: np.float32,
    own: Floats32,
) -> None:
    """Turn products of rows and states into the states' shares of p; see above.

    Args:
        products: (N, K) overwritten by the shares.
        of_rows: (N,) squares.
        of_states: (K,) squares.
        temperature: T.
        own: (N,) overwritten by the network's share.
    """
    for row in range(len(products)):
        distances = products[row]
        least = F(np.inf)
        for k in range(len(distances)):
            distance = of_rows[row] - F(2.0) * distances[k] + of_states[k]
            distances[k] = max(distance, LEAST)
            least = min(least, distances[k])
        total = 0.0
        for k in range(len(distances)):
            distances[k] = exp((least - distances[k]) / temperature)
            total += distances[k]
        factor = F(temperature / (temperature + least) / total)
        for k in range(len(distances)):
            distances[k] *= factor
        own[row] = least / (temperature + least)


@exact
def add_shares(
    shares: Floats32, words: Integers, own: Floats32, log_probs: Floats, sums: Floats
) -> None:
    """Change log p (N, V) of the network; `sums` (V,) are zeros before and after."""
    for row in range(len(shares)):
        log_own = np.log(np.float64(own[row]))
        for word in range(log_probs.shape[1]):
            log_probs[row, word] += log_own
        for k in range(len(words)):
            sums[words[k]] += shares[row, k]
        for k in range(len(words)):
            word = words[k]
            if sums[word] > 0.0:
                log_probs[row, word] = np.log(np.exp(log_probs[row, word]) + sums[word])
                sums[word] = 0.0


@exact
def add_shares_at(
    shares: Floats32,
    words: Integers,
    own: Floats32,
    row: Integers,
    word: Integers,
    log_probs: Floats,
) -> None:
    """Change log p (n,) of the network for words (n,) after rows (n,)."""
    for place in range(len(word)):
        total = 0.0
        for k in range(len(words)):
            if words[k] == word[place]:
                total += shares[row[place], k]
        of_network = np.exp(log_probs[place]) * own[row[place]]
        log_probs[place] = np.log(of_network + total)
