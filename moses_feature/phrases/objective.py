"""The training objective and batches of networks for unique pairs of phrases or of sentences.

Cho et al. 2014 ignore the frequencies of phrase pairs in training.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moses_feature.moses.words import WordOptions
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.networks.pair_network import begin_with_frequencies, network_of
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.pieces import are_shared
from moses_feature.networks.vocabulary import END, Vocabulary
from moses_feature.networks.word_sample import WordSample, WordSampler
from moses_feature.phrases.model import PhraseModel, save_model
from moses_feature.phrases.pairs import PhrasePairs
from moses_feature.phrases.settings import TrainingSettings
from moses_feature.runtime.files import Json
from moses_feature.training.objective import Rows, Terms, frequency_loss

logger = logging.getLogger(__name__)


class BatchSampler:
    """The pairs of each update: uniform over the pairs, batches of similar lengths.

    An epoch is a random order of all rows, so each pair is drawn once. The order is cut into pools
    of `pool` batches; a pool is sorted by target and source length and cut into batches, which are
    taken in random order. Every pair is thus equally likely in any update, and padding is small.
    The batch of an update depends only on (seed, update), so a resumed run continues with the same
    batches.

    Args:
        words: returns both sides of the pairs of some rows.
        rows: the rows to draw.
        batch_size: the pairs of an update.
        seed: of the order.
        pool: batches that are sorted together.
    """

    def __init__(
        self,
        words: Callable[[Rows], list[PackedSequences]],
        rows: NDArray[np.int64],
        batch_size: int,
        seed: int,
        pool: int,
    ) -> None:
        self._words = words
        self._rows = rows.astype(np.uint32)
        self._batch_size = batch_size
        self._seed = seed
        self._batches_of_pool = pool
        self._order: tuple[int, NDArray[np.uint32]] | None = None
        self._pool: tuple[tuple[int, int], list[NDArray[np.uint32]]] | None = None
        self.updates_per_epoch = -(-len(rows) // batch_size)

    def batch(self, update: int) -> NDArray[np.uint32]:
        """Return the rows of the pairs for the update (counted from 0)."""
        epoch, index = divmod(update, self.updates_per_epoch)
        pool, position = divmod(index, self._batches_of_pool)
        if self._pool is None or self._pool[0] != (epoch, pool):
            self._pool = (epoch, pool), self._batches(epoch, pool)
        return self._pool[1][position]

    def _batches(self, epoch: int, pool: int) -> list[NDArray[np.uint32]]:
        size = self._batches_of_pool * self._batch_size
        rows = self._epoch_order(epoch)[pool * size : (pool + 1) * size]
        lengths = [np.diff(side.offsets) for side in self._words(rows)]
        rows = rows[np.lexsort(lengths)]
        batches = np.split(rows, range(self._batch_size, len(rows), self._batch_size))
        np.random.default_rng([self._seed, epoch, pool]).shuffle(batches)
        return batches

    def _epoch_order(self, epoch: int) -> NDArray[np.uint32]:
        if self._order is None or self._order[0] != epoch:
            order = np.random.default_rng([self._seed, epoch]).permutation(self._rows)
            self._order = epoch, order
        return self._order[1]


EVALUATE_AT_MOST_EVERY = 5000


@dataclass(frozen=True)
class PhraseData:
    """The training data of a network for pairs.

    Attributes:
        pairs: the training and held-out pairs.
        source, target: the vocabularies of the pairs.
        words: how tokens became words.
        escaped: whether the tokens were escaped as Moses escapes them.
        direction: the direction in which the pairs are read and written.
    """

    pairs: PhrasePairs
    source: Vocabulary
    target: Vocabulary
    words: WordOptions
    escaped: bool = False
    direction: Direction = FORWARD


class PhraseObjective:
    """log p(target | source) of the unique pairs; see `Objective`.

    Args:
        data: the pairs.
        settings: sizes, batches and the seed.
        device: the device of the network.
    """

    loss_name = "loss per target word"
    sign = 1
    unit = " nats per word"
    starts_trained = False
    evaluation_batch = 256

    def __init__(self, data: PhraseData, settings: TrainingSettings, device: torch.device) -> None:
        self._data = data
        self.norm_penalty = settings.self_normalisation
        self.device = device
        pairs = data.pairs
        training_rows = np.flatnonzero(~pairs.held_out)
        held_out_rows = np.flatnonzero(pairs.held_out)
        if len(held_out_rows) == 0:
            logger.warning("a single source phrase: the held-out loss is the training loss")
            held_out_rows = training_rows
        lengths = pairs.target.lengths(held_out_rows)
        self.held_out = held_out_rows[np.argsort(lengths, kind="stable")]
        self._sampler = BatchSampler(
            self.words, training_rows, settings.batch_size, settings.seed, settings.pool
        )
        self.updates_per_epoch = self._sampler.updates_per_epoch
        self.evaluate_every = min(self.updates_per_epoch, EVALUATE_AT_MOST_EVERY)
        self._samples: WordSampler | None = None
        self._sample: WordSample | None = None
        counts = np.bincount(pairs.target.ids, minlength=len(data.target))
        counts[END] += len(pairs)
        ends = np.full(len(self.held_out), END)
        held_out = pairs.target.some(self.held_out).ids
        self.frequency_loss: float | None = frequency_loss(np.concatenate([held_out, ends]), counts)
        if settings.sample is not None and settings.sample < len(counts):
            self._samples = WordSampler(counts, settings.sample, settings.seed, device)
        words = len(data.source), len(data.target)
        self._network = network_of(settings.sizes, *words, settings.dropout).train()
        if are_shared(data.source, data.target):
            self._network.share_embeddings()
        self._network.initialise(torch.Generator().manual_seed(settings.seed))
        if self.norm_penalty:
            begin_with_frequencies(self._network, counts)
        self.network: torch.nn.Module = self._network.to(device)

    def batch(self, update: int) -> Rows:
        """Return the pairs of an update; also draw its sample of words."""
        if self._samples is not None:
            self._sample = self._samples.sample(update)
        return self._sampler.batch(update)

    def parts(self, rows: Rows) -> list[Rows]:
        """Return the batch: phrases are short."""
        return [rows]

    def terms(self, network: torch.nn.Module, rows: Rows) -> Terms:
        """Return log p of all target words of some pairs."""
        log_probs, log_norms = network(*self.given(network, rows))
        return Terms(log_probs, log_norms if self.norm_penalty else None)

    def given(self, network: torch.nn.Module, rows: Rows) -> tuple[Tensor | WordSample | None, ...]:
        """Return the network's inputs: words and lengths of both sides, the sample."""
        tensors = [
            torch.from_numpy(array).to(self.device, non_blocking=True)
            for side in self.words(rows)
            for array in side.padded(np.arange(len(side)), END)
        ]
        return *tensors, self._sample if network.training else None

    def words(self, rows: Rows) -> list[PackedSequences]:
        """Return both sides of some pairs."""
        return self._data.pairs.sides(rows)

    def shown(self, held_out: dict[str, float]) -> str:
        """Return the held-out loss, and the mean of |log Z| if training keeps it small."""
        shown = f"{held_out['held_out_loss']:.4f}"
        if norm := held_out.get("mean_absolute_log_norm"):
            shown += f" (mean |log Z| {norm:.3f})"
        return shown

    def save(self, directory: Path, training: Json) -> None:
        """Write the model."""
        data = self._data
        words = data.source, data.target, data.words
        model = PhraseModel(self._network, *words, training, data.escaped, data.direction)
        save_model(directory, model)

    def identity(self) -> Json:
        """Return what identifies the data: word options, shortlists, number of pairs."""
        return {
            "pairs": len(self._data.pairs),
            "words": asdict(self._data.words),
            "reading": asdict(self._data.direction),
            "shortlists": [
                vocabulary.digest() for vocabulary in (self._data.source, self._data.target)
            ],
        }
