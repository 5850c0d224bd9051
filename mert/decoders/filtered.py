"""Tables cut down to the phrases of a text (`scripts/training/filter-model-given-input.pl`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xopen import xopen

from mert.source_phrases import Sentence, SourcePhrases
from moses_feature.errors import UsageError
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import LineReader

FILTERED = ("PhraseDictionaryMemory", "LexicalReordering")
LONGEST = 20


def filtered(ini: MosesIni, sentences: Sequence[Sentence], directory: Path) -> Path:
    """Write the tables of an ini, without the lines that the sentences cannot use, and an ini.

    Args:
        ini: the system; its tables are text files.
        sentences: as tokens.
        directory: a new directory.

    Returns:
        the path of the new ini, which names the new files by absolute paths.

    Raises:
        UsageError: a table is in a binary format.
    """
    paths = {}
    sources = SourcePhrases(sentences, LONGEST)
    for feature in ini.features:
        if feature.is_table and feature.kind not in FILTERED:
            raise UsageError(
                f"{ini.path} at line {feature.line_number}: only tables in text format can be "
                f"filtered, found {feature.kind}"
            )
        if feature.kind in FILTERED:
            table = Path(feature.path)
            if not table.is_file():
                table = Path(f"{table}.gz")
            paths[feature.name] = directory.absolute() / f"{feature.name}.gz"
            _filter(table, paths[feature.name], sources)
    path = directory / "moses.ini"
    ini.with_paths(paths).write(path)
    return path


def _filter(table: Path, output: Path, sources: SourcePhrases) -> None:
    with LineReader(table) as reader, xopen(output, "wb", compresslevel=1, threads=0) as file:
        for block in reader.blocks():
            lines = sources.lines(block)
            for begin, end in zip(lines.begin.tolist(), lines.end.tolist(), strict=True):
                file.write(block[begin:end])
