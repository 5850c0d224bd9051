"""A tuned system as a whole: raw text in, raw text out.

A sentence is tokenised as the system's texts were, decoded, its list is rescored, and the best
translation is put together again: the same as the steps one by one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from moses_feature.building.preparation import Preparer, check_available, preparation_of
from moses_feature.building.settings import LONGEST_SENTENCE
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.resources import Resources
from moses_feature.decoder.system import System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import SYSTEM
from moses_feature.moses.nbest_lists import Hypothesis, reranked
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.system_directory import WHAT, SystemDirectory
from moses_feature.moses.words import unescape
from moses_feature.moses.xml_input import Marks, parse_marked
from moses_feature.rescoring.features import scorers_of, with_rescoring
from moses_feature.rescoring.nbest import FEWEST_RESCORED, SentenceScorer, new_features
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.json_files import read_json
from moses_feature.translation.translated import LINE_BREAKS, Translated, Translation


class Translator:
    """Translates one sentence after the other.

    Args:
        directory: the system: a directory of `system build` or of tuning, or a moses.ini.
        as_tokens: whether text comes in and goes out as tokens, as it is in the system's texts.
        limits: of the search.
        xml_input: what translations that the input gives are for, one of `POLICIES`; None if there
            are no tags in it.

    Raises:
        MosesFeatureError: the system cannot be read, or was not built of raw text and `as_tokens`
            is not set.
    """

    def __init__(
        self,
        directory: Path,
        as_tokens: bool = False,
        limits: SearchLimits | None = None,
        xml_input: str | None = None,
    ) -> None:
        of = SystemDirectory.read(directory)
        self._words = None if as_tokens else _RawText(of.built, directory)
        self._system = replace(System.of_ini(of.moses_ini()), segmentation=True)
        self._limits, self._xml_input = limits, xml_input
        self._resources = Resources.of(self._system)
        self._features = self._system.features
        self._rescorer = _Rescorer(of, self._features) if of.rescoring else None

    def translate(self, line: str, count: int = 1, as_tokens: bool = False) -> Translated:
        """Translate a sentence; an empty one has an empty translation.

        Args:
            line: the sentence.
            count: the most translations.
            as_tokens: whether this sentence is tokens, and its translation, too.

        Raises:
            MosesFeatureError: the sentence is too long, cannot be tokenised, has wrong tags, or no
                translation within the distortion limit.
        """
        begun = time.monotonic()
        if "\0" in line:
            raise MosesFeatureError("expected text, found a NUL")
        if LINE_BREAKS.intersection(line.rstrip("\r\n")):
            raise MosesFeatureError("expected one sentence, found a line break")
        words = None if as_tokens else self._words
        words_of = words.tokens if words else tokens
        text, marks = line.encode(errors="surrogateescape"), None
        if self._xml_input is None:
            sentence = words_of(text)
        else:
            marked = parse_marked(text, (lambda of: words_of(unescape(of))) if words else tokens)
            sentence, marks = list(marked.words), Marks((marked,), self._xml_input)
        if words is None and any(b"|" in word for word in sentence):
            raise MosesFeatureError("expected words without | (escaped: &#124;)")
        if len(sentence) > LONGEST_SENTENCE:
            raise MosesFeatureError(
                f"expected {LONGEST_SENTENCE} words at most, found {len(sentence)}"
            )
        decoder = EmbeddedDecoder(
            self._system, [sentence], self._limits, resources=self._resources, marks=marks
        )
        if self._rescorer is None:
            found, features = decoder.translate(0, count), self._features
        else:
            found = self._rescorer.rescored(sentence, decoder)[:count]
            features = self._rescorer.features
        if not found:
            raise MosesFeatureError("found no translation within the distortion limit")
        translations = tuple(_translation(hypothesis, features, words) for hypothesis in found)
        return Translated(
            b" ".join(sentence).decode(errors="surrogateescape"),
            translations,
            _by_name(features, features.weights[features.tuneable]),
            time.monotonic() - begun,
        )


def _translation(hypothesis: Hypothesis, features: FeatureSet, raw: _RawText | None) -> Translation:
    words = b" ".join(hypothesis.words).decode(errors="surrogateescape")
    return Translation(
        raw.text(words) if raw else words,
        words,
        round(hypothesis.score, 6),
        _by_name(features, hypothesis.features),
        (hypothesis.segmentation or b"").decode(),
    )


def _by_name(features: FeatureSet, values: Floats) -> dict[str, list[float]]:
    """Return the values or weights of the tuneable features, by the name of their function."""
    rounded = iter(np.round(values, 6).tolist())
    return {
        function.name: [next(rounded) for _ in range(sum(function.tuneable))]
        for function in features.functions
        if any(function.tuneable)
    }


class _RawText:
    """Raw text to tokens and back, as a system's texts were prepared."""

    def __init__(self, built: Path | None, directory: Path) -> None:
        if built is None:
            raise MosesFeatureError(
                f"{directory}: expected a system built with --raw, found one of tokens: give "
                "--tokens"
            )
        check_available()
        from sacremoses import MosesDetokenizer, MosesDetruecaser

        if not (built / SYSTEM).is_file():
            raise MosesFeatureError(
                f"{built}: expected the system that {directory} was tuned from, found none"
            )
        content = read_json(built / SYSTEM, WHAT)
        self._preparer = Preparer(preparation_of(content, "source", built))
        target = preparation_of(content, "target", built)
        self._detokenizer: Any = MosesDetokenizer(lang=target.language)
        self._detruecaser: Any = MosesDetruecaser() if target.case == "truecase" else None

    def tokens(self, text: bytes) -> list[bytes]:
        """Return the tokens of a text, as the system reads them."""
        line = text.decode(errors="surrogateescape")
        if not line.isprintable() and any("\udc80" <= character <= "\udcff" for character in line):
            raise MosesFeatureError("expected UTF-8, found bytes that are not")
        return tokens(self._preparer(line).encode())

    def text(self, words: str) -> str:
        """Return a translation as text."""
        of = words.split()
        if self._detruecaser is not None:
            of = self._detruecaser.detruecase(words)
        return str(self._detokenizer.detokenize(of, unescape=True))


class _Rescorer:
    """Puts lists in order by models and weights that tuning has found."""

    def __init__(self, of: SystemDirectory, features: FeatureSet) -> None:
        self._source = SourceText([b""], "the sentences to translate", is_stream=True)
        self._scorers: list[SentenceScorer] = scorers_of(of.rescoring, self._source)
        self.features = with_rescoring(features, self._scorers, of.weights or Path())
        self._size = max(of.list_size, FEWEST_RESCORED)

    def rescored(self, sentence: Sequence[bytes], decoder: EmbeddedDecoder) -> list[Hypothesis]:
        """Return the translations of a sentence, best first."""
        found = decoder.translate(0, self._size)
        if not found:
            return found
        self._source.replace([b" ".join(sentence)])
        new = new_features(self._scorers, [(0, found)])
        return reranked(found, list(new), self.features.weights[self.features.tuneable])
