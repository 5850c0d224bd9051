"""The language model as a file in NPLM's format (`NeuralLM` in moses.ini)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from moses_feature.errors import FormatError, MosesFeatureError, shown
from moses_feature.lm.nplm_format import BEGIN, NULL, NplmNetwork, read_network, write_network
from moses_feature.lm.scorer import NeuralLM
from moses_feature.models.vocabulary import SYMBOLS, Vocabulary


def load_neural_lm(path: str | Path) -> NeuralLM:
    """Read a model directory, or a file in NPLM's format.

    Raises:
        MosesFeatureError: it is neither, or damaged.
    """
    path = Path(path)
    if path.is_dir():
        return NeuralLM.load(path)
    if path.is_file():
        return read_nplm(path)
    raise MosesFeatureError(f"{path}: expected a model directory or an NPLM file, found none")


def write_nplm(path: Path, model: NeuralLM) -> None:
    """Write a model in NPLM's format.

    Raises:
        MosesFeatureError: a word that the format has another meaning for.
    """
    check_words(model.vocabulary)
    words = [*SYMBOLS, *model.vocabulary.shortlist]
    projection = model.weights["projection.weight"]
    begin, null = projection[:1], projection[-1:]  # END stands before a sentence
    weights = {**model.weights, "projection.weight": np.vstack([projection[:-1], begin, null])}
    write_network(path, NplmNetwork(model.sizes, [*words, BEGIN, NULL], words, weights))


def check_words(vocabulary: Vocabulary) -> None:
    """Check that no word has another meaning in NPLM's format.

    Raises:
        MosesFeatureError: one has.
    """
    for word in (BEGIN, NULL):
        if word in vocabulary.index:
            raise MosesFeatureError(f"the word {shown(word)} means something else to NPLM")


def read_nplm(path: Path) -> NeuralLM:
    """Read a model in NPLM's format; like Moses, it does not subtract log Z.

    Raises:
        FormatError: the file is not in the format, or a network that is not as described there.
    """
    network = read_network(path)
    inputs, outputs = network.inputs, network.outputs
    if len(set(inputs)) != len(inputs):
        raise FormatError(path, "different input words", "one twice")
    ids = {word: number for number, word in enumerate(inputs)}
    for word in (*SYMBOLS, BEGIN):
        if word not in ids or (word in SYMBOLS and ids[word] >= len(outputs)):
            raise FormatError(path, f"the word {word.decode()}", "none")
    shortlist = [word for word in outputs if word not in (*SYMBOLS, BEGIN, NULL)]
    rows = [ids[word] for word in (*SYMBOLS, *shortlist)]
    context_rows = [ids[BEGIN], *rows[1:], ids.get(NULL, ids[SYMBOLS[1]])]
    weights = dict(network.weights)
    weights["projection.weight"] = weights["projection.weight"][context_rows]
    for name in ("output.weight", "output.bias"):
        weights[name] = np.ascontiguousarray(weights[name][rows])
    vocabulary = Vocabulary(tuple(shortlist))
    return NeuralLM(network.sizes, weights, vocabulary, normalised=False, training={})
