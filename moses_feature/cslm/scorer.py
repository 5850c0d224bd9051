"""The feed-forward language model as a scorer of n-grams; free of torch.

The product of a projection and its part of the first layer depends only on the word and its
position, so all these products are computed once: a context then costs a sum of as many vectors as
it has words. The sum over all words, log Z, depends only on the context, and is cached.

Axes: N n-grams, C distinct contexts among them, F and S units of the two layers, V words.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.cslm.settings import LM_ARCHITECTURE, LmSizes
from moses_feature.networks.files import (
    CONFIG,
    WEIGHTS,
    check_weights,
    read_model_files,
    settings_of,
    trained_self_normalised,
)
from moses_feature.networks.kernels import logits_at
from moses_feature.networks.vocabulary import END, Vocabulary
from moses_feature.networks.word_softmax import log_sums
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.files import Json
from moses_feature.runtime.hash_table import copy

VOCABULARY = "words.vocab"
TOGETHER = 512
"""Contexts that are computed together; a score does not depend on the others."""
MOST_REMEMBERED = 1 << 21
F = np.float32


class NeuralLM:
    """Scores n-grams: natural logs of p(word | context).

    A context is `order` - 1 ids, the nearest word last: END for each place before the beginning
    of the sentence, `null` for a missing context word, as at the beginning of a phrase out of
    context.

    Attributes:
        sizes: order and layer sizes.
        order: words of an n-gram, including the predicted one.
        begin, end: the ids of the words before a sentence, and of its end: both END.
        vocabulary: words and ids.
        null: the id of a missing context word, which is not UNK.
        weights: the weights of the network, by name.
        normalised: whether log Z is subtracted; if not, it is near 0 by training.
        training: settings, results and provenance.

    Args:
        sizes: see above.
        weights: arrays with the shapes of `LmSizes.shapes`.
        vocabulary: words and ids.
        normalised: see above.
        training: see above.
    """

    def __init__(
        self,
        sizes: LmSizes,
        weights: dict[str, Floats32],
        vocabulary: Vocabulary,
        normalised: bool,
        training: Json,
    ) -> None:
        self.sizes = sizes
        self.order = sizes.order
        self.vocabulary = vocabulary
        self.begin = self.end = END
        self.null = len(vocabulary)
        self.weights = weights
        self.normalised = normalised
        self.training = training
        parts = np.split(weights["first.weight"], sizes.positions, axis=1)
        projection = weights["projection.weight"]
        self._table = np.stack([projection @ part.T for part in parts])  # (positions, V + 1, F)
        self._second = np.ascontiguousarray(weights["second.weight"].T)  # (F, S)
        self._output = np.ascontiguousarray(weights["output.weight"])  # (V, S)
        self._log_norms: dict[bytes, float] = {}

    @classmethod
    def load(cls, directory: Path) -> NeuralLM:
        """Read a model directory.

        A self-normalised model is used without subtracting log Z.

        Raises:
            MosesFeatureError: a file is missing, or of a newer version of this program.
            FormatError: a file is damaged, or the files do not belong together.
        """
        files = read_model_files(directory, LM_ARCHITECTURE, ("sizes", "training"), (VOCABULARY,))
        sizes = settings_of(LmSizes, files.config, "sizes", directory / CONFIG)
        vocabulary = files.vocabularies[VOCABULARY]
        check_weights(directory / WEIGHTS, files.weights, sizes.shapes(len(vocabulary)))
        training = files.config["training"]
        normalised = not trained_self_normalised(training)
        return cls(sizes, files.weights, vocabulary, normalised, training)

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of words."""
        return self.vocabulary.ids(words)

    def sentence_log_probs(self, sentences: Sequence[Sequence[bytes]]) -> list[Floats32]:
        """Return log p of the words of each sentence, and of its end."""
        if not sentences:
            return []
        contexts, words = [], []
        for sentence in sentences:
            ids = [END] * (self.order - 1) + self.ids(sentence) + [END]
            contexts += [ids[n : n + self.order - 1] for n in range(len(sentence) + 1)]
            words += ids[self.order - 1 :]
        scores = self.log_probs(
            np.array(contexts, dtype=np.int32).reshape(-1, self.order - 1),
            np.array(words, dtype=np.int64),
        )
        ends = np.cumsum([len(sentence) + 1 for sentence in sentences])
        return np.split(scores, ends[:-1])

    def log_probs(self, contexts: NDArray[np.integer], words: Integers) -> Floats32:
        """Return log p (N,) of words (N,) after contexts (N, order - 1)."""
        rows: NDArray[np.int32] = np.ascontiguousarray(contexts, dtype=np.int32)
        words = words.astype(np.int64)
        scores = np.empty(len(words), dtype=np.float32)
        if not len(words):
            return scores
        keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
        distinct, row = np.unique(keys, return_inverse=True)
        features = self._features(distinct.view(np.int32).reshape(len(distinct), -1))
        logits_at(features, self._output, self.weights["output.bias"], row, words, scores)
        if self.normalised:
            scores -= self._norms(distinct.tolist(), features)[row]
        return scores

    def log_norms(self, contexts: NDArray[np.integer]) -> Floats32:
        """Return log Z (N,) of contexts (N, order - 1)."""
        return self._sums(self._features(np.ascontiguousarray(contexts, dtype=np.int32)))

    def _features(self, contexts: NDArray[np.int32]) -> Floats32:
        """Return the units of the second layer (N, S)."""
        bias = self.weights["second.bias"]
        features = np.empty((len(contexts), len(bias)), dtype=np.float32)
        for start in range(0, len(contexts), TOGETHER):
            rows = contexts[start : start + TOGETHER]
            units = np.empty((len(rows), self._table.shape[2]), dtype=np.float32)
            _first_layer(self._table, self.weights["first.bias"], rows, units)
            sums = units @ self._second + bias
            np.maximum(sums, 0.0, out=features[start : start + TOGETHER])
        return features

    def _norms(self, keys: list[bytes], features: Floats32) -> Floats32:
        """Return log Z (C,) of contexts, from the cache if it is known."""
        norms = np.array([self._log_norms.get(key, np.nan) for key in keys], dtype=np.float32)
        new = np.flatnonzero(np.isnan(norms))
        if len(new):
            norms[new] = self._sums(features[new])
            if len(self._log_norms) > MOST_REMEMBERED:
                self._log_norms.clear()
            self._log_norms.update(zip([keys[n] for n in new], norms[new].tolist(), strict=True))
        return norms

    def _sums(self, features: Floats32) -> Floats32:
        """Return the logarithms of the sums of exp(logit) (C,)."""
        bias = self.weights["output.bias"]
        return log_sums(features, self._output, bias).astype(np.float32)


@compiled(floats="contracted")
def _first_layer(
    table: Floats32, bias: Floats32, contexts: NDArray[np.int32], units: Floats32
) -> None:
    """Write max(0, bias + the sum of the rows of the context words at their positions).

    Args:
        table: (positions, words, F) products of the projections and the first layer.
        bias: (F,) of the first layer.
        contexts: (n, positions).
        units: (n, F), overwritten.
    """
    for row in range(len(contexts)):
        own = units[row]
        copy(bias, own)
        for position in range(contexts.shape[1]):
            of_word = table[position, contexts[row, position]]
            for k in range(len(own)):
                own[k] += of_word[k]
        for k in range(len(own)):
            own[k] = max(own[k], F(0.0))
