"""The ids of words that stand in a text, looked up in compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.vocabulary import SYMBOLS, UNKNOWN, Vocabulary
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.strings import Strings, added, new_strings, slot_of


class WordTable:
    """The shortlist of a vocabulary, for compiled code.

    Args:
        vocabulary: whose ids are looked up.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._strings, _ = added(new_strings(), list(vocabulary.shortlist))

    def ids(self, text: Bytes, words: Integers) -> NDArray[np.uint32]:
        """Return the ids (n,) of words of a text.

        Args:
            text: bytes.
            words: (n, 2) where each word begins and ends.
        """
        ids: NDArray[np.uint32] = _ids(self._strings, text, words)
        return ids


@compiled
def _ids(strings: Strings, text: Bytes, words: Integers) -> NDArray[np.uint32]:
    ids = np.empty(len(words), dtype=np.uint32)
    for word in range(len(words)):
        slot = slot_of(strings, text, words[word, 0], words[word, 1])
        number = strings.slots[slot] - 1
        ids[word] = UNKNOWN if number < 0 else number + len(SYMBOLS)
    return ids
