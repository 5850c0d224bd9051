r"""The language model as a file in NPLM's text format (`NeuralLM` in moses.ini).

Sections begin with a line such as `\hidden_weights 1` and end with an empty line; a matrix has one
row per line, tab-separated (NPLM's `src/model.cpp`). Its network is that of
`moses_feature.cslm.scorer`: projections, two rectified layers, a softmax. Moses looks up the
predicted word among the input words (`moses/LM/NeuralLMWrapper.cpp`), so the output words must be
the first input words; and it does not subtract log Z.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from moses_feature.cslm.scorer import NeuralLM
from moses_feature.cslm.settings import LmSizes
from moses_feature.moses.lines import LineReader
from moses_feature.networks.vocabulary import BEGIN, SYMBOLS, Vocabulary
from moses_feature.runtime.arrays import Floats32
from moses_feature.runtime.errors import FormatError, MosesFeatureError, shown
from moses_feature.runtime.files import whole_file

NULL = b"<null>"
"""A missing context word; BEGIN is the word before a sentence."""
INPUTS, OUTPUTS = b"\\input_vocab", b"\\output_vocab"
MATRICES = {
    b"\\input_embeddings": "projection.weight",
    b"\\hidden_weights 1": "first.weight",
    b"\\hidden_biases 1": "first.bias",
    b"\\hidden_weights 2": "second.weight",
    b"\\hidden_biases 2": "second.bias",
    b"\\output_weights": "output.weight",
    b"\\output_biases": "output.bias",
}
SIZES = ("ngram_size", "input_embedding_dimension", "num_hidden", "output_embedding_dimension")


@dataclass(frozen=True)
class NplmNetwork:
    """A network in NPLM's terms.

    Attributes:
        sizes: layer sizes; the order counts the input words and the predicted one.
        inputs: the input words, in the order of the rows of `projection.weight`.
        outputs: the output words, which are the first of the inputs.
        weights: with the shapes of `LmSizes.shapes`, except for the rows of the projection.
    """

    sizes: LmSizes
    inputs: Sequence[bytes]
    outputs: Sequence[bytes]
    weights: Mapping[str, Floats32]


def write_network(path: Path, network: NplmNetwork) -> None:
    """Write a network."""
    sizes = network.sizes
    header = {
        "version": 1,
        "ngram_size": sizes.order,
        "input_vocab_size": len(network.inputs),
        "output_vocab_size": len(network.outputs),
        "input_embedding_dimension": sizes.projection,
        "num_hidden": sizes.first,
        "output_embedding_dimension": sizes.second,
        "activation_function": "rectifier",
    }
    with whole_file(path) as temporary, temporary.open("wb") as file:
        _write_section(file, b"\\config", (f"{key} {of}".encode() for key, of in header.items()))
        _write_section(file, INPUTS, network.inputs)
        _write_section(file, OUTPUTS, network.outputs)
        for section, name in MATRICES.items():
            matrix = network.weights[name]
            template = b"\t".join([b"%.9g"] * (matrix.shape[1] if matrix.ndim == 2 else 1))
            rows = (template % tuple(np.atleast_1d(row).tolist()) for row in matrix)
            _write_section(file, section, rows)
        file.write(b"\\end\n")


def _write_section(file: BinaryIO, name: bytes, lines: Iterable[bytes]) -> None:
    file.write(name + b"\n")
    for line in lines:
        file.write(line + b"\n")
    file.write(b"\n")


def read_network(path: Path) -> NplmNetwork:
    """Read a network.

    Raises:
        FormatError: the file is not in the format, or the network is not as described above.
    """
    with LineReader(path) as reader:
        sections = dict(_sections(reader))
    for section in (b"\\config", *MATRICES):
        if section not in sections:
            raise FormatError(path, f"a section {section.decode()}", "none")
    config = dict(line.split(b" ", 1) for line in sections[b"\\config"] if b" " in line)
    if config.get(b"activation_function") != b"rectifier":
        found = shown(config.get(b"activation_function", b"none"))
        raise FormatError(path, "activation_function rectifier", found)
    try:
        sizes = LmSizes(*(int(config[key.encode()]) for key in SIZES))
    except (KeyError, ValueError) as error:
        raise FormatError(path, f"sizes: {', '.join(SIZES)}", f"{error}") from None
    inputs = sections.get(INPUTS, sections.get(b"\\vocab", []))
    outputs = sections.get(OUTPUTS, inputs)
    if outputs != inputs[: len(outputs)]:
        raise FormatError(path, "output words that are the first input words", "others")
    shapes = sizes.shapes(len(outputs)) | {"projection.weight": (len(inputs), sizes.projection)}
    weights = {
        name: _matrix(path, section, sections[section], shapes[name])
        for section, name in MATRICES.items()
    }
    return NplmNetwork(sizes, inputs, outputs, weights)


def _sections(reader: LineReader) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield the sections of a file: name and lines, without line ends."""
    name, lines = b"", []
    for line in reader:
        text = line.rstrip(b"\r\n")
        if not name and text.startswith(b"\\"):
            name = text.rstrip()
        elif name and text:
            lines.append(text)
        elif name:
            yield name, lines
            name, lines = b"", []
        elif text:
            raise FormatError(reader.path, "a section of NPLM", shown(text), reader.line_number)
    if name != b"\\end":
        raise FormatError(reader.path, "\\end", "the end of the file", reader.line_number)


def _matrix(path: Path, section: bytes, lines: list[bytes], shape: tuple[int, ...]) -> Floats32:
    try:
        rows = [np.array(line.split(), dtype=np.float32) for line in lines]
        matrix = np.stack(rows) if len(shape) == 2 else np.concatenate(rows)
    except ValueError as error:
        raise FormatError(path, f"{section.decode()}: rows of numbers", f"{error}") from None
    if matrix.shape != shape or not np.isfinite(matrix).all():
        expected = f"{section.decode()}: {' x '.join(map(str, shape))} finite numbers"
        raise FormatError(path, expected, f"{' x '.join(map(str, matrix.shape))}")
    return matrix


def load_neural_lm(path: str | Path) -> NeuralLM:
    """Read a model directory, or a file in NPLM's format.

    Raises:
        MosesFeatureError: the path is neither, or the model is damaged.
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
        MosesFeatureError: a word has a special meaning in the format.
    """
    for word in (BEGIN, NULL):
        if word in model.vocabulary.index:
            raise MosesFeatureError(f"the word {shown(word)} means something else to NPLM")
    words = [*SYMBOLS, *model.vocabulary.shortlist]
    projection = model.weights["projection.weight"]
    begin, null = projection[:1], projection[-1:]  # END stands for the words before a sentence
    weights = {**model.weights, "projection.weight": np.vstack([projection[:-1], begin, null])}
    write_network(path, NplmNetwork(model.sizes, [*words, BEGIN, NULL], words, weights))


def read_nplm(path: Path) -> NeuralLM:
    """Read a model in NPLM's format; like Moses, it does not subtract log Z.

    Raises:
        FormatError: the file is not in the format, or the network is not as described above.
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
