"""log p of single words under a softmax over all words, without storing all the logits.

The vocabulary is processed in parts: the logits of a part are computed, their exponentials summed,
and the next part overwrites them. In a short format (bfloat16) each logit has a relative error of
up to 1/256, and logits of 30 are common. So the words with the largest logits, which make up most
of the sum, are computed again in float32, as are the requested words. The remaining errors are
those of many small summands, and largely cancel.

Axes: K rows of a block, R output rank, V words.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from moses_feature.networks import computation as elementwise

BEST = 4
"""The number of words with the largest logits, which are computed again in float32."""
NO_LOGIT = -1e30
WORDS_TOGETHER = 1024
"""The number of words whose logits are computed at once and stay in the cache of a core."""


@dataclass(frozen=True)
class OutputWeights:
    """G_l and its bias, whole and in parts.

    Attributes:
        words: (V, R) float32.
        bias: (V,) float32.
        parts: (R, part of V) in the type of the products.
        biases: (part of V,) float32.
        normalised: whether log Z is subtracted; if not (log Z is near 0 by training), only the
            logits of the requested words are computed.
    """

    words: Tensor
    bias: Tensor
    parts: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    normalised: bool

    @classmethod
    def of(
        cls,
        words: Tensor,
        bias: Tensor,
        dtype: torch.dtype,
        normalised: bool = True,
        together: int = WORDS_TOGETHER,
    ) -> OutputWeights:
        """Split weights (V, R) and a bias (V,) into parts of `together` words, or fewer.

        Products whose width is a multiple of 16 are about a tenth faster than others.
        """
        parts = tuple(part.t().to(dtype) for part in torch.split(words, together))
        return cls(words, bias, parts, torch.split(bias, together), normalised)


class OutputLayer:
    """The softmax for blocks of K rows; its buffers are overwritten by each call."""

    def __init__(self, weights: OutputWeights, rows: int) -> None:
        self._weights = weights
        new = weights.bias.new_empty
        widths = [part.shape[1] for part in weights.parts]
        memory = weights.parts[0].new_empty(rows * max(widths))  # the same for all, to stay cached
        self._logits = [memory[: rows * width].view(rows, width) for width in widths]
        self._top, self._total = new(rows), new(rows)
        self._short = weights.parts[0].dtype != torch.float32
        if self._short:
            self._operand = weights.parts[0].new_empty(rows, weights.words.shape[1])
            self._best = new(rows, BEST)
            self._best_word = new(rows, BEST, dtype=torch.int64)
            self._best_row = torch.arange(rows, device=weights.bias.device)
            self._best_row = self._best_row.repeat_interleave(BEST)

    def __call__(self, features: Tensor, row: Tensor, word: Tensor) -> Tensor:
        """Return log p (edges,).

        Args:
            features: (K, R) G_r s.
            row: (edges,) the row of `features` from which each word is predicted.
            word: (edges,) the words.
        """
        logits = self._logits_at(features, row, word)
        if not self._weights.normalised:
            return logits
        log_sum = self._short_log_sum(features) if self._short else self._log_sum(features)
        return logits - log_sum[row]

    def _log_sum(self, features: Tensor) -> Tensor:
        """Return the logarithm of the sum of exp(logit), (K,)."""
        top, total = self._top.fill_(NO_LOGIT), self._total.zero_()
        weights = self._weights
        for part, bias, logits in zip(weights.parts, weights.biases, self._logits, strict=True):
            torch.mm(features, part, out=logits)
            elementwise.add_exps(logits, bias, top, total)
        return total.log_().add_(top)

    def _short_log_sum(self, features: Tensor) -> Tensor:
        """Return the same from short products, with the largest logits in float32."""
        top, total = self._top.fill_(NO_LOGIT), self._total.zero_()
        best, best_word = self._best.fill_(NO_LOGIT), self._best_word.zero_()
        weights = self._weights
        operand = self._operand.copy_(features)
        first = 0
        for part, bias, logits in zip(weights.parts, weights.biases, self._logits, strict=True):
            torch.mm(operand, part, out=logits)
            elementwise.add_exps_of_most(logits, bias, first, top, total, best, best_word)
            first += len(bias)
        better = self._logits_at(features, self._best_row, best_word.view(-1)).view_as(best)
        better[best == NO_LOGIT] = NO_LOGIT  # the vocabulary has fewer words
        highest = torch.maximum(top, better.amax(1))
        total *= torch.exp(top - highest)
        error = torch.exp(better - highest[:, None]) - torch.exp(best - highest[:, None])
        return total.add_(error.sum(1)).log_().add_(highest)

    def _logits_at(self, features: Tensor, row: Tensor, word: Tensor) -> Tensor:
        logits = features.new_empty(len(row))
        elementwise.logits_at(features, self._weights.words, self._weights.bias, row, word, logits)
        return logits
