"""Texts with a sentence on each line, and the same number of lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.errors import DataError, FormatError

Sentence = tuple[bytes, ...]
Text = tuple[Sentence, ...]


def read_text(path: str | Path) -> tuple[Text, str]:
    """Return the sentences of a text as tokens, and the SHA-256 of its lines."""
    with LineReader(path) as reader:
        text = tuple(tuple(tokens(line)) for line in reader)
        return text, reader.digest()


def parallel_lines(readers: Sequence[LineReader], of: str) -> Iterator[tuple[bytes, ...]]:
    """Yield the lines of several files that belong together.

    Args:
        readers: of the files.
        of: what they are, for the message.

    Raises:
        FormatError: one ends before another.
    """
    for lines in zip_longest(*readers):
        if None in lines:
            short = readers[lines.index(None)]
            longer = next(r for r, line in zip(readers, lines, strict=True) if line is not None)
            expected, found = f"as many lines in {of}", f"the end of {short.path}"
            raise FormatError(longer.path, expected, found, longer.line_number)
        yield lines


def read_parallel(paths: Sequence[str | Path]) -> tuple[list[Text], list[str]]:
    """Return texts whose lines belong together, and the SHA-256 of each.

    Raises:
        DataError: one has another number of lines than the first, or no word.
    """
    read = [read_text(path) for path in paths]
    texts = [text for text, _ in read]
    for path, text in zip(paths, texts, strict=True):
        if len(text) != len(texts[0]):
            raise DataError(
                f"{path}: expected {len(texts[0])} lines as in {paths[0]}, found {len(text)}"
            )
        if not any(text):
            raise DataError(f"{path}: expected sentences, found no word")
    return texts, [digest for _, digest in read]
