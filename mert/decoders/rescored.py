"""Features that the decoder does not have, added to its n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from mert.decoders.decoder import Decoder
from moses_feature.moses.features import FeatureFunction, FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.nbest_lists import Hypothesis, format_nbest, read_nbest, reranked
from moses_feature.rescoring.nbest import (
    FEWEST_RESCORED,
    BadTranslationError,
    SentenceScorer,
    in_groups,
    new_features,
)
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import open_output

START_WEIGHT = 0.1


class RescoredDecoder:
    """A decoder whose n-best lists get more features and are reranked; see `Decoder`.

    The search has its own weights, at first those of the ini. The new scores of a translation are
    remembered from one iteration of tuning to the next.

    Attributes:
        plain: the decoder without the new features.
        models: the names of the new features and the paths of their models.

    Args:
        decoder: the decoder.
        scorers: scorers of the new features.
        models: the names of these features and the paths of their models.
        sentences: the number of sentences that the decoder translates.
        threads: threads that score, each some sentences at a time.
    """

    def __init__(
        self,
        decoder: Decoder,
        scorers: Sequence[SentenceScorer],
        models: Sequence[tuple[str, str]],
        sentences: int,
        threads: int = 1,
    ) -> None:
        names = {function.name for function in decoder.features.functions}
        for scorer in scorers:
            if scorer.name in names:
                raise UsageError(
                    f"the system has a feature {scorer.name} already: give another "
                    "name to what rescores"
                )
        self.plain = decoder
        self.models = models
        self._search = decoder.features
        self._lists: Path | None = None
        self._scorers = scorers
        self._sentences = sentences
        self._threads = threads
        self._known: list[dict[tuple[bytes, ...], Floats]] = [{} for _ in range(sentences)]
        self._new = tuple(FeatureFunction(s.name, (START_WEIGHT,), (True,)) for s in scorers)

    @property
    def features(self) -> FeatureSet:
        """The features of the search, with its weights, and the new ones."""
        return FeatureSet((*self._search.functions, *self._new))

    def search_with(self, ini: MosesIni) -> None:
        """Use the weights of an ini in the search from now on."""
        self._forget_lists()
        self._search = self.plain.features.with_weights_of(ini)

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate the whole text, score and rerank the lists; see `Decoder`.

        The weights only rerank the lists; the search has its own.
        """
        weights = features.weights[features.tuneable]
        with open_output(path, 1) as file:
            lists = read_nbest(
                self._searched(max(count, FEWEST_RESCORED), path, report),
                self._search,
                self._sentences,
            )
            rescored = partial(self._rescored, weights=weights)
            for sentence, best in enumerate(in_groups(rescored, enumerate(lists), self._threads)):
                file.write(format_nbest(sentence, best[:count], features))
            for scorer in self._scorers:
                scorer.finish()

    def _searched(self, count: int, path: Path, report: Callable[[int], None]) -> Path:
        """Return the lists of the search; they change only with the weights of the search."""
        lists = path.with_name(f".searched.best{count}.gz")
        if lists != self._lists:
            self._forget_lists()
            self.plain.write_nbest(self._search, count, lists, report)
            self._lists = lists
        return lists

    def _forget_lists(self) -> None:
        if self._lists is not None:
            self._lists.unlink(missing_ok=True)
            self._lists = None

    def search_errors(self, features: FeatureSet, count: int) -> None:  # noqa: ARG002
        """Return None: errors of the search were counted when it was tuned."""
        return

    def _rescored(
        self, lists: Sequence[tuple[int, list[Hypothesis]]], weights: np.ndarray
    ) -> list[list[Hypothesis]]:
        """Return lists with more features, best first."""
        unknown = [
            (sentence, {h.words: h for h in hypotheses if h.words not in self._known[sentence]})
            for sentence, hypotheses in lists
        ]
        different = [(sentence, list(of.values())) for sentence, of in unknown if of]
        if different:
            scores = iter(self._scores(different))
            for sentence, of in unknown:
                self._known[sentence].update({words: next(scores) for words in of})
        return [
            reranked(hypotheses, [self._known[sentence][h.words] for h in hypotheses], weights)
            for sentence, hypotheses in lists
        ]

    def _scores(self, lists: Sequence[tuple[int, list[Hypothesis]]]) -> Floats:
        """Return the new features (translations, scorers), list after list."""
        try:
            return new_features(self._scorers, lists)
        except BadTranslationError as error:
            [sentence] = (n for n, some in lists for of in some if of is error.translation)
            raise MosesFeatureError(f"sentence {sentence + 1} of the text: {error}") from None

    def close(self) -> None:
        """Free the resources of the decoder."""
        self._forget_lists()
        self.plain.close()
