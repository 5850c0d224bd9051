"""Predict the effect of new columns of a phrase table from existing n-best lists.

The lists of the system without the columns give the phrases of each translation, so the columns of
a translation can be added up without decoding. Weights are optimised on one half of the sentences,
with and without the columns, and BLEU is measured on the other half, both ways. Translations that a
search with the new columns would find outside the lists are not considered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mert.comparison.significance import bootstrap_differences, mean_quality, p_of_differences
from mert.optimisers.candidates import Candidates, normalised
from mert.optimisers.choice import HALVES, Optimizer, cross_optimised
from mert.tuning.corpus import Corpus
from mert.tuning.pool import HypothesisPool
from moses_feature.decoder.source_phrases import Sentence, surface
from moses_feature.moses.features import FeatureSet, log_scores
from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_lists import Hypothesis, read_nbest
from moses_feature.moses.phrase_table import SCORES, SOURCE, TARGET, split_fields, tokens
from moses_feature.moses.segmentation import read_segmentation
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import DataError, FormatError, shown

Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class Prediction:
    """The predicted effect; BLEU 0 to 100, each half with weights optimised on the other half.

    Attributes:
        before, after: BLEU without and with the columns, mean over the runs.
        interval: of the difference, from the 2.5th to the 97.5th percentile of resampled
            sentences.
        p: p-value of the difference, two-sided, by the paired bootstrap.
        weights: (runs × halves, columns) of the new columns; the absolute values of all weights
            sum to 1.
    """

    before: float
    after: float
    interval: tuple[float, float]
    p: float
    weights: Floats


class ColumnSums:
    """The new columns of an augmented table for some phrase pairs, natural logs.

    Args:
        table: the augmented table.
        old: the number of scores before augmenting.
        wanted: the pairs; each is in the table, or copies a word that the table does not have.

    Raises:
        FormatError: a damaged line of a wanted pair, or too few scores.
    """

    def __init__(self, table: str, old: int, wanted: set[Pair]) -> None:
        self._table = table
        self._values: dict[Pair, Floats] = {}
        with LineReader(table) as reader:
            for line in reader:
                fields = split_fields(line, table, reader.line_number)
                pair = _words(tokens(fields[SOURCE])), _words(tokens(fields[TARGET]))
                if pair in wanted:
                    self._values[pair] = self._new(fields[SCORES], old, reader.line_number)
        self.count = len(next(iter(self._values.values()), ()))
        for pair, values in self._values.items():
            if len(values) != self.count:
                found = shown(b" ||| ".join(pair))
                raise FormatError(table, f"{self.count} new scores in all lines", found)

    def _new(self, field: bytes, old: int, line_number: int) -> Floats:
        scores = field.split()
        if len(scores) <= old:
            expected = f"more than the {old} scores of the ini's table"
            raise FormatError(self._table, expected, f"{len(scores)}", line_number)
        try:
            return log_scores(field)[old:]
        except ValueError:
            raise FormatError(
                self._table, "scores of 0 or more", shown(field), line_number
            ) from None

    def of(self, pairs: Iterable[Pair]) -> Floats:
        """Return the sum of the columns (count,) over phrase pairs.

        Raises:
            DataError: the table lacks a pair.
        """
        total = np.zeros(self.count)
        for pair in pairs:
            values = self._values.get(pair)
            if values is not None:
                total += values
            elif pair[0] != pair[1] or b" " in pair[0]:
                found = shown(b" ||| ".join(pair))
                raise DataError(
                    f"{self._table}: expected a line for each phrase pair of the lists, found none "
                    f"for {found}"
                )
        return total


def what_if(
    lists: str,
    features: FeatureSet,
    table: str,
    old: int,
    corpus: Corpus,
    optimizer: Optimizer,
    seeds: Sequence[int],
    start: float = 0.1,
) -> Prediction:
    """Predict the effect of new columns.

    Args:
        lists: n-best lists with segmentation, of the system without the columns.
        features: the features of that system, with the start weights.
        table: its phrase table with the new columns.
        old: the number of scores before augmenting.
        corpus: the text of the lists.
        optimizer: the optimiser of the weights.
        seeds: the seeds of the runs.
        start: start weight of a new column, where the others' absolute values sum to 1.

    Raises:
        FormatError: a damaged line, or lists without segmentation.
        DataError: the lists are of another table, or too few.
    """
    try:
        read = list(read_nbest(lists, features, len(corpus)))
    except FormatError:
        raise
    except DataError as error:
        hint = ": expected lists of the ini's system, which is without the new columns"
        raise DataError(f"{error}{hint}") from None
    pairs = [
        [_pairs(hypothesis, sentence, lists, number) for hypothesis in hypotheses]
        for number, (hypotheses, sentence) in enumerate(zip(read, corpus.sentences, strict=True))
    ]
    if sum(len(hypotheses) > 1 for hypotheses in read) < HALVES:
        raise DataError(f"{lists}: expected lists of {HALVES} sentences and more")
    wanted = {pair for of_list in pairs for of_one in of_list for pair in of_one}
    columns = ColumnSums(table, old, wanted)
    grown = [
        [
            replace(h, features=np.concatenate([h.features, columns.of(of_one)]))
            for h, of_one in zip(hypotheses, of_list, strict=True)
        ]
        for hypotheses, of_list in zip(read, pairs, strict=True)
    ]
    weights = normalised(features.weights[features.tuneable])
    names = features.names
    new_names = tuple(f"new_{number}" for number in range(columns.count))
    before = _candidates(read, corpus, names)
    after = _candidates(grown, corpus, (*names, *new_names))
    started = np.concatenate([weights, np.full(columns.count, start)])
    plain = [cross_optimised(before, weights, optimizer, seed) for seed in seeds]
    with_columns = [cross_optimised(after, started, optimizer, seed) for seed in seeds]
    system, baseline = (np.stack([of for of, _ in runs]) for runs in (with_columns, plain))
    differences = bootstrap_differences(system, baseline)
    low, high = np.percentile(100 * differences, [2.5, 97.5]).tolist()
    return Prediction(
        before=100 * mean_quality(baseline),
        after=100 * mean_quality(system),
        interval=(low, high),
        p=p_of_differences(differences, mean_quality(system) - mean_quality(baseline)),
        weights=np.concatenate([found[:, len(names) :] for _, found in with_columns]),
    )


def _pairs(hypothesis: Hypothesis, source: Sentence, lists: str, number: int) -> list[Pair]:
    where = f"{lists}: sentence {number}"
    if hypothesis.segmentation is None:
        raise DataError(
            f"{where}: expected the phrases behind the total (mert-decode --with-segmentation), "
            "found none"
        )
    words = surface(source)
    try:
        places = read_segmentation(hypothesis.segmentation, len(words), len(hypothesis.words))
    except ValueError as error:
        expected, found = error.args
        raise DataError(f"{where}: expected {expected}, found {found}") from None
    return [
        (_words(words[p.source : p.source_end]), _words(hypothesis.words[p.target : p.target_end]))
        for p in places
    ]


def _words(words: Sequence[bytes]) -> bytes:
    return b" ".join(words)


def _candidates(
    lists: Sequence[Sequence[Hypothesis]],
    corpus: Corpus,
    names: tuple[str, ...],
) -> Candidates:
    pool = HypothesisPool(corpus.references, names)
    pool.add(lists)
    return pool.candidates()
