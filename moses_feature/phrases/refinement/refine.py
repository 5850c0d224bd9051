"""Refine a trained network on n-best lists so that it prefers the better translations.

The objective is expected BLEU (Gao, He, Yih and Deng 2014; He and Deng 2012). The translations e of
a list have p(e) ∝ exp(γ s(e)), where s is the log-linear score, including the network's column:
w Σ log p(target phrase | source phrase) over the phrases of e. The mean over the sentences of
Σ p(e) BLEU(e) is maximised. w is the weight of the column, or the best of some if the system that
made the lists has none. A phrase pair is scored once for all translations of an update that contain
it.
"""

from __future__ import annotations

import hashlib
import logging
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from moses_feature.networks.direction import FORWARD
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import PhraseModel, load_model, save_model
from moses_feature.phrases.refinement.lists import ListReader, PhraseLists, RefineData
from moses_feature.phrases.settings import RefineSettings
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import DataError, UsageError
from moses_feature.runtime.files import Json
from moses_feature.training.objective import Rows, Terms
from moses_feature.training.runs import train_network
from moses_feature.training.trainer import NO_CONTROL, RunControl

logger = logging.getLogger(__name__)

PAIRS_TOGETHER = 1024
"""Pairs that go through the network at a time; pairs of similar length are together."""
EVALUATIONS_PER_EPOCH = 4
LARGEST_DIFFERENCE = 0.2
"""The largest median difference between the lists' column and the network; bfloat16 gives 0.1."""
CHECKED = 200
"""Sentences whose column is compared with the network's."""
WEIGHED = 500
"""Sentences that choose the weight of a column that lists do not have."""
SHARES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""The weights to choose from, as the spread of the weighted column within a list over the spread of
the rest of the score there (standard deviations)."""


class ExpectedBleu:
    """The expected BLEU of n-best lists; see `Objective`.

    Args:
        model: the model to refine.
        lists: n-best lists, with the column of this network or without.
        weight: the weight of the column; None to choose one.
        settings: batches, seed, and perplexity of a list's distribution.
        device: the device of the network.

    Raises:
        DataError: too few lists have translations of different BLEU, or the column is not the
            network's.
    """

    norm_penalty = 0.0
    loss_name = "expected BLEU"
    sign = -1
    unit = ""
    starts_trained = True
    frequency_loss: float | None = None

    def __init__(
        self,
        model: PhraseModel,
        lists: PhraseLists,
        weight: float | None,
        settings: RefineSettings,
        device: torch.device,
    ) -> None:
        self._model = model
        self._lists = lists
        self._device = device
        self._batch_size = self.evaluation_batch = settings.batch_size
        self._seed = settings.seed
        usable = lists.with_several()
        if len(usable) < 2:
            raise DataError(
                f"{lists.path}: expected two sentences at least whose translations differ in BLEU "
                f"by the references, found {len(usable)}"
            )
        self.held_out, self._rows = _split(usable, lists, settings.held_out, settings.seed)
        self.updates_per_epoch = -(-len(self._rows) // settings.batch_size)
        self.evaluate_every = max(1, self.updates_per_epoch // EVALUATIONS_PER_EPOCH)
        model.network.dropout.p = settings.dropout
        self.network: nn.Module = model.network.train().to(device)
        if lists.column is None:
            rows = np.random.default_rng(settings.seed).permutation(self._rows)[:WEIGHED]
            column = self._present_column(rows)
        else:
            rows = self._rows
            column = lists.column[self._translations(rows)[0]]
            self._check_column(lists.column)
        self._weight = weight or self._best_weight(rows, column, settings.perplexity)
        self.sharpness = _sharpness(self._table(rows, column, self._weight), settings.perplexity)

    def batch(self, update: int) -> Rows:
        """Return the sentences of an update; an epoch is a random order of all."""
        epoch, index = divmod(update, self.updates_per_epoch)
        order = np.random.default_rng([self._seed, epoch]).permutation(self._rows)
        return order[index * self._batch_size : (index + 1) * self._batch_size]

    def parts(self, rows: Rows) -> list[Rows]:
        """Return the batch: sentences share their phrases."""
        return [rows]

    def terms(self, network: nn.Module, rows: Rows) -> Terms:
        """Return the expected BLEU of some sentences."""
        translations, sentence, place = self._translations(rows)
        column = self._column(network, translations)
        scores = torch.from_numpy(self._lists.scores[translations]).to(column)
        shape = len(rows), int(place.max(initial=0)) + 1
        sentence_of, place_of = (torch.from_numpy(a).to(self._device) for a in (sentence, place))
        table = torch.full(shape, -torch.inf, device=self._device, dtype=column.dtype)
        table[sentence_of, place_of] = self.sharpness * (scores + self._weight * column)
        bleu = torch.zeros(shape, device=self._device, dtype=column.dtype)
        bleu[sentence_of, place_of] = torch.from_numpy(self._lists.bleu[translations]).to(column)
        return Terms((table.softmax(1) * bleu).sum(1))

    def shown(self, held_out: dict[str, float]) -> str:
        """Return expected BLEU of the held-out sentences."""
        return f"{-held_out['held_out_loss']:.5f}"

    def save(self, directory: Path, training: Json) -> None:
        """Write the model."""
        of = self._model
        words = of.source, of.target, of.words
        training = {**training, "column_weight": self._weight}
        save_model(directory, PhraseModel(of.network, *words, training, of.escaped, of.direction))

    def identity(self) -> Json:
        """Return what identifies the run: the network and its data."""
        return {
            "model": self._model.digest,
            "weight": self._weight,
            "scores": hashlib.sha256(self._lists.scores.tobytes()).hexdigest(),
        }

    def _translations(self, rows: Rows) -> tuple[Integers, Integers, Integers]:
        """Return the translations of `rows`, the row of each, and its place in its list."""
        begin, end = self._lists.sentences[rows], self._lists.sentences[rows + 1]
        translations = np.concatenate([np.arange(b, e) for b, e in zip(begin, end, strict=True)])
        sentence = np.repeat(np.arange(len(rows)), end - begin)
        return translations, sentence, translations - begin[sentence]

    def _column(self, network: nn.Module, translations: Integers) -> Tensor:
        """Return log p (translations,) of the phrases of translations, float64."""
        lists = self._lists
        begin, end = lists.translations[translations], lists.translations[translations + 1]
        places = np.concatenate([np.arange(b, e) for b, e in zip(begin, end, strict=True)])
        pairs, of_place = np.unique(lists.phrases[places], return_inverse=True)
        log_probs = self._log_probs(network, pairs)
        translation = torch.from_numpy(np.repeat(np.arange(len(begin)), end - begin))
        of_phrases = log_probs[torch.from_numpy(of_place).to(self._device)]
        empty = torch.zeros(len(begin), dtype=torch.float64, device=self._device)
        return empty.index_put((translation.to(self._device),), of_phrases, accumulate=True)

    def _log_probs(self, network: nn.Module, pairs: Integers) -> Tensor:
        """Return log p (pairs,) of phrase pairs, natural logs, float64."""
        source, target = self._lists.source, self._lists.target
        order = np.lexsort((source.lengths(pairs), target.lengths(pairs)))
        parts = []
        for first in range(0, len(order), PAIRS_TOGETHER):
            rows = pairs[order[first : first + PAIRS_TOGETHER]]
            tensors = [
                torch.from_numpy(array).to(self._device)
                for side in (source, target)
                for array in side.padded(rows, END)
            ]
            words, _ = network(*tensors)
            pair = torch.arange(len(rows), device=self._device).repeat_interleave(tensors[3] + 1)
            empty = torch.zeros(len(rows), dtype=torch.float64, device=self._device)
            parts.append(empty.index_put((pair,), words.double(), accumulate=True))
        back = torch.from_numpy(np.argsort(order)).to(self._device)
        return torch.cat(parts)[back]

    @torch.no_grad()
    def _present_column(self, rows: Rows) -> Floats:
        """Return the column of the translations of some sentences, by the network as it is."""
        self.network.eval()
        column: Floats = self._column(self.network, self._translations(rows)[0]).cpu().numpy()
        self.network.train()
        return column

    def _check_column(self, of_lists: Floats) -> None:
        """Check that the lists' column is the network's log p, up to a constant for each list.

        The lists name an unknown word as a phrase pair, but the table has no column for it; it is
        in all translations of a list.
        """
        rows = self._rows[:CHECKED]
        translations, sentence, _ = self._translations(rows)
        difference = self._present_column(rows) - of_lists[translations]
        sizes = np.bincount(sentence)
        difference -= (np.bincount(sentence, difference) / sizes)[sentence]
        largest = float(
            np.median(np.maximum.reduceat(np.abs(difference), np.cumsum(sizes) - sizes))
        )
        if largest > LARGEST_DIFFERENCE:
            raise DataError(
                f"{self._lists.path}: expected the network's log p as their column, found values "
                f"that differ from it by {largest:.2f}: is it another model, or another column?"
            )

    def _best_weight(self, rows: Rows, column: Floats, perplexity: float) -> float:
        """Return the weight of the column that the most BLEU is expected with."""
        translations, sentence, place = self._translations(rows)
        spread = _spread(self._lists.scores[translations], sentence)
        unit = spread / max(_spread(column, sentence), 1e-9)
        bleu = np.zeros((len(rows), int(place.max()) + 1))
        bleu[sentence, place] = self._lists.bleu[translations]

        def expected(weight: float) -> float:
            table = self._table(rows, column, weight)
            p = _probabilities(_sharpness(table, perplexity) * table)
            return float((p * bleu).sum(axis=1).mean())

        found = {weight: expected(weight) for weight in (share * unit for share in SHARES)}
        best = float(f"{max(found, key=found.__getitem__):.3g}")
        told = ", ".join(f"{bleu:.4f} with {weight:.3g}" for weight, bleu in found.items())
        logger.info("weight of the column: %g (expected BLEU %s)", best, told)
        return best

    def _table(self, rows: Rows, column: Floats, weight: float) -> Floats:
        """Return the scores (rows, longest list) with a weight of the column; -inf pads a row."""
        translations, sentence, place = self._translations(rows)
        table = np.full((len(rows), int(place.max()) + 1), -np.inf)
        table[sentence, place] = self._lists.scores[translations] + weight * column
        return table


def _split(
    usable: Integers, lists: PhraseLists, share: float, seed: int
) -> tuple[Integers, Integers]:
    """Return the sentences that measure the loss, whole documents, and those to learn from."""
    documents = lists.documents[usable]
    order = np.random.default_rng(seed).permutation(np.unique(documents))
    if len(order) < 2:
        raise DataError(f"{lists.path}: expected lists of two documents at least, found one")
    sizes = np.array([np.count_nonzero(documents == document) for document in order])
    wanted = min(max(1, round(share * len(usable))), len(usable) - 1)
    taken = 1 + np.searchsorted(np.cumsum(sizes)[:-2], wanted)
    held_out = np.isin(documents, order[:taken])
    return usable[held_out], usable[~held_out]


def _spread(values: Floats, sentence: Integers) -> float:
    """Return the standard deviation of the values within sentences."""
    means = np.bincount(sentence, values) / np.bincount(sentence)
    return float(np.sqrt(np.mean((values - means[sentence]) ** 2)))


def _sharpness(table: Floats, perplexity: float) -> float:
    """Return γ with which scores (rows, n) give each row this mean perplexity; -inf pads a row."""
    wanted = math.log(perplexity)
    if (most := math.exp(_entropy(np.where(np.isfinite(table), 0.0, table)))) <= perplexity:
        raise UsageError(
            f"perplexity: expected less than {most:.1f}, which that of these lists is if all "
            f"translations weigh the same, found {perplexity:g}"
        )
    low, high = 0.0, 1.0
    while _entropy(high * table) > wanted and high < 1e9:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _entropy(middle * table) > wanted else (low, middle)
    return high


def _probabilities(scores: Floats) -> Floats:
    """Return the softmax of each row of log-linear scores; -inf pads a row."""
    p: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def _entropy(scores: Floats) -> float:
    """Return the mean entropy, in nats, of rows of log-linear scores; -inf pads a row."""
    p = _probabilities(scores)
    return float(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean())


def refine(
    data: RefineData,
    settings: RefineSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Refine a network and keep the best one in `directory`, with the checkpoint of the run.

    Args:
        data: the network and the lists.
        settings: the settings of the run.
        directory: a model directory; must not hold a model unless the run is resumed.
        device: the device to train on.
        control: stopping, resuming and reporting; see `RunControl`.

    Returns:
        The reason for stopping; `interrupted` if `control.stop` asked for it.

    Raises:
        UsageError: `directory` holds a model already and is not to be resumed, or the network is
            of another kind.
        FormatError: a damaged list.
        DataError: texts of different lengths, lists of another network, or of one document.
    """

    def begin(lists: PhraseLists) -> tuple[ExpectedBleu, RefineSettings]:
        weight = settings.weight
        if weight is None and data.column is not None:
            weight = float(data.features.weights[data.features.tuneable][data.column.place])
        return ExpectedBleu(_network(data), lists, weight, settings, device), settings

    return train_network(
        [*filter(None, (data.source, *data.references, data.lists, data.documents))],
        lambda: _read(data, _network(data)),
        begin,
        directory,
        device,
        control,
    )


def _network(data: RefineData) -> PhraseModel:
    """Load the network; if the lists have its column, check that it is the one that made it."""
    model = load_model(data.model)
    if data.column is not None and model.digest != data.column.digest:
        raise UsageError(
            f"{data.model}: expected the network that made the column of the lists (SHA-256 "
            f"{data.column.digest[:12]}…), found another one ({model.digest[:12]}…)"
        )
    if model.direction != FORWARD:
        raise UsageError(f"{data.model}: expected a network for {FORWARD}, found {model.direction}")
    return model


def _read(data: RefineData, model: PhraseModel) -> tuple[PhraseLists, Json]:
    words = data.words.words(model)
    place = data.column.place if data.column else None
    reader = ListReader(data.features, place, words, model.source, model.target)
    lists = reader.read(data.lists, data.source, data.references, data.documents)
    several = lists.with_several()
    logger.info(
        "%s translations of %s sentences, %s of which have some of different BLEU; %s different "
        "phrase pairs",
        *(f"{n:,}" for n in (len(lists.bleu), len(lists.sentences) - 1, len(several))),
        f"{len(lists.source):,}",
    )
    provenance = {
        "objective": "expected BLEU",
        "inputs": reader.inputs,
        "refined_from": str(data.model),
        "refined_model": model.digest,
        "before": model.training,
    }
    return lists, provenance
