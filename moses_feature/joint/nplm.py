"""The joint model as files that Moses reads (`BilingualNPLM` in moses.ini).

The files are a network in NPLM's format and two lists with a word on each line. An id is a word's
place in the two lists, target words first; the first word of each list stands for all unknown ones
(`moses/LM/bilingual-lm/BiLM_NPLM.cpp`). A context is the source window from left to right, then the
target words before (`moses/LM/BilingualLM.cpp`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moses_feature.cslm.nplm import (
    NULL,
    NplmNetwork,
    check_words,
    read_network,
    write_network,
)
from moses_feature.cslm.settings import LmSizes
from moses_feature.joint.scorer import JointModel
from moses_feature.joint.settings import JointSizes
from moses_feature.moses.ini import moses_path
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.networks.vocabulary import BEGIN, END, SYMBOLS, UNKNOWN, Vocabulary
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError, shown
from moses_feature.runtime.files import whole_file

END_WORD, UNKNOWN_WORD = SYMBOLS
SOURCE_SUFFIX, TARGET_SUFFIX = ".source", ".target"
"""The suffixes of the word lists, appended to the name of the network."""


@dataclass(frozen=True)
class JointFiles:
    """The files of a joint model, and the sizes that its network does not give.

    Attributes:
        path: the network, or a model directory, which needs no other file.
        order: target words of an n-gram, including the predicted one.
        source_window: source words on each side.
        source_vocab, target_vocab: lists of words; empty for a model directory.
    """

    path: str
    order: int
    source_window: int
    source_vocab: str = ""
    target_vocab: str = ""

    def line(self, name: str) -> str:
        """Return the line of a feature function in moses.ini."""
        lists = ""
        if self.source_vocab:
            lists = f" source_vocab={self.source_vocab} target_vocab={self.target_vocab}"
        return (
            f"BilingualNPLM name={name} order={self.order} source_window={self.source_window} "
            f"path={self.path}{lists}"
        )


def write_joint_nplm(path: Path, model: JointModel) -> JointFiles:
    """Write a model as the three files, the lists beside the network.

    Raises:
        MosesFeatureError: a word has a special meaning in the format.
    """
    for vocabulary in (model.source, model.target):
        check_words(vocabulary)
    moses_path(path)
    for suffix in (SOURCE_SUFFIX, TARGET_SUFFIX):
        beside = path.with_name(path.name + suffix)
        if beside.exists() and not _is_list(beside):
            raise UsageError(f"{beside} is there already, and no list of words: give another name")
    outputs = [UNKNOWN_WORD, END_WORD, *model.target.shortlist]
    target = [*outputs, BEGIN, NULL]
    source = [UNKNOWN_WORD, BEGIN, END_WORD, *model.source.shortlist]
    target_rows = [UNKNOWN, END, *range(len(SYMBOLS), len(model.target)), END, model.null]
    source_rows = [UNKNOWN, END, END, *range(len(SYMBOLS), len(model.source))]
    weights = dict(model.weights)
    weights["projection.weight"] = np.vstack(
        [
            weights["projection.weight"][target_rows],
            weights.pop("source_projection.weight")[source_rows],
        ]
    )
    for name in ("output.weight", "output.bias"):
        weights[name] = weights[name][target_rows[: len(outputs)]]
    sizes = model.sizes
    seen = LmSizes(sizes.positions + 1, sizes.projection, sizes.first, sizes.second)
    # The format does not distinguish sides: a source word may be spelt like a target word.
    write_network(path, NplmNetwork(seen, [*target, *source], outputs, weights))
    lists = []
    for suffix, words in (SOURCE_SUFFIX, source), (TARGET_SUFFIX, target):
        lists.append(path.with_name(path.name + suffix))
        with whole_file(lists[-1]) as temporary:
            temporary.write_bytes(b"".join(word + b"\n" for word in words))
    names = (str(file.absolute()) for file in (path, *lists))
    network, of_source, of_target = names
    return JointFiles(network, sizes.order, sizes.source_window, of_source, of_target)


def _is_list(path: Path) -> bool:
    """Return whether a file may be a list of words exported earlier."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline().strip() == UNKNOWN_WORD


def load_joint_model(files: JointFiles) -> JointModel:
    """Read a model directory, or the files that Moses reads; the latter are not normalised.

    Raises:
        MosesFeatureError: files cannot be read, are damaged, or do not belong together.
    """
    path = Path(files.path)
    if path.is_dir():
        model = JointModel.load(path)
        for name in ("order", "source_window"):
            expected, found = getattr(files, name), getattr(model.sizes, name)
            if expected != found:
                raise MosesFeatureError(
                    f"{path}: expected a model of {name} {expected} as the ini says, found {found}"
                )
        return model
    return _read_joint_nplm(path, files)


def _read_joint_nplm(path: Path, files: JointFiles) -> JointModel:
    network = read_network(path)
    read = network.sizes
    layers = read.projection, read.first, read.second
    try:
        sizes = JointSizes(files.order, *layers, source_window=files.source_window)
    except ValueError as error:
        raise MosesFeatureError(f"{path}: {error}, in the ini") from None
    if sizes.positions + 1 != read.order:
        expected = f"n-grams of {sizes.positions + 1} words as the ini says"
        raise FormatError(path, expected, f"{read.order}")
    target, source = (_read_words(name) for name in (files.target_vocab, files.source_vocab))
    if len(target) + len(source) != len(network.inputs):
        expected = f"{len(network.inputs)} words in both lists, as in {path}"
        raise FormatError(files.target_vocab, expected, f"{len(target) + len(source)}")
    numbered = all(word.isdigit() for word in network.inputs)  # as Moses' own tools write them
    if not numbered and list(network.inputs) != [*target, *source]:
        expected = f"the words of {path}, in their order"
        raise FormatError(files.target_vocab, expected, f"others here or in {files.source_vocab}")
    of_target = _ids(files.target_vocab, target, (BEGIN,))
    of_source = _ids(files.source_vocab, source, (BEGIN, END_WORD))
    outputs = len(network.outputs)
    if outputs > len(target):
        raise FormatError(path, f"at most {len(target)} output words", f"{outputs}")
    known = [word for word in target[1:outputs] if word not in (*SYMBOLS, BEGIN, NULL)]
    words = [word for word in source[1:] if word not in (*SYMBOLS, BEGIN, NULL)]
    # END, UNKNOWN, the shortlist, and the missing context word.
    rows = [of_target[BEGIN], 0, *(of_target[word] for word in known)]
    projection = network.weights["projection.weight"]
    weights = dict(network.weights)
    weights["projection.weight"] = projection[[*rows, of_target.get(NULL, 0)]]
    source_rows = [0, *(of_source[word] for word in words)]
    weights["source_projection.weight"] = projection[len(target) :][
        [of_source[END_WORD], *source_rows, 0]
    ]
    end = of_target.get(END_WORD, outputs)
    predicted = [end if end < outputs else 0, *rows[1:]]  # the end is never predicted
    for name in ("output.weight", "output.bias"):
        weights[name] = np.ascontiguousarray(weights[name][predicted])
    vocabularies = Vocabulary(tuple(words)), Vocabulary(tuple(known))
    return JointModel(sizes, weights, *vocabularies, normalised=False, training={})


def _read_words(path: str) -> list[bytes]:
    words: dict[bytes, None] = {}
    with LineReader(path) as reader:
        for line in reader:
            word = tokens(line)
            if len(word) != 1 or word[0] in words:
                expected = "one word, which no other line has"
                raise FormatError(path, expected, shown(line), reader.line_number)
            if not words and word[0] != UNKNOWN_WORD:
                expected = f"{UNKNOWN_WORD.decode()}, which all unknown words are"
                raise FormatError(path, expected, shown(word[0]), 1)
            words[word[0]] = None
    if not words:
        raise FormatError(path, "a word on each line", "an empty file")
    return list(words)


def _ids(path: str, words: Sequence[bytes], needed: Sequence[bytes]) -> dict[bytes, int]:
    ids = {word: number for number, word in enumerate(words)}
    for word in needed:
        if word not in ids:
            raise FormatError(path, f"the word {word.decode()}", "none")
    return ids
