"""The joint language model as a scorer of target words beside a source text; free of torch.

A window, the source words around one, is the same for all target words affiliated to that word: its
part of the first layer is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.cslm.feed_forward import TOGETHER, FeedForward, first_products
from moses_feature.joint.settings import JOINT_ARCHITECTURE, JointSizes
from moses_feature.networks.files import (
    CONFIG,
    WEIGHTS,
    check_weights,
    read_model_files,
    settings_of,
    trained_self_normalised,
)
from moses_feature.networks.vocabulary import END, SOURCE_VOCABULARY, TARGET_VOCABULARY, Vocabulary
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.files import Json


class JointModel(FeedForward):
    """Scores target words: natural logs of p(word | window, words before).

    A context is the number of a window, then the ids of the `order` - 1 words before, the nearest
    one last: END for each place before the beginning of the sentence, `null` for an unknown context
    word. The end of a sentence is not scored, as in Moses (`moses/LM/BilingualLM.cpp`).

    Attributes:
        sizes: window, order and layer sizes.
        order: target words of an n-gram, including the predicted one.
        begin, end: the ids of the words before a sentence, and of its end: both END.
        source, target: words and ids.
        null: the id of a missing target context word.
        training: settings, results and provenance.

    Args:
        sizes: see above.
        weights: arrays with the shapes of `JointSizes.joint_shapes`.
        source: see above.
        target: see above.
        normalised: see `FeedForward`.
        training: see above.
    """

    def __init__(
        self,
        sizes: JointSizes,
        weights: dict[str, Floats32],
        source: Vocabulary,
        target: Vocabulary,
        normalised: bool,
        training: Json,
    ) -> None:
        self.sizes = sizes
        self.order = sizes.order
        self.begin = self.end = END
        self.source = source
        self.target = target
        self.null = len(target)
        self.training = training
        of_source, of_target = np.split(
            weights["first.weight"], [sizes.source_words * sizes.projection], axis=1
        )
        self._of_source = np.ascontiguousarray(of_source.T)
        table = first_products(weights["projection.weight"], of_target, sizes.order - 1)
        no_bases = np.empty((0, sizes.first), dtype=np.float32)
        super().__init__(table, no_bases, weights, normalised, has_base=True)
        self.read([])

    @classmethod
    def load(cls, directory: Path) -> JointModel:
        """Read a model directory.

        A self-normalised model is used without subtracting log Z.

        Raises:
            MosesFeatureError: a file is missing, or of a newer version of this program.
            FormatError: a file is damaged, or the files do not belong together.
        """
        names = (SOURCE_VOCABULARY, TARGET_VOCABULARY)
        files = read_model_files(directory, JOINT_ARCHITECTURE, ("sizes", "training"), names)
        sizes = settings_of(JointSizes, files.config, "sizes", directory / CONFIG)
        source, target = (files.vocabularies[name] for name in names)
        shapes = sizes.joint_shapes(len(source), len(target))
        check_weights(directory / WEIGHTS, files.weights, shapes)
        training = files.config["training"]
        normalised = not trained_self_normalised(training)
        return cls(sizes, files.weights, source, target, normalised, training)

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of target words."""
        return self.target.ids(words)

    def read(self, sentences: Sequence[Sequence[bytes]]) -> list[Integers]:
        """Replace the windows by those of a source text.

        Returns:
            For each sentence, the numbers (words,) of the windows around its words.
        """
        sizes = self.sizes
        beside = sizes.source_window
        none = np.full((1, sizes.source_words), len(self.source))
        windows = [none]
        for sentence in sentences:
            ids = [END] * beside + self.source.ids(sentence) + [END] * beside
            places = np.arange(len(sentence))[:, None] + np.arange(sizes.source_words)
            windows.append(np.array(ids, dtype=np.int64)[places])
        all_windows = np.concatenate(windows)
        distinct, numbers = np.unique(all_windows[1:], axis=0, return_inverse=True)
        self.use_bases(self._window_sums(np.vstack([none, distinct])))
        ends = np.cumsum([0, *map(len, sentences)])
        return [1 + numbers[first:last] for first, last in pairwise(ends.tolist())]

    def _window_sums(self, windows: NDArray[np.integer]) -> Floats32:
        """Return the sums (n, F) of windows (n, source words) in the first layer, with its bias."""
        projection = self.weights["source_projection.weight"]
        sums = np.empty((len(windows), self.sizes.first), dtype=np.float32)
        for start in range(0, len(windows), TOGETHER):
            rows = windows[start : start + TOGETHER]
            words = projection[rows].reshape(len(rows), -1)
            sums[start : start + TOGETHER] = words @ self._of_source
        return sums + self.weights["first.bias"]
