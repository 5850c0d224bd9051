"""Finished outputs as runs of a comparison: kept as lists of one translation a sentence."""

from __future__ import annotations

import math
from pathlib import Path

from xopen import xopen

from mert.comparison.candidate import FinishedOutput
from mert.comparison.results import Run
from mert.comparison.scorer import Scorer
from mert.corpus import Corpus
from moses_feature.errors import DataError, FormatError
from moses_feature.files import whole_file
from moses_feature.moses.phrase_table import SEPARATOR
from moses_feature.moses.texts import Text, read_text

Texts = tuple[Text, ...]


def read_outputs(output: FinishedOutput, test: Corpus) -> Texts:
    """Return the translations of each file.

    Raises:
        DataError: a file that has not a line for each sentence of the test set, no word, or words
            that no n-best list can hold.
    """
    return tuple(_read(path, test) for path in output.paths)


def _read(path: str, test: Corpus) -> Text:
    sentences, _ = read_text(path)
    if len(sentences) != len(test):
        expected = f"{len(test)} lines as in {test.paths[0]}"
        raise DataError(f"{path}: expected {expected}, found {len(sentences)}")
    if not any(sentences):
        raise DataError(f"{path}: expected translations, found no word")
    for number, words in enumerate(sentences, 1):
        if SEPARATOR in b" ".join(words):
            raise FormatError(path, "a translation alone, without |||", "a |||", number)
    return sentences


def runs_of(texts: Texts, scorer: Scorer, directory: Path) -> tuple[Run, ...]:
    """Score the translations of each file; they are kept in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    runs = []
    for number, sentences in enumerate(texts, 1):
        lists = directory / f"output-{number}.nbest.gz"
        _write_lists(sentences, lists)
        score, statistics = scorer.score(lists)
        runs.append(
            Run(
                seed=number,
                dev_score=math.nan,
                test_score=score,
                iterations=0,
                stopped="a finished output",
                weights={},
                constants=(),
                test_statistics=statistics,
                test_lists=lists,
            )
        )
    return tuple(runs)


def _write_lists(sentences: Text, lists: Path) -> None:
    with (
        whole_file(lists) as temporary,
        xopen(temporary, "wb", format="gz", compresslevel=1, threads=0) as file,
    ):
        for number, words in enumerate(sentences):
            text = b"".join(word + b" " for word in words)
            file.write(b"%d ||| %b |||  ||| 0\n" % (number, text))
