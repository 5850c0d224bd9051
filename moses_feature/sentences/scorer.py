"""A network for sentences, in a model directory, as a scorer of pairs; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import ARCHITECTURES, SENTENCE_ARCHITECTURES
from moses_feature.networks.direction import Direction
from moses_feature.networks.files import (
    CONFIG,
    MEMORY,
    WEIGHTS,
    architecture_of,
    check_weights,
    has_memory,
    read_model_files,
    trained_self_normalised,
)
from moses_feature.networks.phrases import PackedSequences, prefix_levels, values_along
from moses_feature.networks.vocabulary import SOURCE_VOCABULARY, TARGET_VOCABULARY
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import member
from moses_feature.sentences.memory import Memory, RememberedText

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
        names = SOURCE_VOCABULARY, TARGET_VOCABULARY
        keys = "sizes", "words", "training"
        path = directory / CONFIG
        self.architecture = architecture_of(directory)
        if self.architecture not in SENTENCE_ARCHITECTURES:
            expected = f"architecture {' or '.join(SENTENCE_ARCHITECTURES)}"
            raise FormatError(path, expected, self.architecture)
        parts = ARCHITECTURES[self.architecture]
        files = read_model_files(directory, self.architecture, keys, names)
        try:
            sizes = parts.load("sizes")(**files.config["sizes"])
            self.words = WordOptions(**files.config["words"])
        except (TypeError, ValueError) as error:
            raise FormatError(path, "sizes and words", f"{error}") from error
        self.source, self.target = (files.vocabularies[name] for name in names)
        shapes = sizes.shapes(len(self.source), len(self.target))
        check_weights(directory / WEIGHTS, files.weights, shapes)
        self.escaped: bool = member(files.config, "escaped", bool, path, "a model")
        self.direction = Direction.of_config(files.config, path)
        self.training: Json = files.config["training"]
        self.digest = files.pair_digest()
        self.normalised = normalised or not trained_self_normalised(self.training)
        self.network: Any = parts.load("inference")(sizes, files.weights, self.normalised)
        if has_memory(directory):
            self._remember(directory / MEMORY)

    def _remember(self, path: Path) -> None:
        """Give the network a memory."""
        text = RememberedText.load(path)
        if text.network != self.digest:
            raise FormatError(path, "the memory of this network", "one of another")
        for side, words in (text.source, self.source), (text.target, self.target):
            if (largest := side.ids.max(initial=0)) >= len(words):
                raise FormatError(path, f"ids of {len(words)} words", f"{largest}")
        without = self.network
        self.network = copy(without)
        self.network.memory = Memory(text, without)
        self.digest = text.digest()

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
