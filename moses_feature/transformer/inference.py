"""The Transformer as a scorer of pairs and a writer of translations; free of torch.

The targets of a source share its encoder and their common prefixes. A prefix is a node of a tree;
what its last word looks at are the nodes on the way to it, whose keys and values are kept.

Axes: P source positions of all sentences, N prefixes of as many words, D units, V target words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moses_feature.networks.kernels import softmax, sum_of
from moses_feature.networks.phrases import EdgesBelow, PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_softmax import WordSoftmax
from moses_feature.phrases.generation.prefixes import Prefixes
from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.hash_table import copy
from moses_feature.transformer.settings import TransformerSizes, waves

F = np.float32
EPSILON = F(1e-5)
"""Added to variances; PyTorch's default."""
FIRST_PLACES = 128
"""Positions whose encoding is computed at first."""
PARTS = "queries", "keys", "values"


@compiled(floats="contracted")
def attend(
    queries: Floats32,
    keys: Floats32,
    values: Floats32,
    places: Integers,
    counts: Integers,
    heads: int,
    found: Floats32,
) -> None:
    """Write the means of values under the attention of each head (section 3.2).

    Args:
        queries: (n, D) of all heads, side by side.
        keys: (m, D).
        values: (m, D).
        places: (n, most) the keys that each query is compared with.
        counts: (n,) their numbers.
        heads: the number of heads.
        found: (n, D), overwritten.
    """
    units = queries.shape[1]
    width = units // heads
    scale = F(1.0 / math.sqrt(width))
    products = np.empty(units, dtype=np.float32)
    shares = np.empty((heads, places.shape[1]), dtype=np.float32)
    for row in range(len(queries)):
        query, mean, count = queries[row], found[row], counts[row]
        for place in range(count):
            key = keys[places[row, place]]
            for k in range(units):
                products[k] = query[k] * key[k]
            for head in range(heads):
                shares[head, place] = scale * sum_of(products[head * width : (head + 1) * width])
        for head in range(heads):
            softmax(shares[head, :count])
        mean[:] = F(0.0)
        for place in range(count):
            value = values[places[row, place]]
            for head in range(heads):
                share = shares[head, place]
                for k in range(head * width, (head + 1) * width):
                    mean[k] += share * value[k]


@compiled(floats="contracted")
def normalise(x: Floats32, weight: Floats32, bias: Floats32, found: Floats32) -> None:
    """Write rows (n, D) with mean 0 and variance 1, scaled and moved (Ba et al. 2016)."""
    units = np.empty(x.shape[1], dtype=np.float32)
    for row in range(len(x)):
        own, new = x[row], found[row]
        copy(own, units)
        mean = sum_of(units) / F(len(own))
        for k in range(len(own)):
            units[k] = (own[k] - mean) * (own[k] - mean)
        factor = F(1.0) / np.sqrt(sum_of(units) / F(len(own)) + EPSILON)
        for k in range(len(own)):
            new[k] = (own[k] - mean) * factor * weight[k] + bias[k]


Ids = Sequence[int]


@dataclass(frozen=True)
class ReadSources:
    """Source sentences for the decoder.

    Attributes:
        keys, values: for each layer of the decoder, (P, D).
        offsets: (sources + 1,) where the positions of each sentence begin.
    """

    keys: list[Floats32]
    values: list[Floats32]
    offsets: Integers

    def places(self, source: Integers) -> tuple[Integers, Integers]:
        """Return the positions (n, longest) of sentences (n,), and their numbers (n,)."""
        first, counts = self.offsets[source], np.diff(self.offsets)[source]
        columns = np.arange(int(counts.max(initial=0)))
        return np.minimum(first[:, None] + columns, self.offsets[-1] - 1), counts


class KeysAndValues:
    """Keys and values (nodes, D) of all prefixes' last words, for each layer of the decoder."""

    def __init__(self, layers: int, units: int) -> None:
        self.keys = [np.empty((0, units), dtype=np.float32) for _ in range(layers)]
        self.values = [np.empty((0, units), dtype=np.float32) for _ in range(layers)]
        self.count = 0

    def make_room(self, count: int) -> Integers:
        """Return the numbers of so many new nodes."""
        first, self.count = self.count, self.count + count
        for of in (self.keys, self.values):
            of[:] = [_with_room(array, self.count) for array in of]
        return np.arange(first, self.count)


def _with_room(array: Floats32, count: int) -> Floats32:
    """Return an array with room for `count` rows: the same, or a copy that is twice as long."""
    if count <= len(array):
        return array
    grown = np.empty((2 * count, array.shape[1]), dtype=np.float32)
    grown[: len(array)] = array
    return grown


class TransformerNetwork:
    """A network that scores pairs of ids: natural logs, END included.

    Args:
        sizes: layer sizes.
        weights: arrays by their names in `Transformer`.
        normalised: whether log Z is subtracted; see `WordSoftmax`.

    Attributes:
        sizes: the layer sizes.
        softmax: the output layer.
    """

    def __init__(
        self, sizes: TransformerSizes, weights: Mapping[str, Floats32], normalised: bool = True
    ) -> None:
        self.sizes = sizes
        self._vectors = {name: array for name, array in weights.items() if array.ndim == 1}
        self._embeddings = weights["source_embedding.weight"], weights["output_words.weight"]
        output_bias = self._vectors["output_words.bias"]
        self.softmax = WordSoftmax(self._embeddings[1], output_bias, normalised)
        self._waves = waves(FIRST_PLACES, sizes.units)
        self._matrices: dict[str, Floats32] = {}
        for name, array in weights.items():
            if name.endswith("in_proj_weight"):
                prefix = name.removesuffix("in_proj_weight")
                biases = np.split(self._vectors.pop(f"{prefix}in_proj_bias"), len(PARTS))
                for part, matrix, bias in zip(
                    PARTS, np.split(array, len(PARTS)), biases, strict=True
                ):
                    self._matrices[prefix + part] = np.ascontiguousarray(matrix.T)
                    self._vectors[f"{prefix}{part}.bias"] = bias
            elif array.ndim > 1 and "." in name.removesuffix(".weight"):
                self._matrices[name.removesuffix(".weight")] = np.ascontiguousarray(array.T)

    def score(self, sources: Sequence[Ids], steps: Sequence[EdgesBelow]) -> None:
        """Write log p of the edges below some sources; see `values_along`."""
        prefixes = TransformerPrefixes.empty(self, sources)
        for step in steps:
            step.found[:] = self.softmax.at(prefixes.features, step.parent, step.word)
            grows = step.word != END
            prefixes = prefixes.grown(step.parent[grows], step.word[grows])

    def encode(self, sentences: Sequence[Ids]) -> ReadSources:
        """Encode source sentences, END behind each."""
        phrases = PackedSequences.pack([[*sentence, END] for sentence in sentences])
        place = np.arange(len(phrases.ids)) - np.repeat(
            phrases.offsets[:-1], np.diff(phrases.offsets)
        )
        x = self._placed(phrases.ids.astype(np.int64), place, self._embeddings[0])
        source = np.repeat(np.arange(len(sentences)), np.diff(phrases.offsets))
        places, counts = ReadSources([], [], phrases.offsets).places(source)
        for layer in range(self.sizes.encoder_layers):
            begin = f"encoder.layers.{layer}."
            normal = self.normal(f"{begin}norm1", x)
            attention = f"{begin}self_attn."
            keys, values = self.keys_and_values(attention, normal)
            x += self.attention(attention, normal, keys, values, places, counts)
            x += self.inner(begin, "norm2", x)
        read = self.normal("encoder.norm", x)
        both = [
            self.keys_and_values(f"decoder.layers.{layer}.multihead_attn.", read)
            for layer in range(self.sizes.decoder_layers)
        ]
        return ReadSources([of[0] for of in both], [of[1] for of in both], phrases.offsets)

    def written(
        self,
        words: Integers,
        nodes: KeysAndValues,
        path: Integers,
        lengths: Integers,
        source: Integers,
        sources: ReadSources,
    ) -> Floats32:
        """Return the features (N, D) after prefixes, and keep the keys and values of their ends.

        Args:
            words: (N,) the last words, END for an empty prefix.
            nodes: keys and values of all nodes.
            path: (N, longest) the nodes on the way to each prefix, its own last.
            lengths: (N,) the number of these.
            source: (N,) the source sentence of each.
            sources: the source sentences.
        """
        x = self._placed(words, lengths - 1, self._embeddings[1])
        own = path[np.arange(len(path)), lengths - 1]
        places, counts = sources.places(source)
        for layer in range(self.sizes.decoder_layers):
            begin = f"decoder.layers.{layer}."
            normal = self.normal(f"{begin}norm1", x)
            keys, values = nodes.keys[layer], nodes.values[layer]
            attention = f"{begin}self_attn."
            keys[own], values[own] = self.keys_and_values(attention, normal)
            x += self.attention(attention, normal, keys, values, path, lengths)
            attention, normal = f"{begin}multihead_attn.", self.normal(f"{begin}norm2", x)
            read = sources.keys[layer], sources.values[layer]
            x += self.attention(attention, normal, *read, places, counts)
            x += self.inner(begin, "norm3", x)
        return self.normal("decoder.norm", x)

    def _placed(self, words: Integers, place: Integers, embedding: Floats32) -> Floats32:
        """Return the embeddings (n, D) of words, their places added."""
        needed = int(place.max(initial=0)) + 1
        encoded = self._waves
        if len(encoded) < needed:  # replaced, not changed: other threads may read it
            encoded = self._waves = waves(2 * needed, self.sizes.units)
        placed: Floats32 = embedding[words] * F(math.sqrt(self.sizes.units)) + encoded[place]
        return placed

    def normal(self, name: str, x: Floats32) -> Floats32:
        """Return rows (n, D) normalised by a layer."""
        found = np.empty_like(x)
        normalise(x, self._vectors[f"{name}.weight"], self._vectors[f"{name}.bias"], found)
        return found

    def keys_and_values(self, prefix: str, x: Floats32) -> tuple[Floats32, Floats32]:
        """Return the keys and the values (n, D) of rows in an attention."""
        return self._product(f"{prefix}keys", x), self._product(f"{prefix}values", x)

    def attention(
        self,
        prefix: str,
        x: Floats32,
        keys: Floats32,
        values: Floats32,
        places: Integers,
        counts: Integers,
    ) -> Floats32:
        """Return what rows (n, D) find by an attention; see `attend`."""
        found = np.empty_like(x)
        queries = self._product(f"{prefix}queries", x)
        attend(queries, keys, values, places, counts, self.sizes.heads, found)
        return self._product(f"{prefix}out_proj", found)

    def inner(self, begin: str, norm: str, x: Floats32) -> Floats32:
        """Return what the feed-forward layer adds to rows (n, D)."""
        inner = self._product(f"{begin}linear1", self.normal(f"{begin}{norm}", x))
        return self._product(f"{begin}linear2", np.maximum(inner, F(0.0), out=inner))

    def _product(self, name: str, x: Floats32) -> Floats32:
        product: Floats32 = x @ self._matrices[name]
        product += self._vectors[f"{name}.bias"]
        return product


class TransformerPrefixes(Prefixes):
    """N prefixes of translations of some sentences; see `Prefixes`.

    Args:
        network: the network.
        sources: the encoded sentences.
        source: (N,) the sentence of each prefix.
        nodes: keys and values, shared with shorter and longer prefixes.
        before: (N, words) the nodes on the way to the last word of each.
        word: (N,) the last words, END for an empty prefix.

    Attributes:
        features: (N, D) the inputs of the output layer.
    """

    def __init__(
        self,
        network: TransformerNetwork,
        sources: ReadSources,
        source: Integers,
        nodes: KeysAndValues,
        before: Integers,
        word: Integers,
    ) -> None:
        self._network = network
        self._sources = sources
        self._source = source
        self._nodes = nodes
        self._path = np.column_stack([before, nodes.make_room(len(word))])
        lengths = np.full(len(word), self._path.shape[1])
        self.features = network.written(word, nodes, self._path, lengths, source, sources)

    @classmethod
    def empty(cls, network: TransformerNetwork, sentences: Sequence[Ids]) -> TransformerPrefixes:
        """Return an empty prefix for each sentence, one at least."""
        count, sizes = len(sentences), network.sizes
        nodes = KeysAndValues(sizes.decoder_layers, sizes.units)
        before, word = np.empty((count, 0), dtype=np.int64), np.full(count, END)
        return cls(network, network.encode(sentences), np.arange(count), nodes, before, word)

    def log_probs(self) -> Floats:
        """Return log p (N, V) of each word, END included, after each prefix."""
        return self._network.softmax.all(self.features)

    def grown(self, prefix: Integers, word: Integers) -> TransformerPrefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""
        given = self._source[prefix], self._nodes, self._path[prefix], word
        return TransformerPrefixes(self._network, self._sources, *given)
