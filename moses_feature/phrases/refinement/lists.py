"""N-best lists as phrase pairs and translations, for refinement; free of torch."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from moses_feature.metrics.bleu import References, sentence_bleu
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.lines import LineReader, read_documents
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import NbestLine, nbest_lines
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import WordError, WordOptions
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import (
    DataError,
)
from moses_feature.runtime.files import Json


@dataclass(frozen=True)
class NetworkColumn:
    """The column of the network that is refined, in the lists.

    Attributes:
        place: its index among the tuneable features.
        digest: the digest of the network that made it.
    """

    place: int
    digest: str


@dataclass(frozen=True)
class RefineData:
    """The data for refining a network.

    Attributes:
        model: the directory of the network.
        source: the decoded text, tokenised.
        references: its reference translations.
        lists: its n-best lists, with segmentation.
        features: the features of the system that made them, with their weights.
        words: how the tokens of the table become words.
        column: the network's column in the lists; None if the system has none.
        documents: the document of each line of the text; None if each is one by itself.
    """

    model: Path
    source: str
    references: Sequence[str]
    lists: str
    features: FeatureSet
    words: TableWords
    column: NetworkColumn | None
    documents: str | None = None


Words = list[bytes]


@dataclass(frozen=True)
class PhraseLists:
    """The n-best lists of some sentences.

    Attributes:
        path: the file, for error messages.
        source, target: the distinct phrase pairs, as word ids.
        phrases: (phrases of all translations,) the phrase pair of each.
        translations: (translations + 1,) where the phrases of each begin.
        sentences: (sentences + 1,) where the translations of each begin; a sentence may have none.
        scores: (translations,) log-linear scores without the network's column.
        column: (translations,) the value of the column when the lists were made; None if there is
            none in them.
        bleu: (translations,) BLEU of the sentence, 0 to 1, with one added to the counts of n-grams
            of two words and more.
        documents: (sentences,) the number of each sentence's document.
    """

    path: str
    source: PackedSequences
    target: PackedSequences
    phrases: Integers
    translations: Integers
    sentences: Integers
    scores: Floats
    column: Floats | None
    bleu: Floats
    documents: Integers

    def with_several(self) -> Integers:
        """Return the sentences that have translations of different BLEU."""
        bounds = zip(self.sentences[:-1].tolist(), self.sentences[1:].tolist(), strict=True)
        of_sentences = (self.bleu[first:last] for first, last in bounds)
        found = [n for n, bleu in enumerate(of_sentences) if len(bleu) and np.ptp(bleu) > 0]
        return np.array(found, dtype=np.int64)


class ListReader:
    """Reads n-best lists.

    Args:
        features: the features of the lists, with their weights.
        column: the index of the network's log p among the tuneable features; None if it is none of
            them.
        words: how tokens become words of the network.
        source: the network's source vocabulary.
        target: the network's target vocabulary.
    """

    def __init__(
        self,
        features: FeatureSet,
        column: int | None,
        words: WordOptions,
        source: Vocabulary,
        target: Vocabulary,
    ) -> None:
        self._features = features
        self._weights = features.weights[features.tuneable]
        self._column = column
        self._words = words
        self._vocabularies = source, target
        self._numbers: dict[tuple[bytes, bytes], int] = {}
        self._sides: tuple[list[list[int]], list[list[int]]] = [], []
        self._phrases, self._ends = array("q"), array("q", [0])
        self._scores, self._values = array("d"), array("d")
        self.inputs: list[Json] = []

    def read(
        self, lists: str, source: str, references: Sequence[str], documents: str | None = None
    ) -> PhraseLists:
        """Read the lists of a text.

        Args:
            lists: n-best lists of the whole text, or of its first sentences.
            source: the text.
            references: its reference translations.
            documents: the document of each line; None if each is one by itself.

        Raises:
            FormatError: a line without segmentation or with other features, or texts of different
                lengths.
        """
        texts = self._texts([source, *references])
        bleu: list[np.ndarray] = []
        sentences = np.zeros(len(texts) + 1, dtype=np.int64)
        with NbestReader(lists) as reader:
            lines = nbest_lines(reader, len(texts))
            for number, of_sentence in groupby(lines, key=lambda line: line.sentence):
                words, *of_references = texts[number]
                found = [self._add(line, words) for line in of_sentence]
                bleu.append(sentence_bleu(References(of_references).statistics(found)))
                sentences[number + 1] = len(found)
            self.inputs.append(reader.provenance("n-best lists"))
        return PhraseLists(
            lists,
            PackedSequences.pack(self._sides[0]),
            PackedSequences.pack(self._sides[1]),
            np.array(self._phrases, dtype=np.int64),
            np.array(self._ends, dtype=np.int64),
            np.cumsum(sentences),
            np.array(self._scores),
            None if self._column is None else np.array(self._values),
            np.concatenate([*bleu, np.empty(0)]),
            self._documents(documents, len(texts)),
        )

    def _documents(self, path: str | None, lines: int) -> Integers:
        """Return the number (lines,) of the document of each line."""
        if path is None:
            return np.arange(lines)
        names, provenance = read_documents(path, lines)
        self.inputs.append(provenance)
        found: Integers = np.unique(np.array(names, dtype=object), return_inverse=True)[1]
        return found

    def _texts(self, paths: Sequence[str]) -> list[tuple[Words, ...]]:
        with ExitStack() as stack:
            readers = [stack.enter_context(LineReader(path)) for path in paths]
            texts = [[tokens(line) for line in reader] for reader in readers]
            roles = ["source text", *["reference"] * (len(paths) - 1)]
            self.inputs += [r.provenance(role) for r, role in zip(readers, roles, strict=True)]
        for path, text in zip(paths, texts, strict=True):
            if len(text) != len(texts[0]):
                expected = f"{len(texts[0]):,} lines as in {paths[0]}"
                raise DataError(f"{path}: expected {expected}, found {len(text):,}")
        return list(zip(*texts, strict=True))

    def _add(self, line: NbestLine, source: Words) -> Words:
        """Add a translation; return its words."""
        values = line.values(self._features)
        if line.segmentation is None:
            expected = (
                "the phrases behind the total (mert-decode --with-segmentation, Moses' "
                "-include-segmentation-in-n-best)"
            )
            raise line.error(expected, "none")
        score = float(values @ self._weights)
        if self._column is not None:
            value = values[self._column]
            score -= self._weights[self._column] * value
            self._values.append(value)
        self._scores.append(score)
        for of_phrase in line.phrases(len(source)):
            phrase = source[of_phrase.source : of_phrase.source_end]
            translation = line.words[of_phrase.target : of_phrase.target_end]
            self._phrases.append(self._pair(phrase, translation, line))
        self._ends.append(len(self._phrases))
        return line.words

    def _pair(self, source: Words, target: Words, line: NbestLine) -> int:
        key = b" ".join(source), b" ".join(target)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            try:
                sides = self._words.pair(*key)
            except WordError as error:
                raise WordError(f"{line.where}: {error}") from None
            for words, vocabulary, ids in zip(sides, self._vocabularies, self._sides, strict=True):
                ids.append(vocabulary.ids(words))
        return number
