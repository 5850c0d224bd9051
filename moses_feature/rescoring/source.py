"""The source text of n-best lists, for features that read it; whether it is that of the lists."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock

from moses_feature.moses.alignments import links_of
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.networks.known_words import KnownPairs, KnowsWords
from moses_feature.rescoring.nbest import (
    TRANSLATIONS,
    AnyTranslation,
    BadTranslationError,
    Lists,
)
from moses_feature.runtime.errors import MosesFeatureError

_LINKS = re.compile(rb"(?:[0-9]{1,9}-[0-9]{1,9}(?: |$))+")
"""A word alignment; other decoders may write other text behind the total."""


Pair = tuple[bytes, AnyTranslation]
"""A source sentence and a translation of it."""


class SourceText:
    """The source sentences of n-best lists.

    Args:
        sentences: as bytes, without line ends.
        name: the name of the text, for error messages.
        is_stream: whether other texts follow, perhaps from other people. A model that does not know
            the words of one is then a warning, and not an error.

    Attributes:
        sentences: see above.
        name: see above.
        is_stream: see above.
    """

    def __init__(self, sentences: Iterable[bytes], name: str, is_stream: bool = False) -> None:
        self.sentences = list(sentences)
        self.name = name
        self.is_stream = is_stream
        self._asked: set[int] = set()

    @classmethod
    def read(cls, path: str | Path) -> SourceText:
        """Read a file with a sentence on each line."""
        with LineReader(path) as reader:
            return cls((line.rstrip(b"\r\n") for line in reader), str(path))

    def replace(self, sentences: Iterable[bytes]) -> None:
        """Begin another text."""
        self.sentences = list(sentences)
        self._asked.clear()

    def __len__(self) -> int:
        return len(self.sentences)

    def sentence(self, number: int) -> bytes:
        """Return a sentence (counted from 0).

        Raises:
            MosesFeatureError: there is no such sentence.
        """
        if not 0 <= number < len(self.sentences):
            raise MosesFeatureError(
                f"{self.name}: expected a sentence {number} (from 0), which the lists have, found "
                f"{len(self.sentences)} lines: is it the text that was translated?"
            )
        self._asked.add(number)
        return self.sentences[number]

    def translated(self, number: int, translations: Sequence[AnyTranslation]) -> bytes:
        """Return a sentence, and check that its first translation's word alignment, if any, fits.

        Raises:
            MosesFeatureError: there is no such sentence.
            BadTranslationError: a link to a word that the sentence or the translation does not
                have.
        """
        sentence = self.sentence(number)
        links = translations[0].links if translations else None
        if links is not None and _LINKS.fullmatch(links):
            try:
                links_of(links, len(tokens(sentence)), len(translations[0].words))
            except ValueError as error:
                expected, found = error.args
                of = f"as sentence {number} (from 0) of {self.name} has them"
                raise BadTranslationError(translations[0], f"{expected}, {of}", found) from None
        return sentence

    def known_to(self, model: str, vocabularies: tuple[KnowsWords, KnowsWords]) -> KnownPairs:
        """Return the check that a model knows the words of sentences and translations."""
        return KnownPairs(model, (self.name, TRANSLATIONS), vocabularies, self.is_stream)

    def pairs(self, lists: Lists) -> tuple[list[Pair], list[tuple[int, int]]]:
        """Return the translations of lists, each with its sentence; see `translated`.

        Also returns, for each list that is not empty, the number of its sentence and the index of
        its first pair.
        """
        pairs: list[Pair] = []
        firsts = []
        for number, translations in lists:
            sentence = self.translated(number, translations)
            if translations:
                firsts.append((number, len(pairs)))
            pairs += [(sentence, translation) for translation in translations]
        return pairs, firsts

    def beside(self, number: int) -> bytes | None:
        """Return the sentence before the given one; for the first one, the sentence after it.

        None if these two cannot be compared: one has no words, or they are the same.
        """
        found = self.sentences[number - 1] if number else b"".join(self.sentences[1:2])
        own = self.sentences[number]
        return found if own.strip() and found.strip() and found != own else None

    def finish(self) -> None:
        """Check that only empty sentences follow the last one requested.

        Raises:
            MosesFeatureError: another sentence follows.
        """
        in_lists = max(self._asked, default=-1) + 1
        if any(number >= in_lists for number in self.unasked()):
            raise MosesFeatureError(
                f"{self.name}: expected {in_lists} sentences as in the n-best lists, found "
                f"{len(self.sentences)}: is it the text that was translated?"
            )

    def unasked(self) -> list[int]:
        """Return the numbers of the sentences with words that were not requested."""
        return [
            number
            for number, sentence in enumerate(self.sentences)
            if sentence.strip() and number not in self._asked
        ]


logger = logging.getLogger(__name__)

FEWEST, MOST = 20, 50
"""The fewest translations to judge by, and the most that are tried."""
LEAST_BETTER = 0.7
"""The least share that a translation's own sentence explains better than another; by chance 0.5."""


class OwnSource:
    """Counts translations that their own sentence explains better than another one.

    Thread-safe.

    Args:
        feature: the name of the feature that scores them.
        source: the name of the source text.

    Attributes:
        is_done: whether enough translations were tried.
    """

    def __init__(self, feature: str, source: str) -> None:
        self._names = feature, source
        self._tried = self._better = 0
        self._lock = Lock()
        self.is_done = False

    def add(self, own: float, other: float) -> None:
        """Count a translation.

        Args:
            own: mean log p of a word, given its own sentence.
            other: the same, given another sentence.
        """
        with self._lock:
            self._tried += 1
            self._better += own > other
        if self._tried >= MOST:
            self.finish()

    def finish(self) -> None:
        """Warn once if too few translations were explained better by their own sentences."""
        with self._lock:
            if self.is_done:
                return
            self.is_done = True
        if self._tried >= FEWEST and self._better < LEAST_BETTER * self._tried:
            feature, source = self._names
            logger.warning(
                "%s: only %d of %d translations are likelier given their own sentence than given "
                "the one beside it; with a good network nearly all are. Has it learnt enough, do "
                "the lists belong to %s, and the network to these languages?",
                feature,
                self._better,
                self._tried,
                source,
            )
