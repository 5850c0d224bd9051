"""A text to translate and its reference translations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_feature.errors import MosesFeatureError
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens

Sentence = tuple[bytes, ...]


@dataclass(frozen=True)
class Corpus:
    """Sentences with references, as tokens.

    Attributes:
        sentences: to translate.
        references: (sentences, references of each).
        paths: of the input and of the references.
        digests: SHA-256 of these files, uncompressed.
    """

    sentences: tuple[Sentence, ...]
    references: tuple[tuple[Sentence, ...], ...]
    paths: tuple[str, ...]
    digests: tuple[str, ...]

    @classmethod
    def read(cls, source: str | Path, references: Sequence[str | Path]) -> Corpus:
        """Read tokenised texts, a sentence on each line.

        Raises:
            MosesFeatureError: a file is missing, has no words, or another number of lines than
                the input.
        """
        paths = (source, *references)
        texts, digests = zip(*map(read_text, paths), strict=True)
        for path, text in zip(paths, texts, strict=True):
            if len(text) != len(texts[0]):
                raise MosesFeatureError(
                    f"{path}: expected {len(texts[0])} lines as in {source}, found {len(text)}"
                )
            if not any(text):
                raise MosesFeatureError(f"{path}: expected sentences, found no word")
        return cls(texts[0], tuple(zip(*texts[1:], strict=True)), tuple(map(str, paths)), digests)

    def __len__(self) -> int:
        return len(self.sentences)


def read_text(path: str | Path) -> tuple[tuple[Sentence, ...], str]:
    """Return the sentences of a text as tokens, and the SHA-256 of its lines."""
    with LineReader(path) as reader:
        text = tuple(tuple(tokens(line)) for line in reader)
        return text, reader.digest()
