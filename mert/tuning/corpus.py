"""A text to translate and its reference translations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_feature.moses.texts import Sentence, read_parallel


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
        texts, digests = read_parallel(paths)
        return cls(
            texts[0], tuple(zip(*texts[1:], strict=True)), tuple(map(str, paths)), tuple(digests)
        )

    def __len__(self) -> int:
        return len(self.sentences)
