"""Guided alignment: RNNsearch learns to align as a word aligner does (Chen et al. 2016).

Beside log p of the words, the network's alignments are compared with links that an aligner found:
the loss grows by the cross-entropy of each written word's alignment, given the words that it is
linked to, each of the same weight. A word without a link adds nothing; the END of what is written
is linked to the END of what is read.
"""

from __future__ import annotations

import numpy as np
import torch

from moses_feature.arrays import Floats32, Integers
from moses_feature.search.settings import SearchSettings
from moses_feature.training.links import Links
from moses_feature.training.objective import Rows, Terms
from moses_feature.training.phrase_objective import PhraseData, PhraseObjective

GUIDANCE = 0.5
"""Nats of loss for a nat of a word's alignment."""


class GuidedObjective(PhraseObjective):
    """log p of the target words, and the alignments beside them; see `PhraseObjective`.

    Args:
        data: sentence pairs.
        links: of all of them, with those of END.
        settings: how to train.
        device: where the network is.
    """

    def __init__(
        self, data: PhraseData, links: Links, settings: SearchSettings, device: torch.device
    ) -> None:
        super().__init__(data, settings, device)
        self._links = links

    def terms(self, network: torch.nn.Module, rows: Rows) -> Terms:
        """Return log p of the words of some pairs, and what is lost by alignments."""
        links = self._links.of(rows)
        shares = torch.from_numpy(shares_of(links)).to(self.device)
        given = *self.given(network, rows), torch.from_numpy(links).to(self.device)
        log_probs, log_norms, of_links = network(*given)
        return Terms(
            log_probs,
            log_norms if self.norm_penalty else None,
            -GUIDANCE * (shares * of_links).sum(),
        )

    def shown(self, held_out: dict[str, float]) -> str:
        """Return the held-out loss, and the cross-entropy of the alignments beside it."""
        of_alignments = held_out.get("held_out_penalty", 0.0) / GUIDANCE
        return f"{super().shown(held_out)}, alignments {of_alignments:.4f}"


def shares_of(links: Integers) -> Floats32:
    """Return the share (links,) that each link has of its written word: 1 / links of the word."""
    _, word, counts = np.unique(links[:2], axis=1, return_inverse=True, return_counts=True)
    return np.reciprocal(counts[word].astype(np.float32))
