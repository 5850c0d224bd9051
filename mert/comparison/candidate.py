"""The candidates of a comparison: systems to tune, and finished outputs of other systems.

Finished outputs are kept as n-best lists with one translation per sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mert.comparison.results import TuningRun
from mert.comparison.significance import CorpusScorer
from mert.settings import DecoderSettings
from mert.tuning.corpus import Corpus
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import Text, read_text
from moses_feature.moses.phrase_table import SEPARATOR
from moses_feature.runtime.errors import DataError, FormatError, UsageError
from moses_feature.runtime.files import open_output

RESULTS = "comparison.json"
PAGE = "comparison.html"
IDENTITY = "identity.json"


@dataclass(frozen=True)
class Candidate:
    """A system to compare: its name, its ini, and the models that rescore its n-best lists."""

    name: str
    ini: MosesIni
    rescoring: tuple[tuple[str, str], ...] = ()

    def decoder(self, settings: DecoderSettings) -> DecoderSettings:
        """Return the settings of this system's decoder."""
        return replace(settings, rescoring=self.rescoring)


def check_names(names: list[str]) -> None:
    """Check that there are systems, and that their names are good and unique.

    Raises:
        UsageError: there is none, a name is used twice, or cannot be that of a folder.
    """
    if not names:
        raise UsageError("nothing to compare: expected NAME=INI, or --translations NAME=FILE")
    if len(set(names)) != len(names):
        raise UsageError(f"system names: expected different ones, found {', '.join(names)}")
    for name in names:
        _check_name(name)


def _check_name(name: str) -> None:
    reserved = (RESULTS, PAGE, IDENTITY)
    if not re.fullmatch(r"[\w+.@-]+", name) or name.startswith("."):
        raise UsageError(f"system name {name!r}: expected letters, digits, + - . _ @")
    if name in reserved:
        raise UsageError(f"system name {name!r}: expected none of {', '.join(reserved)}")


def read_output(path: str, test: Corpus) -> Text:
    """Return the translations of a file.

    Raises:
        DataError: it has no line for each sentence of the test set, no words, or words that no
            n-best list can hold.
    """
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


def runs_of(texts: Sequence[Text], scorer: CorpusScorer, directory: Path) -> tuple[TuningRun, ...]:
    """Score the translations of each file, and keep them in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    runs = []
    for number, sentences in enumerate(texts, 1):
        lists = directory / f"output-{number}.nbest.gz"
        _write_lists(sentences, lists)
        score, statistics = scorer.score(lists)
        runs.append(
            TuningRun(
                seed=number,
                dev_score=math.nan,
                test_score=score,
                iterations=0,
                stopped="a finished output",
                has_converged=True,
                kept_start=False,
                weights={},
                constants=(),
                test_statistics=statistics,
                test_lists=lists,
            )
        )
    return tuple(runs)


def _write_lists(sentences: Text, lists: Path) -> None:
    with open_output(lists, 1) as file:
        for number, words in enumerate(sentences):
            text = b"".join(word + b" " for word in words)
            file.write(b"%d ||| %b |||  ||| 0\n" % (number, text))
