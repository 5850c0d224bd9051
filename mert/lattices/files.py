"""Lattices in files: of one sentence after the other six arrays in numpy's own format, as gzip.

The arrays are the features, tails, nodes and spans of `Lattice`, the number of the target phrase of
each edge, and these phrases as text, a line each. Such files one after the other are one, too.
"""

from __future__ import annotations

import gzip
import io
import tokenize
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mert.lattices.lattice import BEGINNING, Lattice
from moses_feature.arrays import Floats, Integers
from moses_feature.errors import FormatError

WHAT = "the lattices of a tuning run"


class Vocabulary:
    """Words by numbers.

    Attributes:
        words: of each number.
    """

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._phrases: dict[bytes, tuple[int, ...]] = {}

    def of_phrase(self, phrase: bytes) -> tuple[int, ...]:
        """Return the numbers of a phrase's words; new ones get the next numbers."""
        numbers = self._phrases.get(phrase)
        if numbers is None:
            numbers = tuple(map(self._of_word, phrase.split(b" "))) if phrase else ()
            self._phrases[phrase] = numbers
        return numbers

    def _of_word(self, word: bytes) -> int:
        number = self._numbers.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number


def format_lattice(
    features: Floats,
    tails: Integers,
    nodes: Integers,
    spans: Integers,
    phrase: Integers,
    phrases: Sequence[bytes],
) -> bytes:
    """Return the lattice of a sentence as it stands in a file.

    Args:
        features: (edges, d) see `Lattice`, as `tails` and `nodes`.
        tails: (edges,)
        nodes: (nodes + 1,)
        spans: (edges, 2)
        phrase: (edges,) of each edge, a number of one of the phrases.
        phrases: target phrases, words separated by spaces.
    """
    file = io.BytesIO()
    text = np.frombuffer(b"".join(phrase + b"\n" for phrase in phrases), np.uint8)
    np.save(file, features.astype(np.float32), allow_pickle=False)
    for numbers in (tails, nodes, spans, phrase):
        np.save(file, numbers.astype(np.int32), allow_pickle=False)
    np.save(file, text, allow_pickle=False)
    return file.getvalue()


def read_lattices(
    path: Path, vocabulary: Vocabulary, features: int, sentences: int
) -> Iterator[Lattice]:
    """Yield the lattices of one sentence after the other.

    Args:
        path: of the file.
        vocabulary: that numbers the words.
        features: how many each edge must have.
        sentences: how many there must be.

    Raises:
        FormatError: the file is damaged, or has other features or another number of sentences.
    """
    try:
        content = io.BytesIO(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(path, WHAT, f"damage: {error}") from error
    for _ in range(sentences):
        yield _read(content, path, vocabulary, features)
    if content.read(1):
        raise FormatError(path, f"{WHAT} of {sentences} sentences", "more")


def _read(file: BinaryIO, path: Path, vocabulary: Vocabulary, features: int) -> Lattice:
    """Read the lattice of a sentence."""
    try:
        arrays = [np.lib.format.read_array(file, allow_pickle=False) for _ in range(6)]
    except (ValueError, EOFError, tokenize.TokenError) as error:
        raise FormatError(path, WHAT, f"damage: {error}") from error
    values, tails, nodes, spans, phrase, text = arrays
    phrases = text.tobytes().split(b"\n")[:-1]
    if not _fit_together(values, tails, nodes, spans, phrase, len(phrases)):
        raise FormatError(path, WHAT, "damage: arrays that do not fit together")
    if values.shape[1] != features:
        raise FormatError(path, f"{WHAT}, {features} features", f"{values.shape[1]}")
    known = [vocabulary.of_phrase(line) for line in phrases]
    return Lattice(values, tails, nodes, spans, [known[number] for number in phrase.tolist()])


def _fit_together(
    values: np.ndarray,
    tails: np.ndarray,
    nodes: np.ndarray,
    spans: np.ndarray,
    phrase: np.ndarray,
    phrases: int,
) -> bool:
    """Return whether compiled code may use some arrays as a lattice; see `Lattice`."""
    edges = len(tails)
    types = [array.dtype for array in (values, tails, nodes, spans, phrase)]
    if (
        types != [np.float32, *4 * [np.int32]]
        or values.shape[:1] + tails.shape + phrase.shape + spans.shape != (*3 * [edges], edges, 2)
        or values.ndim != 2
        or nodes.ndim != 1
    ):
        return False
    heads = np.repeat(np.arange(len(nodes) - 1), np.maximum(np.diff(nodes), 0))
    return bool(
        [*nodes[:1], *nodes[-1:]] == [0, edges]
        and (np.diff(nodes) > 0).all()
        and (tails >= BEGINNING).all()
        and (tails < heads).all()
        and (phrase >= 0).all()
        and (phrase < phrases).all()
    )
