"""From sentence pairs to a trained network.

Guided alignment (Chen et al. 2016): the network's alignments, of a Transformer those of one head
(Garg et al. 2019), are compared with links found by an aligner. The loss contains, beside log p of
the words, the cross-entropy of each written word's alignment, given its links.

Smoothed labels (Szegedy et al. 2016): the loss contains a share of the mean of -log p over all
words, in place of as much of that of the word itself.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch

from moses_feature.moses.words import WordOptions
from moses_feature.networks.pieces import PieceVocabulary
from moses_feature.networks.vocabulary import Shortlists
from moses_feature.phrases.objective import PhraseData, PhraseObjective
from moses_feature.phrases.pairs import PairCollection
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.sentences.settings import SentenceData, SentenceSettings
from moses_feature.sentences.texts import PairLinks, SentencePairs, learnt_pieces
from moses_feature.training.objective import Rows, Terms
from moses_feature.training.runs import train_network
from moses_feature.training.trainer import NO_CONTROL, RunControl

logger = logging.getLogger(__name__)

MOST_PADDED = 20_000
"""Words of both sides, padding included, that are learnt from together.

18,000 take 1.0 GB of a `small` Transformer with 8,000 subwords, in bfloat16.
"""
GUIDANCE = 0.5
"""The weight of the alignments' cross-entropy (nats per word) in the loss."""


class SentenceObjective(PhraseObjective):
    """log p of the target words, smoothed labels and guided alignment; see `PhraseObjective`.

    Args:
        data: sentence pairs.
        links: the links of all pairs, including those of END; None without guidance.
        settings: how to train.
        device: the device of the network.
    """

    def __init__(
        self,
        data: PhraseData,
        links: PairLinks | None,
        settings: SentenceSettings,
        device: torch.device,
    ) -> None:
        super().__init__(data, settings, device)
        self._links = links
        self._smoothing = settings.label_smoothing
        if isinstance(data.target, PieceVocabulary):
            self.loss_name, self.unit = "loss per target subword", " nats per subword"

    def terms(self, network: torch.nn.Module, rows: Rows) -> Terms:
        """Return log p of the words of some pairs; in the penalty, smoothing and alignments."""
        given: dict[str, Any] = {"smooth": True} if self._smoothing and network.training else {}
        links = None if self._links is None else self._links.of(rows)
        if links is not None:
            given["links"] = torch.from_numpy(links).to(self.device)
        log_probs, log_norms, *more = network(*self.given(network, rows), **given)
        penalties = []
        if links is not None:
            shares = torch.from_numpy(shares_of(links)).to(self.device)
            penalties.append(-GUIDANCE * (shares * more.pop()).sum())
        if more:
            penalties.append(self._smoothing * (log_probs - more.pop()).sum())
        penalty = torch.stack(penalties).sum() if penalties else None
        return Terms(log_probs, log_norms if self.norm_penalty else None, penalty)

    def parts(self, rows: Rows) -> list[Rows]:
        """Return halves of halves, until none has more than `MOST_PADDED` words."""
        if len(rows) < 2:
            return [rows]
        sides = self.words(rows)
        longest = sum(np.diff(side.offsets).max() + 1 for side in sides)
        if len(rows) * longest <= MOST_PADDED:
            return [rows]
        half = len(rows) // 2
        return [*self.parts(rows[:half]), *self.parts(rows[half:])]

    def shown(self, held_out: dict[str, float]) -> str:
        """Return the held-out loss, and the cross-entropy of the alignments."""
        if self._links is None:
            return super().shown(held_out)
        of_alignments = held_out.get("held_out_penalty", 0.0) / GUIDANCE
        return f"{super().shown(held_out)}, alignments {of_alignments:.4f}"


def shares_of(links: Integers) -> Floats32:
    """Return the share (links,) of each link in its written word: 1 / links of the word."""
    _, word, counts = np.unique(links[:2], axis=1, return_inverse=True, return_counts=True)
    return np.reciprocal(counts[word].astype(np.float32))


def train_sentences(
    data: SentenceData,
    settings: SentenceSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Train a network for sentences; keep the best model and the run's checkpoint in `directory`.

    Result and errors are those of `train_network`.
    """
    return train_network(
        [path for path in (data.source, data.target, data.word_alignment) if path is not None],
        lambda: _read(data, settings),
        lambda linked: (SentenceObjective(*linked, settings, device), settings),
        directory,
        device,
        control,
    )


LinkedPairs = tuple[PhraseData, PairLinks | None]


def _read(data: SentenceData, settings: SentenceSettings) -> tuple[LinkedPairs, Json]:
    pieces = None if data.subwords is None else learnt_pieces(data, data.subwords)
    pairs = SentencePairs(data, pieces)
    collection = PairCollection(pairs)
    if len(collection) < 2:
        raise MosesFeatureError(
            f"{data.source}: expected sentence pairs to train on, found {len(collection)} of "
            f"1 to {data.longest} words"
        )
    if data.word_alignment is not None and pairs.unlinked == len(pairs.links):
        raise MosesFeatureError(
            f"{data.word_alignment}: expected links such as 0-0 1-2, found none in "
            f"{pairs.unlinked} sentence pairs"
        )
    counts = collection.source_counts(), collection.target_counts()
    if pieces is None:
        shortlists = Shortlists.of_counts(*counts, data.shortlist, data.min_count)
    else:
        shortlists = Shortlists(*pieces, {"source": 1.0, "target": 1.0})
    notes = [f"{pairs.left_out} were empty or too long"] if pairs.left_out else []
    notes += [f"{pairs.unlinked} have no links"] if pairs.unlinked else []
    logger.info(
        "%d different sentence pairs%s; %s",
        len(collection),
        f" ({', '.join(notes)})" if notes else "",
        shortlists if pieces is None else f"{data.subwords} subwords from {data.subwords_from}",
    )
    source, target = shortlists.source, shortlists.target
    limits = settings.held_out, settings.held_out_limit, settings.seed
    learnt = PhraseData(
        collection.pairs(source, target, *limits),
        source,
        target,
        WordOptions(),
        pairs.escaped,
        data.direction,
    )
    provenance = {
        "inputs": pairs.inputs,
        "shortlist_coverage": shortlists.coverage,
        "pairs": len(learnt.pairs),
        "left_out": pairs.left_out,
    }
    links = None
    if data.word_alignment is not None:
        provenance["unlinked"] = pairs.unlinked
        links = pairs.links.links(np.flatnonzero(collection.kept))
    return (learnt, links), provenance
