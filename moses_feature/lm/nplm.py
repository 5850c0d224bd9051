r"""NPLM's text format, which a Moses built with NPLM reads (`NeuralLM` in moses.ini).

Sections begin with a line such as `\hidden_weights 1` and end with an empty line; a matrix has a
row on each line, tab-separated (NPLM's `src/model.cpp`). NPLM's network is this one: projections,
two rectified layers, a softmax. Moses looks up the predicted word among the input words
(`moses/LM/NeuralLMWrapper.cpp`), so that the output words must be the first input words; and it
does not subtract log Z.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from moses_feature.arrays import Floats32
from moses_feature.errors import FormatError, MosesFeatureError, shown
from moses_feature.files import whole_file
from moses_feature.lm.scorer import NeuralLM
from moses_feature.lm.sizes import LmSizes
from moses_feature.models.vocabulary import SYMBOLS, Vocabulary
from moses_feature.moses.lines import LineReader

BEGIN, NULL = b"<s>", b"<null>"
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
    words = [*SYMBOLS, *model.vocabulary.shortlist]
    for word in (BEGIN, NULL):
        if word in model.vocabulary.index:
            raise MosesFeatureError(f"the word {shown(word)} means something else to NPLM")
    sizes = model.sizes
    projection = model.weights["projection.weight"]
    begin, null = projection[:1], projection[-1:]  # END stands before a sentence
    matrices = {**model.weights, "projection.weight": np.vstack([projection[:-1], begin, null])}
    header = {
        "version": 1,
        "ngram_size": sizes.order,
        "input_vocab_size": len(words) + 2,
        "output_vocab_size": len(words),
        "input_embedding_dimension": sizes.projection,
        "num_hidden": sizes.first,
        "output_embedding_dimension": sizes.second,
        "activation_function": "rectifier",
    }
    with whole_file(path) as temporary, temporary.open("wb") as file:
        config = [f"{key} {value}".encode() for key, value in header.items()]
        _write_section(file, b"\\config", config)
        _write_section(file, b"\\input_vocab", [*words, BEGIN, NULL])
        _write_section(file, b"\\output_vocab", words)
        for section, name in MATRICES.items():
            matrix = matrices[name]
            template = b"\t".join([b"%.9g"] * (matrix.shape[1] if matrix.ndim == 2 else 1))
            rows = (template % tuple(np.atleast_1d(row).tolist()) for row in matrix)
            _write_section(file, section, rows)
        file.write(b"\\end\n")


def _write_section(file: BinaryIO, name: bytes, lines: object) -> None:
    file.write(name + b"\n")
    for line in lines:  # type: ignore[attr-defined]
        file.write(line + b"\n")
    file.write(b"\n")


def read_nplm(path: Path) -> NeuralLM:
    """Read a model in NPLM's format; like Moses, it does not subtract log Z.

    Raises:
        FormatError: the file is not in the format, or a network that is not as described above.
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
    given = sections.get(b"\\input_vocab", sections.get(b"\\vocab", []))
    outputs = sections.get(b"\\output_vocab", given)
    if outputs != given[: len(outputs)] or len(set(given)) != len(given):
        raise FormatError(path, "output words that are the first input words", "others")
    ids = {word: number for number, word in enumerate(given)}
    for word in (*SYMBOLS, BEGIN):
        if word not in ids or (word in SYMBOLS and ids[word] >= len(outputs)):
            raise FormatError(path, f"the word {word.decode()}", "none")
    shortlist = [word for word in outputs if word not in (*SYMBOLS, BEGIN, NULL)]
    shapes = sizes.shapes(len(outputs)) | {"projection.weight": (len(given), sizes.projection)}
    weights = {
        name: _matrix(path, section, sections[section], shapes[name])
        for section, name in MATRICES.items()
    }
    rows = [ids[word] for word in (*SYMBOLS, *shortlist)]
    context_rows = [ids[BEGIN], *rows[1:], ids.get(NULL, ids[SYMBOLS[1]])]
    weights["projection.weight"] = weights["projection.weight"][context_rows]
    for name in ("output.weight", "output.bias"):
        weights[name] = np.ascontiguousarray(weights[name][rows])
    return NeuralLM(sizes, weights, Vocabulary(tuple(shortlist)), normalised=False, training={})


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
