"""Translation edit rate (Snover et al. 2006): like the word error rate, with moves of phrases.

The edits are counted by sacreBLEU; a hypothesis takes it 0.4 ms on Multi30k.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.ter import TER

from moses_feature.arrays import Integers
from moses_feature.metrics.edit_distance import STATISTICS

Tokens = Sequence[bytes]


class TerReferences:
    """The reference translations of one sentence.

    Of several, that with the fewest edits counts, against their mean length. Both statistics are
    multiplied by the number of references, so that they are whole numbers.
    """

    def __init__(self, references: Sequence[Tokens]) -> None:
        self._metric = TER(case_sensitive=True)
        self._numbers: dict[bytes, int] = {}
        self._references = [self._written(reference) for reference in references]
        self._length = sum(map(len, references))

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return edits and reference words (n, 2) of n hypotheses."""
        found = np.empty((len(hypotheses), STATISTICS), np.int64)
        for row, hypothesis in enumerate(hypotheses):
            score = self._metric.sentence_score(self._written(hypothesis), self._references)
            found[row] = round(score.num_edits) * len(self._references), self._length
        return found

    def _written(self, text: Tokens) -> str:
        """Return a text of numbers, which no tokeniser splits."""
        numbers = self._numbers
        return " ".join(str(numbers.setdefault(word, len(numbers))) for word in text)
