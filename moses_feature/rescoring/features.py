"""Features of n-best lists: by the architecture of their models, or of other packages.

Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

from moses_feature.cslm.nplm import load_neural_lm
from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.moses.features import FeatureFunction, FeatureSet, WeightsByName
from moses_feature.moses.marked_models import MBR, split_mark
from moses_feature.moses.nbest_lists import named
from moses_feature.networks.architectures import ARCHITECTURES, SENTENCE_ARCHITECTURES
from moses_feature.networks.files import CONFIG, architecture_of, is_ctranslate2
from moses_feature.phrases.table_words import TableWords
from moses_feature.rescoring.ctranslate2 import CTRANSLATE2, CTranslate2Feature
from moses_feature.rescoring.mbr import MbrFeature
from moses_feature.rescoring.nbest import (
    CslmScorer,
    Lists,
    SentenceScorer,
    read_weights,
    refuse_too_long,
)
from moses_feature.rescoring.source import OwnSource, SourceText
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.sentences.scorer import SentenceModel, averaged
from moses_feature.sentences.settings import MOST_PIECES

GROUP = "moses_feature.features"
FeatureClass = Callable[[str, str, SourceText], SentenceScorer]
"""Takes the name of the feature, the path behind its mark (perhaps empty), and the source text."""


def plugin(mark: str) -> FeatureClass:
    """Return the class of a mark.

    Raises:
        UsageError: no package has it, or it cannot be loaded.
    """
    found = entry_points(group=GROUP)
    for point in found.select(name=mark):
        try:
            feature: FeatureClass = point.load()
        except (ImportError, AttributeError) as error:
            raise UsageError(f"{mark}: {point.value} cannot be loaded: {error}") from error
        return feature
    known = ", ".join(sorted({f"{name}:" for name in ("mbr", *found.names)}))
    raise UsageError(f"{mark}: expected {known} before a model, found another mark")


class SentenceFeature:
    """log p of a translation under a network for sentences, in the network's direction.

    With several networks (an ensemble), the probabilities of each word are averaged.

    Args:
        name: the name of the feature.
        directories: the model directories.
        source: the source text.

    Raises:
        UsageError: the networks read or write in different directions.
    """

    def __init__(self, name: str, directories: Sequence[str], source: SourceText) -> None:
        self.name = name
        self._networks = [SentenceModel(Path(directory)) for directory in directories]
        self._words = [TableWords().words(network) for network in self._networks]
        self._source = source
        self._own = OwnSource(name, source.name)
        self._known = [
            source.known_to(directory, network.direction.texts(network.source, network.target))
            for directory, network in zip(directories, self._networks, strict=True)
        ]
        first = self._networks[0].direction
        for directory, network in zip(directories, self._networks, strict=True):
            if network.direction != first:
                raise UsageError(
                    f"{name}: expected networks of one direction, as {directories[0]} "
                    f"({first}), found {directory} ({network.direction}): give them different names"
                )

    def scores(self, lists: Lists) -> list[float]:
        """Return log p of each translation, or of the source given it.

        Raises:
            BadTranslationError: the first of a list is aligned to words that its source does not
                have.
            MosesFeatureError: a network knows too few words.
        """
        given, firsts = self._source.pairs(lists)
        pairs = [(source, b" ".join(of.words)) for source, of in given]
        found = []
        for network, words, known in zip(self._networks, self._words, self._known, strict=True):
            read = [words.sentences(*pair) for pair in pairs]
            for (_, translation), sides, of in zip(given, pairs, read, strict=True):
                if max(map(len, sides)) >= MOST_PIECES:
                    refuse_too_long(translation, max(map(len, network.ids(*of))))
            for _, first in firsts:
                known.add(*read[first])
            found.append(network.token_log_probs(read))
        for sentence, first in firsts:
            if not self._own.is_done:
                self._compare(sentence, pairs[first][1], found[0][first])
        return [float(averaged(of_networks).sum()) for of_networks in zip(*found, strict=True)]

    def _compare(self, sentence: int, text: bytes, own: np.ndarray) -> None:
        """Compare log p of a translation given its own sentence and given a neighbouring one."""
        beside = self._source.beside(sentence)
        if text and beside is not None and len(beside) < MOST_PIECES:
            network = self._networks[0]
            (other,) = network.token_log_probs([self._words[0].sentences(beside, text)])
            self._own.add(float(own.mean()), float(other.mean()))

    def finish(self) -> None:
        """Check that lists, source and networks belong together."""
        self._source.finish()
        for known in self._known:
            known.check()
        self._own.finish()


NAMES = {
    f"{MBR}:": "Mbr0",
    LM_ARCHITECTURE: "CSLM0",
    CTRANSLATE2: "NMT0",
}
"""Default names of features by the kind of model; `Architecture.feature` has the others."""


def named_model(text: str) -> tuple[str, str]:
    """Split `NAME=PATH`; without `NAME=`, the name depends on the architecture.

    Raises:
        UsageError: a name that Moses' tools could not parse.
    """
    kind = model_kind(text)
    if kind in SENTENCE_ARCHITECTURES:
        return named(text, ARCHITECTURES[kind].feature)
    of_plugin = f"{kind.strip(':').replace('-', '').capitalize()}0" if ":" in kind else "CSLM0"
    return named(text, NAMES.get(kind, of_plugin))


def scorers_of(models: Iterable[tuple[str, str]], source: SourceText) -> list[SentenceScorer]:
    """Return a feature for each name, from a language model or from one or more sentence networks.

    Args:
        models: names and paths.
        source: the source text.

    Raises:
        UsageError: several models of one name cannot be averaged.
        MosesFeatureError: a model cannot be read.
    """
    makers: dict[str, Callable[[str, str], SentenceScorer]] = {
        LM_ARCHITECTURE: lambda name, path: CslmScorer(
            name, load_neural_lm(path), source.is_stream
        ),
        CTRANSLATE2: lambda name, path: CTranslate2Feature(name, path, source),
    }
    scorers: list[SentenceScorer] = []
    of_sentences: dict[str, list[str]] = {}
    of_mbr: dict[str, list[str]] = {}
    for name, path in models:
        kind = model_kind(path)
        mark, unmarked = split_mark(path)
        if mark == MBR:
            of_mbr.setdefault(name, []).append(_mbr_network(path))
        elif mark:
            scorers.append(plugin(mark)(name, unmarked, source))
        elif kind in SENTENCE_ARCHITECTURES:
            of_sentences.setdefault(name, []).append(path)
        elif kind in makers:
            scorers.append(makers[kind](name, path))
        else:
            expected = f"architecture {' or '.join([*SENTENCE_ARCHITECTURES, *makers])}"
            raise FormatError(Path(path) / CONFIG, expected, kind)
    scorers += [SentenceFeature(name, paths, source) for name, paths in of_sentences.items()]
    scorers += [MbrFeature(name, paths, source) for name, paths in of_mbr.items()]
    names = [scorer.name for scorer in scorers]
    if len(set(names)) != len(names):
        raise UsageError(
            f"features: expected different names, found {', '.join(names)} (several sentence "
            f"networks of one name are averaged; {MBR}: has another name)"
        )
    return scorers


def _mbr_network(model: str) -> str:
    """Return the path of a network whose own translations count."""
    _, path = split_mark(model)
    if not path:
        raise UsageError(f"{model}: expected {MBR}:MODEL")
    if not Path(path).is_dir():
        raise MosesFeatureError(f"{model}: expected a model directory, found none")
    if (kind := model_kind(path)) not in SENTENCE_ARCHITECTURES:
        expected = " or ".join(SENTENCE_ARCHITECTURES)
        raise UsageError(f"{model}: expected a network that translates, {expected}, found {kind}")
    return path


def with_rescoring(
    features: FeatureSet, scorers: Sequence[SentenceScorer], path: Path
) -> FeatureSet:
    """Return the features of rescored lists, with the weights that tuning has written.

    Args:
        features: those of the decoder.
        scorers: the scorers of the new features.
        path: the weights; see `read_weights`.

    Raises:
        MosesFeatureError: a feature has not as many weights as it needs, weights are of no feature,
            or the file is bad.
    """
    weights = read_weights(path)
    new = [FeatureFunction(scorer.name, (0.0,), (True,)) for scorer in scorers]
    functions = (*features.functions, *new)
    if others := sorted(weights.keys() - {function.name for function in functions}):
        raise MosesFeatureError(
            f"{path}: expected weights of the system's features, found those of {others[0]}"
        )
    return FeatureSet(tuple(_weighted(function, weights, path) for function in functions))


def _weighted(function: FeatureFunction, weights: WeightsByName, path: Path) -> FeatureFunction:
    """Return a feature with weights for its tuneable values, or for all of them."""
    found, all_values = weights.get(function.name, ()), len(function.weights)
    expected = sum(function.tuneable)
    if len(found) not in {expected, all_values} and expected:
        raise MosesFeatureError(
            f"{path}: expected {expected} weights of {function.name}, found {len(found)}"
        )
    if len(found) == all_values or not expected:
        return replace(function, weights=tuple(found) or function.weights)
    of_tuneable = iter(found)
    both = zip(function.weights, function.tuneable, strict=True)
    return replace(function, weights=tuple(next(of_tuneable) if t else own for own, t in both))


def model_kind(path: str) -> str:
    """Return the architecture of a model directory; a file is a language model in NPLM's format.

    Of a model with a mark, it is the mark with its colon.
    """
    mark, path = split_mark(path)
    if mark:
        return f"{mark}:"
    directory = Path(path)
    if not directory.is_dir():
        return LM_ARCHITECTURE
    if is_ctranslate2(directory):
        return CTRANSLATE2
    return architecture_of(directory)
