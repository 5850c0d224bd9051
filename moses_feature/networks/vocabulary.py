"""The shortlist: the most frequent words of a side, each with an id; all others are UNK."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moses_feature.runtime.errors import FormatError, MosesFeatureError, shown
from moses_feature.runtime.files import write_whole

logger = logging.getLogger(__name__)

END = 0
"""Id of the end-of-phrase symbol; as the word before a target phrase, its embedding is zero."""
UNKNOWN = 1
"""Id of every word outside the shortlist."""
SYMBOLS = (b"</s>", b"<unk>")
BEGIN = b"<s>"
"""In tables, a mark like the symbols."""
SOURCE_VOCABULARY, TARGET_VOCABULARY = "source.vocab", "target.vocab"
"""The vocabulary files in the directory of a model for pairs."""


@dataclass(frozen=True)
class Vocabulary:
    """Words and their ids: END, UNKNOWN, then the shortlist, the most frequent word first.

    A phrase's word that is spelt like one of the two symbols, or `<s>`, is unknown; hierarchical
    glue rules have such words.
    """

    shortlist: tuple[bytes, ...]
    index: Mapping[bytes, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first = len(SYMBOLS)
        index = {word: number for number, word in enumerate(self.shortlist, first)}
        object.__setattr__(self, "index", index)

    def __len__(self) -> int:
        return len(SYMBOLS) + len(self.shortlist)

    def ids(self, words: Iterable[bytes]) -> list[int]:
        """Return the ids of the words, the end-of-phrase symbol not included."""
        get = self.index.get
        return [get(word, UNKNOWN) for word in words]

    def words(self, ids: Sequence[int]) -> list[bytes]:
        """Return the words of ids; UNKNOWN is its symbol."""
        first = len(SYMBOLS)
        return [SYMBOLS[n] if n < first else self.shortlist[n - first] for n in ids]

    def lengths(self, words: Iterable[bytes]) -> list[int]:
        """Return how many ids each word has."""
        return [1 for _ in words]

    def knows(self, word: bytes) -> bool:
        """Return whether a word is in the shortlist."""
        return word in self.index

    @property
    def can_tell(self) -> bool:
        """Whether a text of its language is told from others by the words that it knows."""
        return True

    @classmethod
    def most_frequent(cls, counts: Mapping[bytes, float], size: int) -> Vocabulary:
        """Make the shortlist of the `size` words with the highest counts, ties in byte order."""
        candidates = (word for word in counts if word not in (*SYMBOLS, BEGIN))
        words = sorted(candidates, key=lambda word: (-counts[word], word))[:size]
        if odd := sum(not is_utf8(word) for word in words):
            logger.warning(
                "%d of the %d words of a shortlist are not UTF-8: what is scored later must have "
                "the same encoding",
                odd,
                len(words),
            )
        return cls(tuple(words))

    @classmethod
    def shortlist_of(cls, counts: Mapping[bytes, float], size: int, least: int) -> Vocabulary:
        """Make a shortlist of words with `least` occurrences or more; of all if there are none."""
        frequent = {word: count for word, count in counts.items() if count >= least}
        return cls.most_frequent(frequent or counts, size)

    def coverage(self, counts: Mapping[bytes, float]) -> float:
        """Return the share of the running words in `counts` that are in the shortlist, 0 to 1."""
        total = sum(counts.values())
        covered = sum(count for word, count in counts.items() if word in self.index)
        return covered / total if total else 1.0

    def digest(self) -> str:
        """Return the SHA-256 of the shortlist."""
        return hashlib.sha256(self.content()).hexdigest()

    def content(self) -> bytes:
        """Return what determines the ids of words."""
        return b"\n".join(self.shortlist)

    def save(self, path: Path) -> None:
        """Write one word per line; id = line number counted from 0."""
        write_whole(path, b"".join(word + b"\n" for word in (*SYMBOLS, *self.shortlist)))

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what `save` wrote.

        Raises:
            MosesFeatureError: the file cannot be read.
            FormatError: it is not a vocabulary.
        """
        try:
            words = path.read_bytes().split(b"\n")
        except OSError as error:
            raise MosesFeatureError(f"{path}: {error.strerror}") from error
        for number, symbol in enumerate(SYMBOLS):
            if number >= len(words) or words[number] != symbol:
                found = shown(words[number]) if number < len(words) else "the end of the file"
                raise FormatError(path, symbol.decode(), found, number + 1)
        if words[-1] != b"":
            raise FormatError(path, "a line end", "the end of the file", len(words))
        shortlist = words[len(SYMBOLS) : -1]
        seen = set(SYMBOLS)
        for number, word in enumerate(shortlist, len(SYMBOLS) + 1):
            if not word or word in seen or b" " in word or b"\t" in word:
                raise FormatError(path, "a word that no other line has", shown(word), number)
            seen.add(word)
        return cls(tuple(shortlist))


def is_utf8(text: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


Counts = Mapping[bytes, float]


@dataclass(frozen=True)
class Shortlists:
    """The words of both sides that a network knows.

    Attributes:
        source, target: the vocabulary of each side.
        coverage: their share of the running words, by side.
    """

    source: Vocabulary
    target: Vocabulary
    coverage: dict[str, float]

    @classmethod
    def of_counts(cls, source: Counts, target: Counts, size: int, least: int) -> Shortlists:
        """Choose at most `size` words of each side: the most frequent with `least` occurrences."""
        of_source, of_target = (
            Vocabulary.shortlist_of(counts, size, least) for counts in (source, target)
        )
        coverage = {"source": of_source.coverage(source), "target": of_target.coverage(target)}
        return cls(of_source, of_target, coverage)

    def __str__(self) -> str:
        source, target = (len(words.shortlist) for words in (self.source, self.target))
        of_source, of_target = (f"{100 * share:.2f}%" for share in self.coverage.values())
        return (
            f"the shortlists have {source} and {target} words, {of_source} and {of_target} of "
            "the running words"
        )
