"""A feed-forward language model as a scorer of n-grams; free of torch.

The product of a projection and its part of the first layer depends on the word and its position
alone, so that all these products are computed once: a context then costs a sum of order - 1
vectors. The sum over all words, log Z, belongs to the context; it is remembered.

Axes: N n-grams, C distinct contexts among them, P projection, F and S units of the two layers, V
words.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.arrays import Floats32, Integers, Records
from moses_feature.errors import FormatError
from moses_feature.files import Json
from moses_feature.lm.kernels import NETWORK, first_layer, log_probs_of
from moses_feature.lm.sizes import LM_ARCHITECTURE, LmSizes
from moses_feature.models.files import (
    CONFIG,
    WEIGHTS,
    check_weights,
    read_model_files,
    trained_self_normalised,
)
from moses_feature.models.vocabulary import END, Vocabulary
from moses_feature.scoring.kernels import add_exps, logits_at

VOCABULARY = "words.vocab"
ROWS = 64
"""Contexts of a product. Always the same, so that a score does not depend on those beside it."""
WORDS_TOGETHER = 1024
MOST_REMEMBERED = 1 << 21
MOST_AT_ONCE = 1 << 17
"""Weights of a second layer that stay in the cache of a core (512 KiB)."""
PLACES = 1 << 14
"""Contexts whose features a small network remembers."""
NO_LOGIT = -1e30


class NeuralLM:
    """Scores n-grams: natural logs of p(word | context).

    A context is `order` - 1 ids, the nearest word last: END for each place before the beginning
    of the sentence, `null` for a word that is not known, as at the beginning of a phrase out of
    context.

    Attributes:
        order: words of an n-gram, the predicted one counted.
        begin, end: the ids of what is before a sentence, and of its end: END.
        vocabulary: words and ids.
        null: the id of no particular word.
        normalised: whether log Z is subtracted; if not, it was trained to be near 0.
        training: settings, results and provenance.

    Args:
        sizes: order and layer sizes.
        weights: arrays with the shapes of `LmSizes.shapes`.
        vocabulary: of the words.
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
        self.normalised = normalised
        self.training = training
        self.weights = weights
        parts = np.split(weights["first.weight"], sizes.order - 1, axis=1)  # (F, P) each
        projection = weights["projection.weight"]
        self._table = np.stack([projection @ part.T for part in parts])  # (order - 1, V + 1, F)
        self._second = np.ascontiguousarray(weights["second.weight"].T)  # (F, S)
        self._output = np.ascontiguousarray(weights["output.weight"])  # (V, S)
        self._log_norms: dict[bytes, float] = {}
        self._network = self._as_network() if self._second.size <= MOST_AT_ONCE else None

    @property
    def network(self) -> Records | None:
        """The `NETWORK` record (1,) of a small model whose scores are not normalised; else None.

        It lives as long as the model.
        """
        return None if self.normalised else self._network

    def _as_network(self) -> Records:
        """Return the model for compiled code."""
        positions, words, first = self._table.shape
        second = self._second.shape[1]
        arrays = {
            "table": self._table,
            "first_bias": self.weights["first.bias"],
            "second_weight": self._second,
            "second_bias": self.weights["second.bias"],
            "output": self._output,
            "output_bias": self.weights["output.bias"],
            "units": np.empty(first, dtype=np.float32),
            "active": np.empty(first + 1, dtype=np.int64),
            "contexts": np.full((PLACES, positions), -1, dtype=np.int32),
            "features": np.empty((PLACES, second), dtype=np.float32),
        }
        record = np.zeros(1, dtype=NETWORK)
        sizes = {"positions": positions, "words": words, "first": first, "second": second}
        for name, size in {**sizes, "places": PLACES}.items():
            record[name] = size
        # They are kept, for the record has no more than their addresses.
        self._of_network = {name: np.ascontiguousarray(of) for name, of in arrays.items()}
        for name, array in self._of_network.items():
            record[name] = array.ctypes.data
        return record

    @classmethod
    def load(cls, directory: Path) -> NeuralLM:
        """Read a model directory.

        A model that was trained to be self-normalised is used so.

        Raises:
            MosesFeatureError: a file is missing, or of a newer version of this program.
            FormatError: a file is damaged, or the files do not belong together.
        """
        files = read_model_files(directory, LM_ARCHITECTURE, ("sizes", "training"), (VOCABULARY,))
        try:
            sizes = LmSizes(**files.config["sizes"])
        except (TypeError, ValueError) as error:
            raise FormatError(directory / CONFIG, "sizes", f"{error}") from error
        vocabulary = files.vocabularies[VOCABULARY]
        check_weights(directory / WEIGHTS, files.weights, sizes.shapes(len(vocabulary)))
        training = files.config["training"]
        normalised = not trained_self_normalised(training)
        return cls(sizes, files.weights, vocabulary, normalised, training)

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of words."""
        return self.vocabulary.ids(words)

    def log_probs(self, contexts: NDArray[np.integer], words: Integers) -> Floats32:
        """Return log p (N,) of words.

        Args:
            contexts: (N, order - 1) ids.
            words: (N,) ids.
        """
        rows: NDArray[np.int32] = np.ascontiguousarray(contexts, dtype=np.int32)
        words = words.astype(np.int64)
        scores = np.empty(len(words), dtype=np.float32)
        if self.network is not None:
            log_probs_of(self.network[0], rows, words, scores)
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
        count = len(contexts)
        features = np.empty((-(-count // ROWS) * ROWS, self._second.shape[1]), dtype=np.float32)
        units = np.zeros((ROWS, self._second.shape[0]), dtype=np.float32)
        first_bias, second_bias = self.weights["first.bias"], self.weights["second.bias"]
        for start in range(0, count, ROWS):
            first_layer(self._table, first_bias, contexts[start : start + ROWS], units)
            block = features[start : start + ROWS]
            np.matmul(units, self._second, out=block)
            block += second_bias
            np.maximum(block, 0.0, out=block)
        return features[:count]

    def _norms(self, keys: list[bytes], features: Floats32) -> Floats32:
        """Return log Z (C,) of contexts, from memory where it is known."""
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
        sums = np.empty(len(features), dtype=np.float32)
        operand = np.zeros((ROWS, features.shape[1]), dtype=np.float32)
        for start in range(0, len(features), ROWS):
            block = features[start : start + ROWS]
            operand[: len(block)] = block
            top = np.full(ROWS, NO_LOGIT, dtype=np.float32)
            total = np.zeros(ROWS, dtype=np.float32)
            for first in range(0, len(self._output), WORDS_TOGETHER):
                part = slice(first, first + WORDS_TOGETHER)
                logits = operand @ self._output[part].T
                add_exps(logits, self.weights["output.bias"][part], top, total)
            sums[start : start + ROWS] = (np.log(total) + top)[: len(block)]
        return sums

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
