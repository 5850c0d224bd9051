"""Write the network's scores into a phrase table as new columns (see `columns.py`)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from moses_feature import __version__
from moses_feature.moses.lines import LineReader
from moses_feature.runtime.errors import DataError
from moses_feature.runtime.files import STANDARD_STREAM, Json
from moses_feature.runtime.json_files import numbered, record
from moses_feature.tables.column_models import ColumnModels
from moses_feature.tables.columns import ColumnsOfModel, NewColumns, ScoredPart
from moses_feature.tables.features_json import write_features
from moses_feature.tables.parts import PartOfTable, PartReader, phrases_in_texts
from moses_feature.tables.pipeline import OpenPool, ScoringPool
from moses_feature.tables.settings import AugmentSettings
from moses_feature.tables.writer import TableWriter

logger = logging.getLogger(__name__)

LINES_PER_PART = 1 << 14
"""Lines that are scored together; a killed run is resumed at such a boundary."""


@dataclass
class AugmentProgress:
    """The progress of an augmentation.

    Attributes:
        parts, lines: parts and lines read.
        written: lines written.
        clipped: log probabilities that were below -100.
        unknown_source_words, unknown_target_words: words outside the shortlists of the first
            model.
        scores: the number of scores in each line of the input; None before the first line.
        digest: SHA-256 of the lines read.
    """

    parts: int = 0
    lines: int = 0
    written: int = 0
    clipped: int = 0
    unknown_source_words: int = 0
    unknown_target_words: int = 0
    scores: int | None = None
    digest: str = ""

    def add(self, part: PartOfTable, scored: ScoredPart) -> None:
        """Add a finished part."""
        self.parts = part.number + 1
        self.lines = part.lines_read
        self.digest = part.digest
        self.scores = part.scores if part.lines_read else None
        self.written += scored.lines
        self.clipped += scored.clipped
        self.unknown_source_words += scored.unknown_source_words
        self.unknown_target_words += scored.unknown_target_words


def augment(
    table: str,
    output: str,
    models: Sequence[ColumnModels],
    open_pool: OpenPool,
    settings: AugmentSettings,
    *,
    resume: bool = False,
    command: str = "",
    report: Callable[[AugmentProgress, float | None], None] = lambda *_: None,
) -> AugmentProgress:
    """Write `table` with the network's columns to `output`, and `*.features.json` beside it.

    Args:
        table: a phrase table, `-` for the standard input.
        output: where to write it, `-` for the standard output (then without `*.features.json`).
        models: the models whose columns are appended.
        open_pool: opens a pool that scores with the same models.
        settings: which lines to keep, which columns to append.
        resume: continue an interrupted run.
        command: the command line, recorded in `*.features.json`.
        report: called after each batch with the progress and the share of the file read, None for
            a stream.

    Raises:
        FormatError: a line that is not one of a phrase table, with its number.
        MosesFeatureError: a file cannot be read or written.
        UsageError: settings that contradict each other.
    """
    settings.check()
    kept, input_digests = phrases_in_texts(settings.inputs)
    writer = TableWriter(output)
    of_models = [of.columns(settings) for of in models]
    identity = _identity(models, of_models, settings, input_digests)
    columns = NewColumns(of_models, table, output)
    with LineReader(table) as reader, closing(writer):
        if not resume:
            writer.start()
        done = writer.resume(identity) if resume else {}
        progress = record(AugmentProgress, done, Path(output), "the progress of a run")
        parts = PartReader(
            reader, LINES_PER_PART, kept if settings.inputs else None, progress.scores
        )
        parts.skip(progress.parts, progress.lines, progress.digest)
        report(progress, reader.fraction())

        def finish(part: PartOfTable, scored: ScoredPart) -> None:
            progress.add(part, scored)
            writer.write(scored.content, identity, asdict(progress))
            report(progress, part.fraction)

        try:
            with open_pool(columns) as pool:
                _score(parts, pool, finish)
        except DataError:  # after other errors the written part is good: --resume continues it
            writer.discard()
            raise
        progress.lines, progress.digest = reader.line_number, reader.digest()
        progress.scores = parts.scores
        facts = _facts(table, models, settings, progress, command)
        facts["texts"] = dict(zip(settings.inputs, input_digests, strict=True))
        names = [name for of_model in of_models for name in of_model.names]
        _write_features_json(output, names, progress, facts)
        writer.finish()
    return progress


def _identity(
    models: Sequence[ColumnModels],
    of_models: Sequence[ColumnsOfModel],
    settings: AugmentSettings,
    input_digests: Sequence[str],
) -> Json:
    """Return the facts that must be the same for a run to be resumed."""
    return {
        "models": {name or "model": digests for name, *digests in _digests(models)},
        "dtype": settings.scoring_dtype,
        "words": [asdict(of_model.words) for of_model in of_models],
        "inputs": numbered(("text", digest) for digest in input_digests),
        "unknown_target": settings.unknown_target,
        "unknown_source": settings.unknown_source,
    }


def _digests(models: Sequence[ColumnModels]) -> list[list[str]]:
    """Return the names and digests of the models of each column."""
    return [[of.name, *(model.digest for model in of.models)] for of in models]


def _score(
    parts: Iterable[PartOfTable],
    pool: ScoringPool,
    finish: Callable[[PartOfTable, ScoredPart], None],
) -> None:
    """Send the parts to the pool, and finish them in the same order."""
    waiting: deque[tuple[PartOfTable, Future[ScoredPart]]] = deque()
    for part in parts:
        waiting.append((part, pool.submit(part)))
        while waiting and (waiting[0][1].done() or len(waiting) > pool.room):
            first, scored = waiting.popleft()
            finish(first, scored.result())
    for last, scored in waiting:
        finish(last, scored.result())


def _facts(
    table: str,
    models: Sequence[ColumnModels],
    settings: AugmentSettings,
    progress: AugmentProgress,
    command: str,
) -> Json:
    return {
        "table": table,
        "table_sha256": progress.digest,
        "model_sha256": models[0].first.digest,
        "models": _digests(models),
        "lines_read": progress.lines,
        "lines_written": progress.written,
        "clipped_scores": progress.clipped,
        "unknown_source_words": progress.unknown_source_words,
        "unknown_target_words": progress.unknown_target_words,
        "settings": asdict(settings),
        "command": command,
        "version": __version__,
        "seed": models[0].first.seed,
    }


def _write_features_json(
    output: str, names: Sequence[str], progress: AugmentProgress, facts: Json
) -> None:
    if output == STANDARD_STREAM:
        logger.info("written to the standard output: no *.features.json beside it")
        return
    first = progress.scores
    columns = {name: None if first is None else first + number for number, name in enumerate(names)}
    write_features(output, columns, facts)
