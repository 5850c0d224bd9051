"""A network for sentences, in a model directory, as a scorer of pairs; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from moses_feature.networks.architectures import ARCHITECTURES, SENTENCE_ARCHITECTURES
from moses_feature.networks.files import trained_self_normalised
from moses_feature.networks.phrases import PackedSequences, prefix_levels, values_along
from moses_feature.phrases.model_files import read_pair_model
from moses_feature.runtime.arrays import Floats

Ids = Sequence[int]


class SentenceModel:
    """Scores sentence pairs: natural logs of p(target | source), END included.

    Args:
        directory: the model directory.
        normalised: whether log Z is subtracted in any case.

    Attributes:
        source, target: the vocabularies of the read and the written side.
        words, escaped: how tokens become words; see `PhraseModel`.
        direction: the direction in which pairs are read and written.
        training: settings, results and provenance.
        digest: SHA-256 of everything that determines the scores.
        normalised: whether log Z is subtracted; if not, it is near 0 by training.
        architecture: its name in the registry.
        network: computes the scores.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """

    def __init__(self, directory: Path, normalised: bool = False) -> None:
        files = read_pair_model(directory, SENTENCE_ARCHITECTURES)
        self.architecture = files.architecture
        self.source, self.target = files.source, files.target
        self.words, self.escaped = files.words, files.escaped
        self.direction = files.direction
        self.training, self.digest = files.training, files.digest
        self.normalised = normalised or not trained_self_normalised(self.training)
        inference = ARCHITECTURES[self.architecture].load("inference")
        self.network: Any = inference(files.sizes, files.weights, self.normalised)

    def ids(self, source: Sequence[bytes], target: Sequence[bytes]) -> tuple[list[int], list[int]]:
        """Return the ids of a pair as the network reads and writes it."""
        read, written = self.direction.sides(source, target)
        return self.source.ids(read), self.target.ids(written)

    def log_probs(self, pairs: Sequence[tuple[Ids, Ids]]) -> Floats:
        """Return log p (n,) of pairs of ids, as `ids` gives them."""
        return np.array([of_words.sum() for of_words in self.word_log_probs(pairs)])

    @np.errstate(over="ignore", invalid="ignore")  # what is no number is refused later
    def word_log_probs(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[Floats]:
        """Return log p of the target words of each pair, END last."""
        if not pairs:
            return []
        index: dict[tuple[int, ...], int] = {}
        roots = np.array([index.setdefault(tuple(source), len(index)) for source, _ in pairs])
        targets = PackedSequences.pack([target for _, target in pairs])
        levels = list(prefix_levels(targets, roots))
        offsets = targets.offsets + np.arange(len(pairs) + 1)
        found = values_along(list(index), levels, offsets, self.network.score)
        return np.split(found, offsets[1:-1])

    def token_log_probs(
        self, pairs: Sequence[tuple[Sequence[bytes], Sequence[bytes]]]
    ) -> list[Floats]:
        """Return log p of each written word of pairs of words, END last.

        Those of its pieces are added up.
        """
        of_pieces = self.word_log_probs([self.ids(*pair) for pair in pairs])
        found = []
        for (source, target), log_probs in zip(pairs, of_pieces, strict=True):
            _, written = self.direction.sides(source, target)
            first = np.cumsum([0, *self.target.lengths(written)])
            found.append(np.add.reduceat(log_probs, first))
        return found


def averaged(of_networks: Sequence[Floats] | Floats) -> Floats:
    """Return the log of the mean of probabilities, given as logs: one array a network."""
    with np.errstate(invalid="ignore"):  # what is no number is refused later
        mean: Floats = np.logaddexp.reduce(of_networks) - np.log(len(of_networks))
    return mean
