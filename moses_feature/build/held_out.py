"""A text without a part of it, and that part: whole documents that a system will not have seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.build.bitext import TextPair, read_alignment, read_texts
from moses_feature.moses.lines import LineReader, read_documents
from moses_feature.runtime.arrays import Flags
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json, write_whole

LONGEST = 100
"""Words of a sentence at most, as `system build` has it."""


@dataclass(frozen=True)
class AlignedText:
    """The files of a text.

    Attributes:
        source, target: tokenised texts, a sentence on each line.
        alignment: links of each sentence pair; None if there are none.
        documents: the document of each line; None if each is one by itself.
    """

    source: str
    target: str
    alignment: str | None = None
    documents: str | None = None


@dataclass(frozen=True)
class Part:
    """The files of a part of a text; those of links and documents if the text has them."""

    source: Path
    target: Path
    alignment: Path
    documents: Path

    @classmethod
    def within(cls, directory: Path, name: str) -> Part:
        """Return the files of a part by its name."""
        return cls(*(directory / f"{name}.{of}" for of in cls.__dataclass_fields__))


def hold_out(
    text: AlignedText, rest: Part, part: Part, *, share: float, most: int, seed: int
) -> list[Json]:
    """Write the files of a part of a text, whole documents in a random order, and of the rest.

    Sentence pairs that `system build` would leave out are in neither.

    Args:
        text: the text.
        rest: the files of the rest.
        part: the files of the part.
        share: the share of the sentence pairs that the part has.
        most: the most sentence pairs that it has; the last document may bring more.
        seed: of the choice of documents.

    Returns:
        The provenance of the files that were read.

    Raises:
        FormatError: texts, links or documents that do not belong together, or bad words.
        MosesFeatureError: a file cannot be read, or nothing would be left.
    """
    pairs = read_texts(text.source, text.target, LONGEST)
    documents: Sequence[object] = range(len(pairs.kept))
    inputs = [*pairs.inputs]
    if text.documents:
        documents, provenance = read_documents(text.documents, len(pairs.kept))
        inputs.append(provenance)
    if text.alignment:
        _, provenance = read_alignment(text.alignment, pairs)
        inputs.append(provenance)
    held_out, others = _split(pairs, documents, share, most, seed)
    if not len(others):
        raise MosesFeatureError(
            f"{text.documents or text.source}: expected several documents, found one: all of the "
            "text would be held out"
        )
    for name in ("source", "target", "alignment", "documents"):
        path = getattr(text, name)
        if path is None:
            continue
        with LineReader(path) as reader:
            lines = [line.rstrip(b"\r\n") + b"\n" for line in reader]
        for of, chosen in ((rest, others), (part, held_out)):
            write_whole(getattr(of, name), b"".join(lines[line] for line in chosen.tolist()))
    return inputs


def _split(
    pairs: TextPair, documents: Sequence[object], share: float, most: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lines of the part, a document after the other, and those of the rest."""
    numbers: dict[object, int] = {}
    of_line = np.array([numbers.setdefault(document, len(numbers)) for document in documents])
    kept: Flags = pairs.kept
    sizes = np.bincount(of_line[kept], minlength=len(numbers))
    order = np.random.default_rng(seed).permutation(len(numbers))
    wanted = min(max(1, round(share * int(sizes.sum()))), most)
    taken = order[: 1 + int(np.searchsorted(np.cumsum(sizes[order]), wanted))]
    rank = np.full(len(numbers), -1)
    rank[taken] = np.arange(len(taken))
    of_part = np.flatnonzero(kept & (rank[of_line] >= 0))
    of_part = of_part[np.argsort(rank[of_line[of_part]], kind="stable")]
    return of_part, np.flatnonzero(kept & (rank[of_line] < 0))
