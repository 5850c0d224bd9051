"""Finished outputs as runs of a comparison: kept as lists of one translation a sentence."""

from __future__ import annotations

import math
from pathlib import Path

from xopen import xopen

from mert.comparison.candidate import FinishedOutput
from mert.comparison.results import Run
from mert.comparison.scorer import Scorer
from mert.corpus import Corpus, read_text
from moses_feature.errors import DataError
from moses_feature.files import whole_file


def runs_of(
    output: FinishedOutput, test: Corpus, scorer: Scorer, directory: Path
) -> tuple[Run, ...]:
    """Score each file; its translations are kept in the directory.

    Raises:
        DataError: a file that has not a line for each sentence of the test set, or no word.
    """
    directory.mkdir(parents=True, exist_ok=True)
    runs = []
    for number, path in enumerate(output.paths, 1):
        lists = directory / f"output-{number}.nbest.gz"
        _write_lists(path, test, lists)
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


def _write_lists(path: str, test: Corpus, lists: Path) -> None:
    sentences, _ = read_text(path)
    if len(sentences) != len(test):
        expected = f"{len(test)} lines as in {test.paths[0]}"
        raise DataError(f"{path}: expected {expected}, found {len(sentences)}")
    if not any(sentences):
        raise DataError(f"{path}: expected translations, found no word")
    with (
        whole_file(lists) as temporary,
        xopen(temporary, "wb", format="gz", compresslevel=1, threads=0) as file,
    ):
        for number, words in enumerate(sentences):
            text = b"".join(word + b" " for word in words)
            file.write(b"%d ||| %b |||  ||| 0\n" % (number, text))
