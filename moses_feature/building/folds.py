"""Folds of a text, for systems that have not seen a part of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moses_feature.building.extraction import Extraction
from moses_feature.runtime.arrays import Flags
from moses_feature.runtime.errors import UsageError


def numbered(documents: Sequence[object]) -> NDArray[np.int64]:
    """Return the number (lines,) of each line's document, in the order of their appearance."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(document, len(numbers)) for document in documents])


def folds_of(documents: Sequence[object], count: int, seed: int) -> NDArray[np.int64]:
    """Return the fold (lines,) of each line: whole documents, folds of about the same size.

    Args:
        documents: the document of each line.
        count: the number of folds.
        seed: of the order in which documents are dealt out.

    Raises:
        UsageError: fewer documents than folds.
    """
    of_line = numbered(documents)
    sizes = np.bincount(of_line)
    if len(sizes) < count:
        raise UsageError(f"{count} folds: expected as many documents, found {len(sizes)}")
    order = np.random.default_rng(seed).permutation(len(sizes))
    fold_of = np.empty(len(sizes), dtype=np.int64)
    filled = np.zeros(count, dtype=np.int64)
    for document in order[np.argsort(-sizes[order], kind="stable")].tolist():
        fold = int(filled.argmin())
        fold_of[document] = fold
        filled[fold] += sizes[document]
    found: NDArray[np.int64] = fold_of[of_line]
    return found


def phrases_in(extraction: Extraction, sentences: Flags) -> Flags:
    """Return which source phrases (phrases,) occur in some of the sentences (sentences,)."""
    wanted = np.zeros(len(extraction.source), dtype=np.bool_)
    words = np.repeat(sentences, np.diff(extraction.bitext.source.offsets))
    for of_length in extraction.source.at:
        here = of_length[words]
        wanted[here[here >= 0]] = True
    return wanted
