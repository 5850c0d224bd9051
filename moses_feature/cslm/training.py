"""Training of the feed-forward language model of Cho et al. 2014, section 4.1.2 (Schwenk 2007).

The projections of the context words, concatenated, go through two rectified layers and a softmax
over the shortlist.
"""

from __future__ import annotations

import hashlib
import logging
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moses_feature.cslm.ngrams import TrainingNgrams, TrainingText
from moses_feature.cslm.scorer import VOCABULARY
from moses_feature.cslm.settings import LM_ARCHITECTURE, LmData, LmSettings, LmSizes
from moses_feature.moses.lines import LineReader
from moses_feature.networks.dropout import Dropout
from moses_feature.networks.files import ModelFiles, write_model_files
from moses_feature.networks.softmax import word_terms
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.runtime.arrays import Flags
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.training.objective import Rows, Terms, frequency_loss
from moses_feature.training.runs import train_network
from moses_feature.training.trainer import NO_CONTROL, RunControl

logger = logging.getLogger(__name__)

INITIAL_RANGE = 0.01


class FeedForwardLM(nn.Module):
    """p(word | the order - 1 words before it), where END stands for words before the sentence.

    Dropout, which the paper does not have, zeroes random components of the projections and the
    second layer in training and scales up the others.
    """

    def __init__(self, sizes: LmSizes, words: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.sizes = sizes
        self.dropout = Dropout(dropout)
        self.projection = nn.Embedding(words, sizes.projection)
        self.first = nn.Linear(sizes.positions * sizes.projection, sizes.first)
        self.second = nn.Linear(sizes.first, sizes.second)
        self.output = nn.Linear(sizes.second, words)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights from U[-0.01, 0.01], as the paper does; biases are zero."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.endswith("bias"):
                    parameter.zero_()
                else:
                    parameter.uniform_(-INITIAL_RANGE, INITIAL_RANGE, generator=generator)

    def forward(self, contexts: Tensor, words: Tensor) -> tuple[Tensor, ...]:
        """Return log p and log Z (natural logs) of words, each (N,).

        Args:
            contexts: (N, positions) ids of the words before, the nearest one last.
            words: (N,) ids.
        """
        projected = self.dropout(self.projection(contexts).flatten(1))
        features = self.dropout(torch.relu(self.second(torch.relu(self.first(projected)))))
        return word_terms(features, self.output, words)


def save_language_model(
    directory: Path,
    network: FeedForwardLM,
    vocabulary: Vocabulary,
    frequencies: NDArray[np.float64],
    training: Json,
) -> None:
    """Write a model that `NeuralLM.load` reads.

    Args:
        directory: created if missing.
        network: the network.
        vocabulary: its words.
        frequencies: (words,) counts of the words; the projection of a missing context word is
            the mean of all, weighted by them.
        training: settings, results and provenance.

    Raises:
        MosesFeatureError: the directory cannot be written.
    """
    weights = {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
    projection = weights["projection.weight"]
    mean = frequencies @ projection / max(frequencies.sum(), 1.0)
    weights["projection.weight"] = np.vstack([projection, mean.astype(np.float32)])
    config = {"sizes": asdict(network.sizes), "training": training}
    write_model_files(
        directory, LM_ARCHITECTURE, ModelFiles(config, {VOCABULARY: vocabulary}, weights)
    )


class NgramObjective:
    """log p(word | its context) of the n-grams of a text; see `Objective`.

    Args:
        ngrams: the n-grams.
        held_out: (n-grams,) bool, True for those that measure the held-out loss.
        vocabulary: their words; the same in a resumed run.
        settings: layer sizes, dropout, batches and the seed.
        device: the device of the network.
    """

    loss_name = "loss per word"
    sign = 1
    unit = " nats per word"
    starts_trained = False
    evaluation_batch = 1024

    def __init__(
        self,
        ngrams: TrainingNgrams,
        held_out: Flags,
        vocabulary: Vocabulary,
        settings: LmSettings,
        device: torch.device,
    ) -> None:
        self._ngrams = ngrams
        self._vocabulary = vocabulary
        self._settings = settings
        self._device = device
        smallest = np.uint32 if len(ngrams) < 1 << 32 else np.uint64
        rows: Rows = np.flatnonzero(~held_out).astype(smallest)
        self._rows = rows
        self.held_out = np.flatnonzero(held_out)
        if len(self.held_out) == 0:
            logger.warning(
                "too few sentences to hold some out: the held-out loss is the training loss"
            )
            self.held_out = self._rows.astype(np.int64)
        counts = np.bincount(ngrams.words(rows), minlength=len(vocabulary))
        self.frequency_loss: float | None = frequency_loss(ngrams.words(self.held_out), counts)
        self._order: tuple[int, Rows] | None = None
        self.updates_per_epoch = -(-len(self._rows) // settings.batch_size)
        self.evaluate_every = self.updates_per_epoch
        self.norm_penalty = settings.self_normalisation
        self._lm = FeedForwardLM(settings.sizes, len(vocabulary), settings.dropout)
        self._lm.train().initialise(torch.Generator().manual_seed(settings.seed))
        self.network: torch.nn.Module = self._lm.to(device)

    def batch(self, update: int) -> Rows:
        """Return the n-grams of an update: each occurs once per epoch, in random order."""
        epoch, index = divmod(update, self.updates_per_epoch)
        if self._order is None or self._order[0] != epoch:
            random = np.random.default_rng([self._settings.seed, epoch])
            self._order = epoch, random.permutation(self._rows)
        size = self._settings.batch_size
        return self._order[1][index * size : (index + 1) * size]

    def parts(self, rows: Rows) -> list[Rows]:
        """Return the batch: it is small."""
        return [rows]

    def terms(self, network: torch.nn.Module, rows: Rows) -> Terms:
        """Return log p and log Z of the words of some n-grams."""
        contexts, words = (
            torch.from_numpy(array).to(self._device, non_blocking=True)
            for array in (self._ngrams.contexts(rows), self._ngrams.words(rows))
        )
        return Terms(*network(contexts, words))

    def shown(self, held_out: dict[str, float]) -> str:
        """Return loss, perplexity and mean |log Z|."""
        loss = held_out["held_out_loss"]
        return (
            f"{loss:.4f} (perplexity {math.exp(min(loss, 700.0)):.2f}, mean |log Z| "
            f"{held_out['mean_absolute_log_norm']:.3f})"
        )

    def save(self, directory: Path, training: Json) -> None:
        """Write the model."""
        words = self._ngrams.words(self._rows)
        counts = np.bincount(words, minlength=len(self._vocabulary)).astype(np.float64)
        save_language_model(directory, self._lm, self._vocabulary, counts, training)

    def identity(self) -> Json:
        """Return what identifies the shortlist."""
        words = b"\n".join(self._vocabulary.shortlist)
        return {"shortlist": hashlib.sha256(words).hexdigest()}


def train_language_model(
    data: LmData,
    settings: LmSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Train a language model and keep the best one in `directory`, with the run's checkpoint.

    Result and errors are those of `train_network`.
    """
    return train_network(
        (data.text,),
        lambda: _read(data, settings),
        lambda read: (NgramObjective(*read, settings, device), settings),
        directory,
        device,
        control,
    )


def _read(
    data: LmData, settings: LmSettings
) -> tuple[tuple[TrainingNgrams, Flags, Vocabulary], Json]:
    with LineReader(data.text) as reader:
        text = TrainingText(reader)
        inputs = [reader.provenance("text")]
    counts = text.counts()
    if not counts:
        raise MosesFeatureError(f"{data.text}: expected words to train on, found none")
    vocabulary = Vocabulary.shortlist_of(counts, data.shortlist, data.min_count)
    coverage = vocabulary.coverage(counts)
    logger.info(
        "%d sentences; the shortlist has %d words, %.2f%% of the running words",
        len(text),
        len(vocabulary.shortlist),
        100 * coverage,
    )
    held_out = text.held_out(settings.held_out, settings.fewest_held_out, settings.seed)
    ngrams = text.ngrams(vocabulary, settings.sizes.order)
    provenance = {
        "inputs": inputs,
        "shortlist_coverage": coverage,
        "sentences": len(text),
    }
    return (ngrams, held_out, vocabulary), provenance
