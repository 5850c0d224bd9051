"""Minimum Bayes risk by a network: a feature of n-best lists.

The value of a translation is its expected BLEU against the network's own n-best list, by the
probabilities of that list (Kumar and Byrne 2004; as in the combination of phrase-based
and neural systems of Stahlberg et al. 2017, the other way round).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moses_feature.metrics.bleu import References, sentence_bleu
from moses_feature.moses.marked_models import MBR
from moses_feature.phrases.table_words import TableWords
from moses_feature.rescoring.nbest import Lists, refuse_too_long
from moses_feature.rescoring.source import OwnSource, SourceText
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import UsageError
from moses_feature.sentences.settings import MOST_PIECES
from moses_feature.sentences.translate import translate, words_of, writer

MOST = 8
"""Translations of the network's n-best list; the first alone brings less."""
MOST_KNOWN = 5_000
"""Sentences whose translations are remembered."""

Words = Sequence[bytes]


@dataclass(frozen=True)
class OwnTranslations:
    """A network's own n-best list of a sentence.

    Attributes:
        texts: the words of each translation, the best first.
        probabilities: of each, summing to 1.
    """

    texts: list[Words]
    probabilities: Floats

    def expected_bleu(self, translations: Sequence[Words]) -> Floats:
        """Return the expected BLEU (n,) of translations, 0 to 1, times the words of the best."""
        of_each = [sentence_bleu(References([of]).statistics(translations)) for of in self.texts]
        found: Floats = len(self.texts[0]) * (self.probabilities @ np.array(of_each))
        return found


class OwnWriter:
    """Translates by one network, and remembers its translations.

    Args:
        directory: the model directory.
        source: the source text.

    Raises:
        UsageError: the network reads the target.
    """

    def __init__(self, directory: str, source: SourceText) -> None:
        self._network, self._empty = writer(Path(directory))
        if self._network.direction.reverse:
            raise UsageError(
                f"{MBR}:{directory}: expected a network that translates into the target language, "
                "found a reverse one"
            )
        self._words = TableWords().words(self._network)
        self._checked = source.known_to(directory, (self._network.source, self._network.target))
        self._said: dict[bytes, OwnTranslations] = {}

    def expected_bleu(
        self, sentences: Sequence[bytes], lists: Sequence[Sequence[bytes]]
    ) -> list[Floats]:
        """Return the expected BLEU (n,) of the translations of each sentence."""
        found = []
        of_sentences = self._own(sentences)
        for sentence, translations in zip(sentences, lists, strict=True):
            read = [self._words.sentences(sentence, translation) for translation in translations]
            if read:
                self._checked.add(*read[0])
            found.append(of_sentences[sentence].expected_bleu([words for _, words in read]))
        return found

    def _own(self, sentences: Sequence[bytes]) -> dict[bytes, OwnTranslations]:
        """Return the network's own n-best lists of sentences."""
        known = {of: self._said[of] for of in sentences if of in self._said}
        if unknown := list({of: None for of in sentences if of not in known}):
            read = [self._words.sentences(sentence, b"")[0] for sentence in unknown]
            ids = [self._network.source.ids(words) for words in read]
            for sentence, words, found in zip(
                unknown, read, translate(self._empty, ids, MOST), strict=True
            ):
                log_probs = np.array([of.log_prob for of in found])
                probabilities = np.exp(log_probs - log_probs.max())
                known[sentence] = OwnTranslations(
                    [words_of(self._network, of, words) if words else [] for of in found],
                    probabilities / probabilities.sum(),
                )
            if len(self._said) > MOST_KNOWN:
                self._said.clear()
            self._said.update(known)
        return known

    def length(self, sentence: bytes) -> int:
        """Return the number of words, or subwords, of a sentence."""
        return len(self._network.source.ids(self._words.sentences(sentence, b"")[0]))

    def check(self) -> None:
        """Check that the network knows most words of both texts."""
        self._checked.check()


class MbrFeature:
    """The expected BLEU of translations against networks' own n-best lists; see `SentenceScorer`.

    Of several networks it is the mean; each has its own translations.

    Args:
        name: the name of the feature.
        directories: the model directories.
        source: the source text.

    Raises:
        UsageError: a network reads the target.
    """

    def __init__(self, name: str, directories: Sequence[str], source: SourceText) -> None:
        self.name = name
        self._source = source
        self._own = OwnSource(name, source.name)
        self._writers = [OwnWriter(directory, source) for directory in directories]

    def scores(self, lists: Lists) -> list[float]:
        """Return the expected BLEU of each translation, times the words of the network's best.

        Raises:
            BadTranslationError: the first of a list is aligned to words that its source does not
                have.
            MosesFeatureError: a network knows too few words.
        """
        sentences = [self._source.translated(number, of) for number, of in lists]
        for sentence, (_, of) in zip(sentences, lists, strict=True):
            if of and len(sentence) >= MOST_PIECES:
                refuse_too_long(of[0], max(writer.length(sentence) for writer in self._writers))
        translations = [[b" ".join(of.words) for of in some] for _, some in lists]
        found = [writer.expected_bleu(sentences, translations) for writer in self._writers]
        for (number, _), some, values in zip(lists, translations, found[0], strict=True):
            if some and not self._own.is_done:
                self._compare(number, some[0], float(values[0]))
        return [
            float(value)
            for of_list in zip(*found, strict=True)
            for value in np.mean(of_list, axis=0)
        ]

    def _compare(self, number: int, translation: bytes, own: float) -> None:
        """Compare the values of a translation for its own sentence and for a neighbour."""
        beside = self._source.beside(number)
        if translation and beside is not None and len(beside) < MOST_PIECES:
            [[other]] = self._writers[0].expected_bleu([beside], [[translation]])
            self._own.add(own, float(other))

    def finish(self) -> None:
        """Check that lists, source and networks belong together."""
        self._source.finish()
        for own in self._writers:
            own.check()
        self._own.finish()
