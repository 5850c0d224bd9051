"""A Transformer's features at the nodes of a tree of prefixes; free of torch.

The features after a node depend on its word and on the keys and values of the nodes on the way to
it. Nodes that are asked for together, and those on the way to them, are computed together, parents
first.
"""

from __future__ import annotations

import numpy as np

from moses_feature.networks.trees import (
    NOT_KNOWN,
    Rows,
    Tree,
    missing_nodes,
    paths,
    with_room,
    with_rows,
)
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.transformer.inference import Nodes, ReadSources, TransformerNetwork


class TransformerTreeStates:
    """What is known at the nodes of a tree, for one source sentence at a time; see `TreeStates`.

    Attributes:
        count: the number of nodes that are known.
    """

    def __init__(self, network: TransformerNetwork) -> None:
        self._network = network
        self._row: Rows = np.empty(0, dtype=np.int32)
        self.count = 0

    def add_words(self, words: Integers) -> None:
        """Do nothing: a word's embedding is at hand."""

    def begin(self, source: ReadSources) -> None:
        """Forget all nodes, and begin with the root of a source sentence."""
        self._source = source
        sizes = self._network.sizes
        self._nodes = Nodes(sizes.decoder_layers, sizes.units)
        self._features = np.empty((0, sizes.units), dtype=np.float32)
        self._row.fill(NOT_KNOWN)
        self.count = 0

    def features(self, tree: Tree, nodes: Integers) -> tuple[Floats32, Integers]:
        """Return the inputs of the output layer (distinct nodes, D), and the row (n,) of each node.

        Args:
            tree: all nodes.
            nodes: (n,) some of them.
        """
        self._row = with_rows(self._row, len(tree))
        missing, ends = missing_nodes(tree, nodes, self._row)
        first = 0
        for end in ends.tolist():
            level = missing[first:end]
            own = self._nodes.make_room(len(level))
            self._row[level] = own
            path, lengths = paths(tree, level, self._row)
            source = np.zeros(len(level), dtype=np.int64)
            words = tree[level, 1].astype(np.int64)
            given = words, self._nodes, path, lengths, source, self._source
            features = self._network.written(*given)
            self.count = self._nodes.count
            self._features = with_room(self._features, self.count)
            self._features[own] = features
            first = end
        distinct, rows = np.unique(self._row[nodes], return_inverse=True)
        return self._features[distinct], rows
