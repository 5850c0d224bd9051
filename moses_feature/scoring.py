"""Score many phrase pairs at once: log p(target | source), end-of-phrase included.

Each distinct prefix of the source phrases is encoded once, and each distinct (source phrase,
target prefix) decoded once, level by level of their prefix trees. The products of embeddings are
folded into tables once per model, those of the summary c computed once per source phrase.

All matrix products have the same number of rows, whatever there is to score (the last block is
padded): the numeric library then sums each row in the same order, and the score of a pair does
not depend on the pairs beside it, to the bit.

In the comments: H hidden units, S maxout units, R output rank, V target words, K rows of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moses_feature.model_directory import PhraseModel
from moses_feature.phrase_pairs import Phrases
from moses_feature.prefix_tree import Integers, Level, prefix_levels
from moses_feature.vocabulary import END, UNKNOWN

BLOCK_ROWS = {"cpu": 256, "cuda": 8192}

Words = Sequence[bytes]


@dataclass(frozen=True)
class Scores:
    """Scores of n phrase pairs, natural logs.

    Attributes:
        word_log_probs: (target words + n,) of every target word and END, pair after pair.
        offsets: (n + 1,) where the words of each pair begin.
        log_probs: (n,) log p(target | source), the sum over the words of a pair.
        unknown_source, unknown_target: (n,) words outside the shortlist on either side.
    """

    word_log_probs: NDArray[np.float64]
    offsets: Integers
    log_probs: NDArray[np.float64]
    unknown_source: Integers
    unknown_target: Integers


@dataclass(frozen=True)
class _Nodes:
    """Target prefixes of one length; with the state before it, each gives its own state.

    parent, word, source: (n,) index of the state before, last word, index of the source phrase.
    """

    parent: Integers
    word: Integers
    source: Integers


@dataclass(frozen=True)
class _Sources:
    """What the decoder needs of the distinct source phrases, computed once for each.

    start: (n, H) h'_0; state: (n, 3 H) C_z c, C_r c, C c; maxout: (n, 2 S) O_c c.
    """

    start: Tensor
    state: Tensor
    maxout: Tensor


class Scorer:
    """A model ready to score phrase pairs on a device, in float32."""

    def __init__(self, model: PhraseModel, device: torch.device) -> None:
        network = model.network.to(device)
        self._model = model
        self._device = device
        self._rows = BLOCK_ROWS[device.type]
        self._hidden = network.sizes.hidden
        with torch.no_grad():
            self._encoder_inputs = network.encoder_input(network.source_embedding.weight)
            self._decoder_inputs = network.decoder_input(network.target_embedding.weight)
            self._maxout_inputs = network.maxout_input(network.target_embedding.weight)
            self._maxout_inputs += network.maxout_state.bias
        self._encoder_gates = network.encoder_gates.weight.detach().t()
        self._encoder_candidate = network.encoder_candidate.weight.detach().t()
        self._summary = network.summary
        self._decoder_start = network.decoder_start
        self._decoder_summary = network.decoder_summary.weight.detach().t()
        self._maxout_summary = network.maxout_summary.weight.detach().t()
        self._decoder_state = network.decoder_state.weight.detach().t()
        self._maxout_state = network.maxout_state.weight.detach().t()
        self._output_rank = network.output_rank.weight.detach().t()
        self._output_words = network.output_words.weight.detach().t()
        self._output_bias = network.output_words.bias.detach()
        self._logits = torch.empty(self._rows, len(model.target), device=device)

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> Scores:
        """Score phrase pairs, given as source and target words."""
        source = Phrases.pack([self._model.source.ids(source) for source, _ in pairs])
        target = Phrases.pack([self._model.target.ids(target) for _, target in pairs])
        return self.score_ids(source, target)

    @torch.inference_mode()
    def score_ids(self, source: Phrases, target: Phrases) -> Scores:
        """Score phrase pairs, given as packed word ids."""
        rows = len(source)
        sources, source_of_row = self._encode(source)
        offsets = target.offsets + np.arange(rows + 1)
        word_log_probs = np.empty(offsets[-1])
        log_probs = np.zeros(rows)
        every_source = np.arange(len(sources.start))
        nodes = _Nodes(every_source, np.full(len(every_source), END), every_source)
        states = sources.start
        for position, level in enumerate(prefix_levels(target, source_of_row)):
            states, edge_log_probs = self._decode(nodes, level, states, sources)
            taken = edge_log_probs[level.edge_of_row]
            log_probs[level.rows] += taken
            word_log_probs[offsets[level.rows] + position] = taken
            parent = level.parent[level.grows]
            nodes = _Nodes(parent, level.word[level.grows], nodes.source[parent])
        return Scores(
            word_log_probs, offsets, log_probs, _unknown_words(source), _unknown_words(target)
        )

    def _encode(self, phrases: Phrases) -> tuple[_Sources, Integers]:
        """Encode the distinct phrases, and return which of them each row is."""
        states = torch.zeros(1, self._hidden, device=self._device)
        ended_states: list[Tensor] = []
        phrase_of_row = np.zeros(len(phrases), dtype=np.int64)
        known = 0
        for level in prefix_levels(phrases, np.zeros(len(phrases), dtype=np.int64)):
            new = torch.empty(len(level.word), self._hidden, device=self._device)
            for block, indices in self._blocks(level.parent, level.word):
                parent, word = indices.unbind()
                new[block] = self._encoder_step(states[parent], self._encoder_inputs[word])[
                    : block.stop - block.start
                ]
            grows = level.grows
            number = known + np.cumsum(~grows) - 1
            ended = ~grows[level.edge_of_row]
            phrase_of_row[level.rows[ended]] = number[level.edge_of_row[ended]]
            known += int(np.count_nonzero(~grows))
            on = torch.from_numpy(grows).to(self._device)
            ended_states.append(new[~on])
            states = new[on]
        last_states = torch.cat(ended_states) if ended_states else states[:0]
        return self._summarise(last_states), phrase_of_row

    def _encoder_step(self, state: Tensor, word: Tensor) -> Tensor:
        """Read a word: states (K, H) and the words' products (K, 3 H) give states (K, H)."""
        hidden = self._hidden
        gates = torch.mm(state, self._encoder_gates)
        gates += word[:, : 2 * hidden]
        gates.sigmoid_()
        z, r = gates[:, :hidden], gates[:, hidden:]
        candidate = torch.mm(r * state, self._encoder_candidate)
        candidate += word[:, 2 * hidden :]
        return torch.lerp(candidate.tanh_(), state, z)

    def _summarise(self, states: Tensor) -> _Sources:
        """Compute from the encoder's last states (n, H) all that the decoder needs of them."""
        pieces = []
        for block, (rows,) in self._blocks(np.arange(len(states))):
            c = torch.tanh(self._summary(states[rows]))
            start = torch.tanh(self._decoder_start(c))
            products = (start, c @ self._decoder_summary, c @ self._maxout_summary)
            pieces.append([product[: block.stop - block.start] for product in products])
        if not pieces:
            empty = states.new_empty
            width = self._maxout_inputs.shape[1]
            return _Sources(states, empty(0, 3 * self._hidden), empty(0, width))
        return _Sources(*(torch.cat(parts) for parts in zip(*pieces, strict=True)))

    def _decode(
        self, nodes: _Nodes, level: Level, states: Tensor, sources: _Sources
    ) -> tuple[Tensor, NDArray[np.float64]]:
        """Compute the nodes' states (n, H), and the log probabilities of the edges that leave them.

        Args:
            nodes: target prefixes.
            level: the edges that leave them.
            states: of the nodes before them.
            sources: see there.
        """
        new = torch.empty(len(nodes.word), self._hidden, device=self._device)
        log_probs = torch.empty(len(level.word), device=self._device)
        edge_words = torch.from_numpy(level.word).to(self._device)
        edge_parents = torch.from_numpy(level.parent).to(self._device)
        for block, indices in self._blocks(nodes.parent, nodes.word, nodes.source):
            parent, word, source = indices.unbind()
            state = self._decoder_step(
                states[parent], self._decoder_inputs[word], sources.state[source]
            )
            new[block] = state[: block.stop - block.start]
            pieces = torch.mm(state, self._maxout_state)
            pieces += self._maxout_inputs[word]
            pieces += sources.maxout[source]
            features = torch.mm(torch.unflatten(pieces, 1, (-1, 2)).amax(2), self._output_rank)
            first, last = np.searchsorted(level.parent, (block.start, block.stop))
            edges = slice(int(first), int(last))
            log_probs[edges] = self._log_softmax_at(
                features, edge_parents[edges] - block.start, edge_words[edges]
            )
        return new, log_probs.cpu().numpy().astype(np.float64)

    def _decoder_step(self, state: Tensor, word: Tensor, source: Tensor) -> Tensor:
        """Write a word: (K, H), (K, 3 H), (K, 3 H) give states (K, H)."""
        hidden = self._hidden
        recurrent = torch.mm(state, self._decoder_state)
        recurrent += source
        gates = recurrent[:, : 2 * hidden].add_(word[:, : 2 * hidden]).sigmoid_()
        z, r = gates[:, :hidden], gates[:, hidden:]
        candidate = torch.addcmul(word[:, 2 * hidden :], r, recurrent[:, 2 * hidden :])
        return torch.lerp(candidate.tanh_(), state, z)

    def _log_softmax_at(self, features: Tensor, rows: Tensor, words: Tensor) -> Tensor:
        """Return log p of single words: features (K, R), rows and words (edges,)."""
        logits = torch.addmm(self._output_bias, features, self._output_words, out=self._logits)
        logits -= logits.amax(1, keepdim=True)
        wanted = logits[rows, words]
        return wanted - logits.exp_().sum(1).log_()[rows]

    def _blocks(self, *columns: Integers) -> Iterator[tuple[slice, Tensor]]:
        """Cut columns into blocks of K rows: their slice, and (columns, K) padded with 0."""
        size = len(columns[0])
        padded = np.zeros((len(columns), -(-size // self._rows) * self._rows), dtype=np.int64)
        padded[:, :size] = columns
        indices = torch.from_numpy(padded).to(self._device)
        for start in range(0, size, self._rows):
            block = slice(start, min(start + self._rows, size))
            yield block, indices[:, start : start + self._rows]


def _unknown_words(phrases: Phrases) -> Integers:
    before = np.concatenate([[0], np.cumsum(phrases.ids == UNKNOWN)])
    return np.diff(before[phrases.offsets])
