"""The feed-forward language model as a scorer of n-grams; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from moses_feature.cslm.feed_forward import FeedForward, first_products
from moses_feature.cslm.settings import LM_ARCHITECTURE, LmSizes
from moses_feature.networks.files import (
    CONFIG,
    WEIGHTS,
    check_weights,
    read_model_files,
    settings_of,
    trained_self_normalised,
)
from moses_feature.networks.vocabulary import END, Vocabulary
from moses_feature.runtime.arrays import Floats32
from moses_feature.runtime.files import Json

VOCABULARY = "words.vocab"


class NeuralLM(FeedForward):
    """Scores n-grams: natural logs of p(word | context).

    A context is `order` - 1 ids, the nearest word last: END for each place before the beginning
    of the sentence, `null` for a missing context word, as at the beginning of a phrase out of
    context.

    Attributes:
        order: words of an n-gram, including the predicted one.
        begin, end: the ids of the words before a sentence, and of its end: both END.
        vocabulary: words and ids.
        null: the id of a missing context word, which is not UNK.
        normalised: whether log Z is subtracted; if not, it is near 0 by training.
        training: settings, results and provenance.

    Args:
        sizes: order and layer sizes.
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
        self.training = training
        table = first_products(
            weights["projection.weight"], weights["first.weight"], sizes.positions
        )
        super().__init__(table, weights["first.bias"][None], weights, normalised)

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
