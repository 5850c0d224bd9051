"""Decoding a training text by systems that have not seen it: each sentence by that of its fold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from moses_feature.decoder.decoder import embedded_decoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.source_phrases import Sentence
from moses_feature.decoder.system import System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import SYSTEM
from moses_feature.moses.lines import LineReader
from moses_feature.moses.system_directory import FOLDS, fold_directory
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import open_output
from moses_feature.runtime.json_files import read_json


def read_folds(system: Path, lines: int, digest: str) -> list[int]:
    """Read the fold (counted from 0) of each line of the text that a system was built from.

    Args:
        system: the directory of the system.
        lines: how many lines the text has.
        digest: the SHA-256 of its lines, in hexadecimal.

    Raises:
        MosesFeatureError: the system has no folds, or is of another text.
        FormatError: another number of lines, or a line that is no fold.
    """
    path = system / FOLDS
    if not path.is_file():
        raise MosesFeatureError(
            f"{path}: expected a system with folds (moses-feature system build --folds), found none"
        )
    text = read_json(system / SYSTEM, "a system")["inputs"][0]
    if digest != text["sha256"]:
        raise MosesFeatureError(
            f"the standard input: expected the text that {system} was built from "
            f"({text['path']}), found another one"
        )
    folds = []
    with LineReader(path) as reader:
        for line in reader:
            fold = int(line) - 1 if line.strip().isdigit() else -1
            if not fold_directory(system, fold).is_dir():
                expected = f"the number of a fold of {system}"
                raise FormatError(path, expected, repr(line.decode()), reader.line_number)
            folds.append(fold)
    if len(folds) != lines:
        raise FormatError(path, f"{lines:,} lines, as the text has", f"{len(folds):,}")
    return folds


@dataclass(frozen=True)
class FoldDecoder:
    """Decodes sentences with the systems of their folds, one system after the other.

    Attributes:
        systems: the system of each fold.
        folds: the fold of each sentence.
        sentences: the sentences, as tokens.
        limits: the limits of the search.
        jobs: the number of processes; None for the usual one.
    """

    systems: Sequence[System]
    folds: Sequence[int]
    sentences: Sequence[Sentence]
    limits: SearchLimits
    jobs: int | None

    @property
    def features(self) -> FeatureSet:
        """The features of all systems."""
        return self.systems[0].features

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate all sentences; see `Decoder`."""
        with tempfile.TemporaryDirectory(prefix="folds-", dir=path.parent) as folder:
            parts = []
            for fold, system in enumerate(self.systems):
                mine = [s for s, of in zip(self.sentences, self.folds, strict=True) if of == fold]
                decoder = embedded_decoder(system, mine, self.limits, self.jobs)
                parts.append(Path(folder) / f"{fold}.gz")
                try:
                    decoder.write_nbest(features, count, parts[-1], report)
                finally:
                    decoder.close()
            self._join(parts, path)

    def _join(self, parts: Sequence[Path], path: Path) -> None:
        """Put the lists of all folds together, in the order of the sentences."""
        with ExitStack() as stack:
            lists = [_lists(stack.enter_context(LineReader(part))) for part in parts]
            waiting = [next(of, None) for of in lists]
            done = [0] * len(parts)
            file = stack.enter_context(open_output(path))
            for sentence, fold in enumerate(self.folds):
                found = waiting[fold]
                if found is not None and found[0] == done[fold]:
                    for line in found[1]:
                        file.write(b"%d |||%b" % (sentence, line.partition(b"|||")[2]))
                    waiting[fold] = next(lists[fold], None)
                done[fold] += 1

    def close(self) -> None:
        """Nothing is left open."""


def _lists(reader: LineReader) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number of each sentence with a list, and the lines of the list."""
    for number, lines in groupby(reader, key=lambda line: int(line.partition(b" ")[0])):
        yield number, list(lines)
