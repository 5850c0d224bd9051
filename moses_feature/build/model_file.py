"""A language model as a file: estimated from sentences, read by KenLM, and KenLM's own format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from moses_feature.build.bitext import CONTROL, check_words
from moses_feature.build.language_model import estimate
from moses_feature.moses.language_model import load_kenlm
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.programs import find_program, run_program
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import open_output, whole_file

BUILD_BINARY = ("build_binary",)
"""KenLM's program."""


def write_model(
    path: Path, sentences: Iterable[list[bytes]], order: int, prune: Sequence[int]
) -> None:
    """Estimate a model, and write it as an ARPA file that KenLM can read."""
    model = estimate(sentences, order, prune, folder=path.parent)
    with open_output(path) as file:
        file.writelines(model.arpa())
    try:
        load_kenlm(path)
    except MosesFeatureError:
        path.unlink()
        raise


def sentences_of(path: str) -> Iterator[list[bytes]]:
    """Yield the words of each line of a text for the language model."""
    with LineReader(path) as reader:
        for line in reader:
            check_words(line, reader, CONTROL)
            yield tokens(line)


def write_binary_model(arpa: Path, path: Path) -> None:
    """Have KenLM write a model in its binary format."""
    program, log = find_program(BUILD_BINARY), path.with_name(f".{path.name}.log")
    try:
        with whole_file(path) as binary:
            run_program([str(program), str(arpa), str(binary)], log)
            if not (binary.is_file() and binary.stat().st_size):
                raise MosesFeatureError(f"{program} wrote no model, and said nothing of it")
            load_kenlm(binary)
    finally:
        log.unlink(missing_ok=True)
