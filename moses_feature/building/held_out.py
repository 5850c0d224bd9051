"""A text without a part of it, and that part: whole documents that a system will not have seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.building.bitext import read_alignment, read_texts
from moses_feature.moses.lines import LineReader, read_documents
from moses_feature.runtime.arrays import Flags
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import write_whole


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
class TextPart:
    """The files of a part of a text; those of links and documents if the text has them."""

    source: Path
    target: Path
    alignment: Path
    documents: Path

    @classmethod
    def within(cls, directory: Path, name: str) -> TextPart:
        """Return the files of a part by its name."""
        return cls(*(directory / f"{name}.{of}" for of in cls.__dataclass_fields__))


def hold_out(
    text: AlignedText,
    rest: TextPart,
    part: TextPart,
    *,
    longest: int,
    ratio: int | None = None,
    share: float,
    most: int,
    seed: int,
    lines: int | None = None,
) -> None:
    """Write the files of a part of a text, whole documents in a random order, and of the rest.

    Pairs with an empty sentence, or one of more than `longest` words, are in neither, as
    `system build` leaves them out.

    Args:
        text: the text.
        rest: the files of the rest.
        part: the files of the part.
        longest: words of a sentence at most.
        ratio: see `read_texts`.
        share: the share of the sentence pairs that the part has.
        most: the most sentence pairs that it has; the last document may bring more.
        seed: of the choice of documents.
        lines: lines of the text that are divided; those behind them are in neither part.

    Raises:
        FormatError: texts, links or documents that do not belong together, or bad words.
        MosesFeatureError: a file cannot be read, or nothing would be left.
    """
    pairs = read_texts(text.source, text.target, longest, ratio)
    documents: Sequence[object] = range(len(pairs.kept))
    if text.documents:
        documents, _ = read_documents(text.documents, len(pairs.kept))
    if text.alignment:
        read_alignment(text.alignment, pairs)  # bad links are found before anything is written
    kept = pairs.kept.copy()
    if lines is not None:
        kept[lines:] = False
    held_out, others = _split(kept, documents, share, most, seed)
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
            content = [line.rstrip(b"\r\n") + b"\n" for line in reader]
        for of, chosen in ((rest, others), (part, held_out)):
            write_whole(getattr(of, name), b"".join(content[line] for line in chosen.tolist()))


def cut_off(part: TextPart, end: TextPart, fewest: int, most: int) -> None:
    """Move whole documents at the end of a part into files of their own.

    They have `most` lines at most, or a few more if the last document is longer. Nothing is moved
    if they would have fewer than `fewest`, or more than half of all.
    """
    texts = {
        name: path.read_bytes().splitlines(keepends=True)
        for name, path in vars(part).items()
        if path.exists()
    }
    lines = len(texts["source"])
    documents: Sequence[object] = texts.get("documents", range(lines))
    starts = [n for n in range(1, lines) if documents[n] != documents[n - 1]]
    fitting = [n for n in starts if fewest <= lines - n <= most] or [
        n for n in starts[::-1] if fewest <= lines - n <= lines / 2
    ]
    if not fitting:
        return
    first = fitting[0]
    for name, content in texts.items():
        write_whole(getattr(end, name), b"".join(content[first:]))
        write_whole(getattr(part, name), b"".join(content[:first]))


def _numbered(documents: Sequence[object]) -> NDArray[np.int64]:
    """Return the number (lines,) of each line's document, in the order of their appearance."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(document, len(numbers)) for document in documents])


def _split(
    kept: Flags, documents: Sequence[object], share: float, most: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lines of the part, a document after the other, and those of the rest."""
    of_line = _numbered(documents)
    sizes = np.bincount(of_line[kept], minlength=int(of_line.max()) + 1)
    order = np.random.default_rng(seed).permutation(len(sizes))
    wanted = min(max(1, round(share * int(sizes.sum()))), most)
    taken = order[: 1 + int(np.searchsorted(np.cumsum(sizes[order]), wanted))]
    rank = np.full(len(sizes), -1)
    rank[taken] = np.arange(len(taken))
    of_part = np.flatnonzero(kept & (rank[of_line] >= 0))
    of_part = of_part[np.argsort(rank[of_line[of_part]], kind="stable")]
    return of_part, np.flatnonzero(kept & (rank[of_line] < 0))
