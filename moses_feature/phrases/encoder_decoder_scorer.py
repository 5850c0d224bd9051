"""Score phrase pairs with an encoder-decoder of gated units on the CPU.

Each distinct prefix of the source phrases is encoded once, and each distinct (source phrase,
target prefix) decoded once, level by level of their prefix trees (`packing.py`), in blocks of a
fixed number of rows (`steps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moses_feature.networks.computation import ROWS, Computation
from moses_feature.networks.phrases import PackedSequences, PrefixLevel
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.encoder_decoder import EncoderDecoder, Summarised
from moses_feature.phrases.packing import PackedPairs
from moses_feature.phrases.steps import FoldedNetwork, Steps
from moses_feature.runtime.arrays import Integers


@dataclass(frozen=True)
class _TargetPrefixes:
    """Target prefixes of one length; each, with the state before it, gives a new state.

    parent, word, source: (n,) index of the state before, last word, index of the source phrase.
    """

    parent: Integers
    word: Integers
    source: Integers


class _Arena:
    """Hands out float32 tensors by name, each in the memory of the last one of that name.

    Allocating new memory can take longer than the computation on it.
    """

    def __init__(self) -> None:
        self._memory: dict[str, Tensor] = {}

    def tensor(self, name: str, rows: int, width: int) -> Tensor:
        """Return an uninitialised tensor (rows, width), valid until its name is used again."""
        memory = self._memory.get(name)
        if memory is None or len(memory) < rows * width:
            self._memory.pop(name, None)
            memory = self._memory[name] = torch.empty(rows * width)
        return memory[: rows * width].view(rows, width)


class EncoderDecoderScorer:
    """Scores phrase pairs with one encoder-decoder on the CPU.

    Args:
        network: the network.
        computation: threads, type of the products, normalisation.
    """

    def __init__(self, network: EncoderDecoder, computation: Computation) -> None:
        self._sizes = network.sizes
        self._network = FoldedNetwork.of(network, computation.dtype, computation.normalised)
        self._executor = computation.executor
        self._arena = _Arena()
        self._steps: SimpleQueue[Steps] = SimpleQueue()
        for _ in range(computation.workers):
            self._steps.put(Steps(self._network, ROWS))
        nothing = PackedSequences.pack([[]])
        self.word_log_probs(PackedPairs.of_ids(nothing, nothing))  # loads compiled functions now

    def word_log_probs(self, pairs: PackedPairs) -> NDArray[np.float64]:
        """Return log p of every target word and END, pair after pair."""
        sources = self._encode(pairs.source_levels)
        word_log_probs = np.empty(pairs.offsets[-1])
        every_source = np.arange(len(sources.start))
        nodes = _TargetPrefixes(every_source, np.full(len(every_source), END), every_source)
        states = sources.start
        for position, level in enumerate(pairs.target_levels):
            # Compute the states after each distinct prefix, and log p of each distinct next word.
            new = self._states(position, len(nodes.word))
            edge_log_probs = self._decode(nodes, level, states, sources, new)
            states = new
            # It is the same for all phrases with this prefix and this word.
            taken = edge_log_probs[level.edge_of_row]
            word_log_probs[pairs.offsets[level.rows] + position] = taken
            # Words lead on to the prefixes of the next level; END does not.
            parent = level.parent[level.grows]
            nodes = _TargetPrefixes(parent, level.word[level.grows], nodes.source[parent])
        return word_log_probs

    def _encode(self, levels: Sequence[PrefixLevel]) -> Summarised:
        """Encode the distinct source phrases, in the order in which they end."""
        phrases = sum(int(np.count_nonzero(~level.grows)) for level in levels)
        last = self._arena.tensor("start", phrases, self._sizes.hidden)
        states = torch.zeros(1, self._sizes.hidden)
        state_of_node = np.zeros(1, dtype=np.int64)
        done = 0
        for depth, level in enumerate(levels):
            new = self._states(depth, len(level.word))

            def encode(steps: Steps, block: slice, indices: Tensor) -> None:
                parent, word = indices
                _fill(new, block, steps.encode(states, parent, word))  # noqa: B023  # done before

            self._for_each_block(encode, state_of_node[level.parent], level.word)
            ended = torch.from_numpy(np.flatnonzero(~level.grows))
            torch.index_select(new, 0, ended, out=last[done : done + len(ended)])
            done += len(ended)
            states, state_of_node = new, np.flatnonzero(level.grows)
        return self._summarise(last)

    def _states(self, depth: int, nodes: int) -> Tensor:
        """Return memory for the states of a level; those of the level before stay valid."""
        return self._arena.tensor(f"states {depth % 2}", nodes, self._sizes.hidden)

    def _summarise(self, states: Tensor) -> Summarised:
        """Turn the encoder's last states (n, H) into the `Summarised` of the decoder."""
        sizes = self._sizes
        sources = Summarised(
            start=states,  # each block overwrites only its own rows
            state=self._arena.tensor("state", len(states), 3 * sizes.hidden),
            maxout=self._arena.tensor("maxout", len(states), 2 * sizes.maxout),
        )

        def summarise(steps: Steps, block: slice, indices: Tensor) -> None:
            part = steps.summarise(states, indices[0])
            _fill(sources.start, block, part.start)
            _fill(sources.state, block, part.state)
            _fill(sources.maxout, block, part.maxout)

        self._for_each_block(summarise, np.arange(len(states)))
        return sources

    def _decode(
        self,
        nodes: _TargetPrefixes,
        level: PrefixLevel,
        states: Tensor,
        sources: Summarised,
        new: Tensor,
    ) -> NDArray[np.float64]:
        """Compute the states of nodes, and the log probabilities of the edges that leave them.

        `states` are those of the nodes before; the nodes' states (n, H) are written to `new`.
        """
        log_probs = torch.empty(len(level.word))
        edge_words = torch.from_numpy(level.word)
        edge_parents = torch.from_numpy(level.parent)

        def decode(steps: Steps, block: slice, indices: Tensor) -> None:
            state, features = steps.decode(states, sources, *indices)
            _fill(new, block, state)
            first, last = np.searchsorted(level.parent, (block.start, block.stop))
            edges = slice(int(first), int(last))
            log_probs[edges] = steps.log_probs(
                features, edge_parents[edges] - block.start, edge_words[edges]
            )

        self._for_each_block(decode, nodes.parent, nodes.word, nodes.source)
        return log_probs.numpy().astype(np.float64)

    def _for_each_block(
        self, work: Callable[[Steps, slice, Tensor], None], *columns: Integers
    ) -> None:
        """Run `work` on blocks of K rows, several blocks at a time.

        Args:
            work: takes the steps, the block's slice, and the columns (columns, K), padded with 0.
            columns: (n,) each.
        """

        @torch.inference_mode()
        def run(block: tuple[slice, Tensor]) -> None:
            steps = self._steps.get()
            try:
                work(steps, *block)
            finally:
                self._steps.put(steps)

        for _ in self._executor.map(run, self._blocks(columns)):
            pass

    def _blocks(self, columns: Sequence[Integers]) -> Iterator[tuple[slice, Tensor]]:
        size = len(columns[0])
        padded = np.zeros((len(columns), -(-size // ROWS) * ROWS), dtype=np.int64)
        padded[:, :size] = columns
        indices = torch.from_numpy(padded)
        for start in range(0, size, ROWS):
            block = slice(start, min(start + ROWS, size))
            yield block, indices[:, start : start + ROWS]


def _fill(whole: Tensor, block: slice, rows: Tensor) -> None:
    whole[block] = rows[: block.stop - block.start]
