"""For Python programs: read tables, train and score, rescore n-best lists, translate.

Phrases are text, or bytes in the encoding of the table that the model was trained on (text is
encoded as UTF-8); their words are separated by spaces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.building.preparation import is_of_raw_text
from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.reader import MOSES, NbestReader
from moses_feature.moses.phrase_table import (
    SCORES,
    SOURCE,
    TARGET,
    checked_fields,
)
from moses_feature.moses.system_directory import SystemDirectory
from moses_feature.moses.words import WordError
from moses_feature.phrases import model as models
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.settings import TrainingData, TrainingSettings
from moses_feature.phrases.table_words import TableWords
from moses_feature.phrases.training import train as train_model
from moses_feature.rescoring.features import scorers_of
from moses_feature.rescoring.nbest import read_weights
from moses_feature.rescoring.nbest import rescore as rescored
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import FormatError, shown
from moses_feature.runtime.files import open_output
from moses_feature.training.objective import choose_device
from moses_feature.training.trainer import RunControl, TrainingState
from moses_feature.translation.translator import Translator

__all__ = [
    "Phrase",
    "PhraseScorer",
    "TableEntry",
    "load_model",
    "read_table",
    "rescore",
    "train",
    "translate",
]

Phrase = str | bytes
TextPath = str | Path

PAIRS_TOGETHER = 4096


@dataclass(frozen=True)
class TableEntry:
    """A line of a phrase table.

    Attributes:
        source, target: the phrases; bytes that are not UTF-8 are kept as surrogates.
        scores: as in the table, usually probabilities.
    """

    source: str
    target: str
    scores: tuple[float, ...]


def read_table(path: TextPath) -> Iterator[TableEntry]:
    """Yield the lines of a phrase table, compressed or not.

    Raises:
        FormatError: a line that is not of a phrase table.
        MosesFeatureError: the table cannot be read.
    """
    with LineReader(path) as reader:
        for line in reader:
            fields = checked_fields(line, reader.path, reader.line_number)
            source, target = (_text(fields[side]) for side in (SOURCE, TARGET))
            scores = tuple(map(float, fields[SCORES].split()))
            if not all(map(math.isfinite, scores)):
                raise FormatError(
                    reader.path, "finite scores", shown(fields[SCORES]), reader.line_number
                )
            yield TableEntry(source, target, scores)


def load_model(
    directory: TextPath, device: str = "auto", words: TableWords | None = None
) -> PhraseScorer:
    """Load a model trained by `moses-feature model train` or `augment-phrase-table`.

    Args:
        directory: the model directory.
        device: auto, cpu, cuda, cuda:1, …
        words: how tokens become words of the model; None for tokens that are escaped like Moses'
            (`&apos;`), with the factors of the training.

    Raises:
        MosesFeatureError: there is no model, its files are damaged, or there is no such device.
    """
    return PhraseScorer(Path(directory), device, words or TableWords())


class PhraseScorer:
    """A model that scores phrase pairs; see `load_model`."""

    def __init__(self, directory: Path, device: str, words: TableWords) -> None:
        model = models.load_model(directory)
        self._words = words.words(model)
        self._scorer = scorer_of(model, choose_device(device))

    def log_probs(self, pairs: Iterable[tuple[Phrase, Phrase]]) -> NDArray[np.float64]:
        """Return log p(target | source) of pairs of a source and a target phrase.

        Returns:
            (pairs,) natural logs, the end of the phrase included.

        Raises:
            WordError: a phrase that cannot be turned into words of the model.
        """
        scores = [np.zeros(0)]
        rest = iter(pairs)
        while batch := list(islice(rest, PAIRS_TOGETHER)):
            words = [self._words.pair(_bytes(source), _bytes(target)) for source, target in batch]
            scores.append(self._scorer.score(words).log_probs)
        return np.concatenate(scores)


def train(
    tables: Sequence[TextPath],
    directory: TextPath,
    *,
    settings: TrainingSettings | None = None,
    device: str = "auto",
    resume: bool = False,
    report: Callable[[TrainingState], None] = lambda _: None,
) -> PhraseScorer:
    """Train a network on the phrase pairs of tables, as `moses-feature model train` does.

    Args:
        tables: phrase tables, or tab-separated files of phrase pairs.
        directory: the model directory; must not hold a model unless the run is resumed.
        settings: sizes, which do not depend on the time here, optimiser, budget; None for the
            defaults, which end when the held-out loss no longer falls.
        device: auto, cpu, cuda, cuda:1, …
        resume: continue a run that was killed, or that is to have more updates.
        report: called with the state of the run after each update.

    Returns:
        The model with the best held-out loss.

    Raises:
        UsageError: the directory holds a model already.
        MosesFeatureError: bad data, or no such device.
    """
    data = TrainingData(tuple(map(str, tables)))
    control = RunControl(resume=resume, report=report)
    of_device = choose_device(device)
    train_model(data, settings or TrainingSettings(), Path(directory), of_device, control)
    return load_model(directory, device)


def rescore(
    lists: TextPath,
    output: TextPath,
    models: Mapping[str, TextPath],
    *,
    source: TextPath | None = None,
    weights: TextPath | None = None,
) -> int:
    """Add a feature of each model to n-best lists, as `moses-feature list rescore` does.

    Args:
        lists: n-best lists in Moses' format.
        output: the lists with the new features.
        models: the models by the names of their features, such as `RNNsearch0`.
        source: the text that was translated; for all models but neural language models.
        weights: a file of weights for all features, by which each list is put in order; None
            keeps the order.

    Returns:
        The number of translations.

    Raises:
        MosesFeatureError: a damaged line, or a model that does not fit the lists.
    """
    text = SourceText([], "") if source is None else SourceText.read(str(source))
    scorers = scorers_of([(name, str(path)) for name, path in models.items()], text)
    of_file = None if weights is None else read_weights(weights)
    count = 0
    with NbestReader(str(lists), MOSES) as reader, open_output(Path(output)) as file:
        for translations in rescored(reader, scorers, of_file):
            file.writelines(line.content() for line in translations)
            count += len(translations)
    return count


def translate(
    system: TextPath, sentences: Sequence[str], *, as_tokens: bool | None = None
) -> list[str]:
    """Translate sentences with the embedded decoder, as `moses-feature translate` does.

    Args:
        system: a moses.ini, or the directory of `system build` or of a tuning run, whose lists are
            rescored if they were for tuning.
        sentences: raw text if the system was built of raw text, else tokens with spaces between.
        as_tokens: whether they are tokens all the same, and the translations, too.

    Returns:
        A translation of each.

    Raises:
        MosesFeatureError: the decoder cannot follow the system, a model cannot be read, or a
            sentence cannot be translated.
    """
    built = SystemDirectory.read(Path(system)).built
    by_tokens = not is_of_raw_text(built) if as_tokens is None else as_tokens
    translator = Translator(Path(system), by_tokens)
    return [translator.translate(of).translations[0].text for of in sentences]


def _bytes(phrase: Phrase) -> bytes:
    try:
        return phrase if isinstance(phrase, bytes) else phrase.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise WordError(f"expected text, found {phrase!r}") from error


def _text(field: bytes) -> str:
    return field.strip(b" \t").decode(errors="surrogateescape")
