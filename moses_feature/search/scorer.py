"""RNNsearch as a scorer of sentence pairs; free of torch.

Many targets of one source share its encoder and their prefixes; many sources of one target, as a
network of the other direction has them, are encoded and read side by side.

A context is a mean of annotations, so that its product with a matrix is the mean of theirs. They
are computed once for each source word.

A state of the decoder follows from the words up to the last but one, so that prefixes that differ
in their last word alone share it, its alignment and its context.

Axes: P source positions of all sentences, N prefixes of as many words, M states of the decoder
before their last words, H hidden units, A alignment units, S maxout units, V target words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moses_feature.arrays import Floats, Floats32, Integers
from moses_feature.errors import FormatError
from moses_feature.files import Json
from moses_feature.json_files import member
from moses_feature.models.files import CONFIG, WEIGHTS, check_weights, read_model_files
from moses_feature.models.phrases import Phrases
from moses_feature.models.reading import Reading
from moses_feature.models.sizes import SEARCH_ARCHITECTURE, SearchSizes
from moses_feature.models.vocabulary import END, Vocabulary
from moses_feature.moses.words import WordOptions
from moses_feature.scoring.kernels import (
    add_exps,
    encoder_gates,
    encoder_state,
    logits_at,
)
from moses_feature.scoring.prefix_tree import prefix_levels
from moses_feature.search.kernels import align, expect
from moses_feature.search.products import ROWS, Matrix, blocks_of

SOURCE_VOCABULARY, TARGET_VOCABULARY = "source.vocab", "target.vocab"
NO_LOGIT = -1e30

Ids = Sequence[int]


@dataclass(frozen=True)
class Sources:
    """Source sentences as the decoder needs them: products of the annotations h.

    Attributes:
        keys: (P, A) U_a h.
        values: (P, 3 H + 2 S) C_z h, C_r h, C h, then C_o h.
        offsets: (sources + 1,) where those of each sentence begin.
        start: (sources, H) the first states of the decoder.
    """

    keys: Floats32
    values: Floats32
    offsets: Integers
    start: Floats32


@dataclass(frozen=True)
class States:
    """States of the decoder, and what they are aligned to.

    Attributes:
        states: (M, H).
        source: (M,) the sentence that each reads.
        alignments: (M, longest source) as far as the source of each goes.
        contexts: (M, 3 H + 2 S) C_z c, C_r c, C c, then C_o c of the contexts c.
    """

    states: Floats32
    source: Integers
    alignments: Floats32
    contexts: Floats32


class SearchScorer:
    """Scores sentence pairs: natural logs of p(target | source), END included.

    Attributes:
        source, target: the vocabularies of what the network reads and writes.
        words, escaped: how tokens become words; see `PhraseModel`.
        reading: the direction in which pairs are read and written.
        training: settings, results and provenance.
        digest: SHA-256 of all that decides the scores.
        target_embedding: (V, E).

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """

    def __init__(self, directory: Path) -> None:
        names = SOURCE_VOCABULARY, TARGET_VOCABULARY
        keys = "sizes", "words", "training"
        files = read_model_files(directory, SEARCH_ARCHITECTURE, keys, names)
        path = directory / CONFIG
        try:
            sizes = SearchSizes(**files.config["sizes"])
            self.words = WordOptions(**files.config["words"])
        except (TypeError, ValueError) as error:
            raise FormatError(path, "sizes and words", f"{error}") from error
        self.source, self.target = (files.vocabularies[name] for name in names)
        shapes = _shapes(sizes, self.source, self.target)
        check_weights(directory / WEIGHTS, files.weights, shapes)
        self.escaped: bool = member(files.config, "escaped", bool, path, "a model")
        self.reading = Reading.of_config(files.config, path)
        self.training: Json = files.config["training"]
        self.digest = files.digest("sizes", "words", "escaped")
        self._sizes = sizes
        self._biases = {n: array for n, array in files.weights.items() if array.ndim == 1}
        matrices = {
            name.removesuffix(".weight"): array
            for name, array in files.weights.items()
            if array.ndim > 1 and "embedding" not in name
        }
        self._energy = matrices.pop("alignment_energy")[0]
        self._output = matrices["output_words"]  # (V, S)
        of_annotations = "decoder_context", "maxout_context"
        matrices["values"] = np.vstack([matrices.pop(name) for name in of_annotations])
        self._matrices = {name: Matrix(array.T) for name, array in matrices.items()}
        self._source_embedding = files.weights["source_embedding.weight"]
        self.target_embedding = files.weights["target_embedding.weight"]

    @property
    def seed(self) -> int | None:
        """The seed that it was trained with, if that is known."""
        settings = self.training.get("settings")
        seed = settings.get("seed") if isinstance(settings, dict) else None
        return seed if isinstance(seed, int) else None

    def ids(self, source: Sequence[bytes], target: Sequence[bytes]) -> tuple[list[int], list[int]]:
        """Return the ids of a pair as the network reads and writes it."""
        read, written = self.reading.sides(source, target)
        return self.source.ids(read), self.target.ids(written)

    def log_probs(self, pairs: Sequence[tuple[Ids, Ids]]) -> Floats:
        """Return log p (n,) of pairs of ids, as `ids` gives them."""
        return np.array([of_words.sum() for of_words in self.word_log_probs(pairs)])

    def word_log_probs(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[Floats]:
        """Return log p of the target words of each pair, END last."""
        if not pairs:
            return []
        index: dict[tuple[int, ...], int] = {}
        roots = np.array([index.setdefault(tuple(source), len(index)) for source, _ in pairs])
        sources = self.encode(list(index))
        targets = Phrases.pack([target for _, target in pairs])
        inputs = Inputs(self, targets.ids)
        found = np.zeros(len(targets.ids) + len(pairs))
        begin = targets.offsets[:-1] + np.arange(len(pairs))  # of each pair's words and END
        states = self.align(sources.start, np.arange(len(index)), sources)
        state, last = np.arange(len(index)), np.full(len(index), END)
        for position, level in enumerate(prefix_levels(targets, roots)):
            features = self.features(states, state, inputs, last)
            scores = self.log_probs_at(features, level.parent, level.word)
            found[begin[level.rows] + position] = scores[level.edge_of_row]
            going_on, parent = np.unique(level.parent[level.grows], return_inverse=True)
            states = self.next_states(states, state[going_on], inputs, last[going_on], sources)
            state, last = parent, level.word[level.grows]
        return np.split(found, begin[1:])

    def encode(self, sentences: Sequence[Ids]) -> Sources:
        """Read source sentences."""
        hidden, count = self._sizes.hidden, len(sentences)
        lengths = np.array([len(sentence) for sentence in sentences])
        offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
        padded, _ = Phrases.pack(sentences).padded(np.arange(count), END)
        distinct, word = np.unique(padded, return_inverse=True)
        word = word.reshape(padded.shape)
        embedded = self._source_embedding[distinct]
        annotations = np.empty((offsets[-1], 2 * hidden), dtype=np.float32)
        for side, name in enumerate(("forward", "backward")):
            inputs = self.product(f"{name}_input", embedded)
            state = np.zeros((count, hidden), dtype=np.float32)
            for step in range(padded.shape[1]):
                # Backward from the END of each sentence; rows that are done go on for nothing.
                place = np.full(count, step) if side == 0 else np.maximum(lengths - step, 0)
                self._recur(name, inputs, word[np.arange(count), place], state)
                real = step <= lengths
                columns = slice(side * hidden, (side + 1) * hidden)
                annotations[(offsets[:-1] + place)[real], columns] = state[real]
        first = annotations[offsets[:-1], hidden:]
        start = np.tanh(self.product("decoder_start", first))
        keys, values = (
            self.product(name, annotations) for name in ("alignment_annotation", "values")
        )
        return Sources(keys, values, offsets, start)

    def align(self, states: Floats32, source: Integers, sources: Sources) -> States:
        """Align states (M, H) with the sources (M,) that they read."""
        queries = self.product("alignment_state", states)
        longest = int(np.diff(sources.offsets).max())
        alignments = np.zeros((len(states), longest), dtype=np.float32)
        align(queries, sources.keys, self._energy, source, sources.offsets, alignments)
        contexts = np.empty((len(states), sources.values.shape[1]), dtype=np.float32)
        expect(alignments, sources.values, source, sources.offsets, contexts)
        return States(states, source, alignments, contexts)

    def features(self, states: States, state: Integers, inputs: Inputs, last: Integers) -> Floats32:
        """Return what the output layer reads (N, S) after prefixes.

        Args:
            states: all of them.
            state: (N,) the state of each prefix.
            inputs: of the words.
            last: (N,) the last words.
        """
        pieces = self.product("maxout_state", states.states)
        pieces += states.contexts[:, 3 * self._sizes.hidden :]
        of_prefix = pieces[state] + inputs.of_maxout[inputs.rows(last)]  # (N, 2 S)
        features: Floats32 = np.maximum(of_prefix[:, 0::2], of_prefix[:, 1::2])
        return features

    def next_states(
        self, states: States, state: Integers, inputs: Inputs, last: Integers, sources: Sources
    ) -> States:
        """Return the states (N) that follow from prefixes: from their states and last words."""
        after = states.states[state]
        of_words = inputs.of_state[inputs.rows(last)]
        of_words += states.contexts[state, : 3 * self._sizes.hidden]
        self._recur("decoder", of_words, np.arange(len(after)), after)
        return self.align(after, states.source[state], sources)

    def log_probs_at(self, features: Floats32, row: Integers, word: Integers) -> Floats:
        """Return log p (n,) of words, each of which follows a row of features (N, S)."""
        logits = np.empty(len(row), dtype=np.float32)
        bias = self._biases["output_words.bias"]
        logits_at(features, self._output, bias, row, word, logits)
        return logits.astype(np.float64) - self._log_sums(features)[row]

    def all_log_probs(self, features: Floats32) -> Floats:
        """Return log p (N, V) of all words after features (N, S)."""
        logits = self.product("output_words", features).astype(np.float64)
        logits -= self._log_sums(features)[:, None]
        return logits

    def _recur(self, name: str, inputs: Floats32, word: Integers, state: Floats32) -> None:
        """Put the next states in the place of states (n, H), after words with rows of inputs."""
        gates = self.product(f"{name}_gates", state)
        reset = np.empty_like(state)
        encoder_gates(gates, inputs, word, state, reset)
        candidate = self.product(f"{name}_candidate", reset)
        encoder_state(gates, candidate, inputs, word, state)

    def product(self, name: str, x: Floats32) -> Floats32:
        """Return the product of rows and a matrix, and its bias if it has one."""
        product = self._matrices[name].product(x)
        bias = self._biases.get(f"{name}.bias")
        if bias is not None:
            product += bias
        return product

    def _log_sums(self, features: Floats32) -> Floats:
        """Return the logarithms of the sums of exp(logit) over all words (N,)."""
        blocks = blocks_of(features)
        rows = len(blocks) * ROWS
        top, total = np.full(rows, NO_LOGIT, dtype=np.float32), np.zeros(rows, dtype=np.float32)
        for part, columns in self._matrices["output_words"].parts:
            logits = np.matmul(blocks, part).reshape(rows, -1)
            add_exps(logits, self._biases["output_words.bias"][columns], top, total)
        sums: Floats = np.log(total.astype(np.float64)) + top.astype(np.float64)
        return sums[: len(features)]


class Inputs:
    """The products of the embeddings of some words, each computed once.

    Attributes:
        of_state: (words, 3 H) W_z e(y), W_r e(y), W e(y) and the biases.
        of_maxout: (words, 2 S) V_o e(y).
    """

    def __init__(self, scorer: SearchScorer, ids: Integers) -> None:
        distinct = np.union1d(ids.astype(np.int64), [END])
        embedded = scorer.target_embedding[distinct]
        self._row = np.zeros(len(scorer.target), dtype=np.int64)
        self._row[distinct] = np.arange(len(distinct))
        self.of_state = scorer.product("decoder_input", embedded)
        self.of_maxout = scorer.product("maxout_input", embedded)

    def rows(self, words: Integers) -> Integers:
        """Return where the products of words stand."""
        return self._row[words]


def _shapes(
    sizes: SearchSizes, source: Vocabulary, target: Vocabulary
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights of `RnnSearch`."""
    hidden, embedding, alignment, maxout_units = vars(sizes).values()
    shapes: dict[str, tuple[int, ...]] = {
        "source_embedding.weight": (len(source), embedding),
        "target_embedding.weight": (len(target), embedding),
        "decoder_start.weight": (hidden, hidden),
        "decoder_start.bias": (hidden,),
        "alignment_state.weight": (alignment, hidden),
        "alignment_state.bias": (alignment,),
        "alignment_annotation.weight": (alignment, 2 * hidden),
        "alignment_energy.weight": (1, alignment),
        "decoder_context.weight": (3 * hidden, 2 * hidden),
        "maxout_state.weight": (2 * maxout_units, hidden),
        "maxout_state.bias": (2 * maxout_units,),
        "maxout_input.weight": (2 * maxout_units, embedding),
        "maxout_context.weight": (2 * maxout_units, 2 * hidden),
        "output_words.weight": (len(target), maxout_units),
        "output_words.bias": (len(target),),
    }
    for part in ("forward", "backward", "decoder"):
        shapes[f"{part}_input.weight"] = (3 * hidden, embedding)
        shapes[f"{part}_input.bias"] = (3 * hidden,)
        shapes[f"{part}_gates.weight"] = (2 * hidden, hidden)
        shapes[f"{part}_candidate.weight"] = (hidden, hidden)
    return shapes
