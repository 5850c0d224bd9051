"""RNNsearch of a model directory as a scorer of sentence pairs; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import RNNSEARCH
from moses_feature.networks.direction import Direction
from moses_feature.networks.files import (
    CONFIG,
    WEIGHTS,
    check_weights,
    pair_model_digest,
    read_model_files,
    trained_self_normalised,
)
from moses_feature.networks.phrases import Phrases, phrases_of, prefix_levels
from moses_feature.networks.vocabulary import SOURCE_VOCABULARY, TARGET_VOCABULARY
from moses_feature.rnnsearch.inference import Ids, SearchNetwork
from moses_feature.rnnsearch.settings import SearchSizes
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import FormatError, UsageError
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import member

if TYPE_CHECKING:
    from moses_feature.networks.computation import Computation
    from moses_feature.phrases.packing import PackedPairs
    from moses_feature.rnnsearch.network import RnnSearch


class SearchScorer:
    """Scores sentence pairs: natural logs of p(target | source), END included.

    Attributes:
        source, target: the vocabularies of the read and the written side.
        words, escaped: how tokens become words; see `PhraseModel`.
        direction: the direction in which pairs are read and written.
        training: settings, results and provenance.
        digest: SHA-256 of everything that determines the scores.
        normalised: whether log Z is subtracted; if not, it is near 0 by training.
        network: computes the scores.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """

    def __init__(self, directory: Path) -> None:
        names = SOURCE_VOCABULARY, TARGET_VOCABULARY
        keys = "sizes", "words", "training"
        files = read_model_files(directory, RNNSEARCH, keys, names)
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
        self.direction = Direction.of_config(files.config, path)
        self.training: Json = files.config["training"]
        self.digest = pair_model_digest(files)
        self.normalised = not trained_self_normalised(self.training)
        self.network = SearchNetwork(sizes, files.weights, self.normalised)

    @property
    def seed(self) -> int | None:
        """The seed of training, if it is known."""
        settings = self.training.get("settings")
        seed = settings.get("seed") if isinstance(settings, dict) else None
        return seed if isinstance(seed, int) else None

    def ids(self, source: Sequence[bytes], target: Sequence[bytes]) -> tuple[list[int], list[int]]:
        """Return the ids of a pair as the network reads and writes it."""
        read, written = self.direction.sides(source, target)
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


class PairScorer:
    """Scores packed pairs with a network in memory, on the CPU; see `Scorer`."""

    def __init__(self, network: RnnSearch, computation: Computation) -> None:
        if computation.dtype.itemsize != np.dtype(np.float32).itemsize:
            found = str(computation.dtype).removeprefix("torch.")
            raise UsageError(f"RNNsearch is scored in float32, found {found}")
        weights = {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
        self._network = SearchNetwork(network.sizes, weights, computation.normalised)
        self._executor = computation.executor

    def word_log_probs(self, pairs: PackedPairs) -> Floats:
        """Return log p of every target word and END, pair after pair."""
        sources = phrases_of(pairs.source_levels)
        run = self._executor.map
        return self._network.word_log_probs(sources, pairs.target_levels, pairs.offsets, run)
