"""What is known of an augmented table and of the network that scored it."""

from __future__ import annotations

from dataclasses import dataclass

from moses_feature.moses.words import WordOptions
from moses_feature.phrases.generation.generator import Generator
from moses_feature.phrases.model import PhraseModel
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.json_files import member
from moses_feature.tables.features_json import (
    features_json,
    read_columns,
    read_features,
    table_words,
)

COUNTS = {
    "lines_written": "lines",
    "clipped_scores": "scores clipped to Moses' floor",
    "unknown_source_words": "unknown words, source",
    "unknown_target_words": "unknown words, target",
}
"""Counts that the file beside a table may have, and what they are called."""


@dataclass(frozen=True)
class Facts:
    """What the file beside a table says of it.

    Attributes:
        columns: the names of the new ones.
        counts: of lines and words, as far as they are known.
        command: that made it.
        words: how its tokens became words.
    """

    columns: list[str]
    counts: dict[str, int]
    command: str
    words: TableWords

    @classmethod
    def read(cls, table_path: str) -> Facts:
        """Read them.

        Raises:
            FormatError: the file is damaged.
        """
        path, content, what = features_json(table_path), read_features(table_path), "facts"
        counts = {
            name: member(content, name, int, path, what) for name in COUNTS if name in content
        }
        command = member(content, "command", str, path, what) if "command" in content else ""
        return cls(list(read_columns(table_path)), counts, command, table_words(table_path))

    @property
    def escaped(self) -> bool:
        """Whether the tokens of the table are escaped."""
        return self.words.escaped != "no"


@dataclass(frozen=True)
class ReadNetwork:
    """A network, and the words that it reads."""

    model: PhraseModel
    generator: Generator
    words: WordOptions

    def ids(self, phrase: bytes) -> list[int]:
        """Return the ids of a source phrase of the table."""
        return self.model.source.ids(self.words.pair(phrase, b"")[0])
