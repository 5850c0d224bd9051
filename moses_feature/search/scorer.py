"""RNNsearch of a model directory as a scorer of sentence pairs; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from moses_feature.arrays import Floats
from moses_feature.errors import FormatError
from moses_feature.files import Json
from moses_feature.json_files import member
from moses_feature.models.files import (
    CONFIG,
    WEIGHTS,
    check_weights,
    read_model_files,
    trained_self_normalised,
)
from moses_feature.models.phrases import Phrases
from moses_feature.models.reading import Reading
from moses_feature.models.sizes import SEARCH_ARCHITECTURE, SearchSizes
from moses_feature.models.vocabulary import SOURCE_VOCABULARY, TARGET_VOCABULARY
from moses_feature.moses.words import WordOptions
from moses_feature.scoring.prefix_tree import prefix_levels
from moses_feature.scoring.search_network import Ids, SearchNetwork


class SearchScorer:
    """Scores sentence pairs: natural logs of p(target | source), END included.

    Attributes:
        source, target: the vocabularies of what the network reads and writes.
        words, escaped: how tokens become words; see `PhraseModel`.
        reading: the direction in which pairs are read and written.
        training: settings, results and provenance.
        digest: SHA-256 of all that decides the scores.
        normalised: whether log Z is subtracted; if not, it was trained to be near 0.
        network: what computes the scores.

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
        shapes = sizes.shapes(len(self.source), len(self.target))
        check_weights(directory / WEIGHTS, files.weights, shapes)
        self.escaped: bool = member(files.config, "escaped", bool, path, "a model")
        self.reading = Reading.of_config(files.config, path)
        self.training: Json = files.config["training"]
        self.digest = files.digest("sizes", "words", "escaped", "reading")
        self.normalised = not trained_self_normalised(self.training)
        self.network = SearchNetwork(sizes, files.weights, self.normalised)

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
        targets = Phrases.pack([target for _, target in pairs])
        levels = list(prefix_levels(targets, roots))
        offsets = targets.offsets + np.arange(len(pairs) + 1)
        found = self.network.word_log_probs(list(index), levels, offsets)
        return np.split(found, offsets[1:-1])
