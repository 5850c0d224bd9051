"""The joint language model as a feature of whole translations; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from moses_feature.arrays import Integers
from moses_feature.joint.affiliation import affiliations
from moses_feature.joint.scorer import JointModel
from moses_feature.models.known_words import KnownPairs
from moses_feature.moses.phrase_table import tokens
from moses_feature.rescoring.nbest import TRANSLATIONS, AnyTranslation, BadTranslationError
from moses_feature.rescoring.source import SourceText


class JointFeature:
    """log p of a translation under a joint model, by the word alignment of the n-best list.

    A word without a link takes those of the nearest word of the sentence that has some; in search
    it is the nearest one of the phrase.

    Args:
        name: of the feature.
        directory: of the model.
        source: the text that was translated.
    """

    def __init__(self, name: str, directory: str, source: SourceText) -> None:
        self.name = name
        self._model = JointModel.load(Path(directory))
        self._source = source
        self._known = KnownPairs(
            directory, (source.name, TRANSLATIONS), (self._model.source, self._model.target)
        )

    def scores(self, sentence: int, translations: Sequence[AnyTranslation]) -> list[float]:
        """Return log p of each translation.

        Raises:
            BadTranslationError: one has no word alignment, or a bad one.
            MosesFeatureError: the model knows too few words.
        """
        model = self._model
        source = tokens(self._source.sentence(sentence))
        for translation in translations[:1]:
            self._known.add(source, translation.words)
        (windows,) = model.read([source])
        before = model.order - 1
        contexts, words = [], []
        for number, translation in enumerate(translations):
            ids = [model.begin] * before + model.ids(translation.words)
            places = self._affiliations(number, source, translation)
            contexts += [
                [window, *ids[n : n + before]] for n, window in enumerate(windows[places].tolist())
            ]
            words += ids[before:]
        found = model.log_probs(
            np.array(contexts, dtype=np.int32).reshape(-1, model.columns),
            np.array(words, dtype=np.int64),
        )
        ends = np.cumsum([len(translation.words) for translation in translations])
        return [float(part.sum(dtype=np.float64)) for part in np.split(found, ends[:-1])]

    def _affiliations(
        self, number: int, source: Sequence[bytes], translation: AnyTranslation
    ) -> Integers:
        links = translation.links
        if links is None and translation.words:
            expected = (
                "word alignments behind the total (Moses' -print-alignment-info-in-n-best, "
                "mert-decode --alignments)"
            )
            raise BadTranslationError(number, expected, "none")
        try:
            return affiliations(links or b"", len(source), len(translation.words))
        except ValueError as error:
            raise BadTranslationError(number, *error.args) from None

    def finish(self) -> None:
        """Check that lists, source and model belong together."""
        self._source.finish()
        self._known.check()
