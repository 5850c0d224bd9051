"""Write the network's scores into a phrase table as new columns.

The columns stand at the end of the score field, as Moses reads scores (see the README):
exp(log p(target | source)), the natural log clipped to [-100, 0], and exp(-k) for k target words
outside the shortlist. Moses takes the natural log of both
(`moses/TranslationModel/RuleTable/LoaderStandard.cpp`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from moses_feature import __version__
from moses_feature.cross_fitting import AnyModel, AnyScorer
from moses_feature.errors import FormatError, MosesFeatureError, OutputError, UsageError
from moses_feature.features_json import write_features
from moses_feature.input_filter import phrases_in_texts
from moses_feature.phrase_table import (
    ALIGNMENT,
    SCORES,
    SOURCE,
    STANDARD_STREAM,
    TARGET,
    LineReader,
    append_scores,
    count_scores,
    split_fields,
    tokens,
)
from moses_feature.scoring import Scores
from moses_feature.table_writer import TableWriter
from moses_feature.words import WordError, WordOptions

logger = logging.getLogger(__name__)

LOWEST_LOG_PROB = -100.0
"""Moses' floor of a feature value, a natural log (`moses/Util.h`)."""
LINES_PER_PART = 1 << 16
"""Input lines between two places where a killed run can go on."""

PROBABILITY_COLUMN = "p(target|source)"
UNKNOWN_TARGET_COLUMN = "exp(-unknown target words)"
UNKNOWN_SOURCE_COLUMN = "exp(-unknown source words)"


@dataclass(frozen=True)
class AugmentSettings:
    """How to augment a table.

    Attributes:
        inputs: texts; only lines whose source phrase occurs in them are kept. All lines if empty.
        unknown_source: also append exp(-unknown source words).
        escaped: whether the table's tokens are escaped; `auto` takes them as Moses does (`yes`).
        source_factor, target_factor: factors to score; None for those of the model.
        hierarchical: score hierarchical rules too.
        batch_size: lines that are scored together; the scores do not depend on it.
    """

    inputs: Sequence[str] = ()
    unknown_source: bool = False
    escaped: Literal["auto", "yes", "no"] = "auto"
    source_factor: int | None = None
    target_factor: int | None = None
    hierarchical: bool = False
    batch_size: int = 1 << 14

    def words(self, model: AnyModel) -> WordOptions:
        """Return how the table's tokens become words of the model's vocabularies."""
        options = replace(
            model.words,
            escaping=escaping(self.escaped, model),
            hierarchical=self.hierarchical or model.words.hierarchical,
        )
        if self.source_factor is not None:
            options = replace(options, source_factor=self.source_factor)
        if self.target_factor is not None:
            options = replace(options, target_factor=self.target_factor)
        self.check()
        return options

    def check(self) -> None:
        """See that the settings make sense together, and that the input texts are there.

        Raises:
            UsageError: they do not.
            MosesFeatureError: a text is missing.
        """
        if self.inputs and self.hierarchical:
            raise UsageError("--input keeps lines by plain phrases: not with --hierarchical")
        for path in self.inputs:
            if path == STANDARD_STREAM:
                raise UsageError("--input is read from a file: expected its name, found -")
            if not Path(path).exists():
                raise MosesFeatureError(f"{path}: No such file or directory")

    def columns(self) -> list[str]:
        """Return the names of the appended columns."""
        names = [PROBABILITY_COLUMN, UNKNOWN_TARGET_COLUMN]
        return [*names, UNKNOWN_SOURCE_COLUMN] if self.unknown_source else names


def escaping(
    escaped: Literal["auto", "yes", "no"], model: AnyModel
) -> Literal["as-is", "unescape", "escape"]:
    """Return what to do to tokens that are escaped or not, for the model that reads them."""
    if escaped == "no":
        return "escape" if model.escaped else "as-is"
    return "as-is" if model.escaped else "unescape"


@dataclass
class AugmentProgress:
    """What an augmentation has done so far.

    Attributes:
        lines: lines read.
        written: lines written.
        clipped: of these, lines whose log probability was below -100.
        unknown_source_words, unknown_target_words: words outside the shortlists.
        scores: scores in each line of the input; None before the first line.
        digest: SHA-256 of the lines read.
    """

    lines: int = 0
    written: int = 0
    clipped: int = 0
    unknown_source_words: int = 0
    unknown_target_words: int = 0
    scores: int | None = None
    digest: str = ""


def augment(
    table: str,
    output: str,
    model: AnyModel,
    scorer: AnyScorer,
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
        model: names the words.
        scorer: of the same model.
        settings: what to keep and what to append.
        resume: go on with what a killed run left.
        command: what the user typed, kept in `*.features.json`.
        report: told after each batch the progress and the share of the file read, None for a
            stream.

    Raises:
        FormatError: a line that is not one of a phrase table, with its number.
        MosesFeatureError: a file cannot be read or written.
        UsageError: settings that make no sense together.
    """
    words = settings.words(model)
    kept, input_digests = phrases_in_texts(settings.inputs)
    writer = TableWriter(output)
    identity = {
        "model": model.digest,
        "words": asdict(words),
        "inputs": input_digests,
        "unknown_source": settings.unknown_source,
    }
    with LineReader(table) as reader, closing(writer):
        progress = AugmentProgress(**writer.resume(identity)) if resume else AugmentProgress()
        if not resume:
            writer.start()
        lines = _Lines(
            reader, words, kept if settings.inputs else None, settings.batch_size, progress
        )
        lines.skip()
        report(progress, reader.fraction())
        try:
            _write_parts(lines, writer, identity, scorer, settings, report)
        except OutputError:  # what has been written is good
            raise
        except MosesFeatureError:  # bad data: what has been written is of no use
            writer.discard()
            raise
        progress.digest = reader.digest()
        _write_features_json(output, table, model, settings, progress, command)
        writer.finish()
    return progress


def _write_parts(
    lines: _Lines,
    writer: TableWriter,
    identity: dict[str, Any],
    scorer: AnyScorer,
    settings: AugmentSettings,
    report: Callable[[AugmentProgress, float | None], None],
) -> None:
    """Score part after part; compress and write each one while the next is being scored."""
    with ThreadPoolExecutor(max_workers=1) as background:
        written: Future[None] | None = None
        while not lines.at_end:
            before = lines.progress.lines
            part = b"".join(
                _grown_lines(batch, scorer, settings, lines.progress, report, lines.reader)
                for batch in lines.part()
            )
            if lines.progress.lines == before > 0:
                break  # the table ended with the part before: no empty part, resumed or not
            if written is not None:
                written.result()
            lines.progress.digest = lines.reader.digest()
            written = background.submit(writer.write, part, identity, asdict(lines.progress))
        if written is not None:
            written.result()


@dataclass
class _Batch:
    """Lines to score together: their fields and their words."""

    fields: list[list[bytes]]
    pairs: list[tuple[list[bytes], list[bytes]]]


class _Lines:
    """The lines of a table in parts of `LINES_PER_PART`, each cut into batches of kept lines."""

    def __init__(
        self,
        reader: LineReader,
        words: WordOptions,
        kept: set[bytes] | None,
        batch_size: int,
        progress: AugmentProgress,
    ) -> None:
        self.reader = reader
        self.progress = progress
        self.at_end = False
        self._lines = iter(reader)
        self._words = words
        self._batch_size = batch_size
        self._kept = kept

    def skip(self) -> None:
        """Read over the lines that an earlier run has done, and see that they are the same."""
        for _ in range(self.progress.lines):
            next(self._lines, None)
        if self.progress.lines and self.reader.digest() != self.progress.digest:
            raise MosesFeatureError(
                f"{self.reader.path}: the first {self.progress.lines} lines are not those that the "
                "unfinished run read"
            )

    def part(self) -> Iterator[_Batch]:
        """Yield the batches of the next part."""
        batch = _Batch([], [])
        last = self.progress.lines + LINES_PER_PART
        for line in self._lines:
            self.progress.lines += 1
            self._add(line, batch)
            if len(batch.pairs) == self._batch_size:
                yield batch
                batch = _Batch([], [])
            if self.progress.lines == last:
                break
        else:
            self.at_end = True
        if batch.pairs:
            yield batch

    def _add(self, line: bytes, batch: _Batch) -> None:
        path, number, progress = self.reader.path, self.reader.line_number, self.progress
        fields = split_fields(line, path, number)
        scores = count_scores(fields[SCORES], path, number)
        if progress.scores is None:
            progress.scores = scores
        elif scores != progress.scores:
            expected = f"{progress.scores} scores as in the lines before"
            raise FormatError(path, expected, f"{scores}", number)
        if self._kept is not None and b" ".join(tokens(fields[SOURCE])) not in self._kept:
            return
        alignment = fields[ALIGNMENT] if len(fields) > ALIGNMENT else b""
        try:
            pair = self._words.pair(fields[SOURCE], fields[TARGET], alignment)
        except WordError as error:
            raise WordError(f"{path} at line {number}: {error}") from None
        batch.fields.append(fields)
        batch.pairs.append(pair)


def _grown_lines(
    batch: _Batch,
    scorer: AnyScorer,
    settings: AugmentSettings,
    progress: AugmentProgress,
    report: Callable[[AugmentProgress, float | None], None],
    reader: LineReader,
) -> bytes:
    scores = scorer.score(batch.pairs)
    grown = b"".join(map(append_scores, batch.fields, _columns(scores, settings)))
    progress.written += len(batch.pairs)
    progress.clipped += int(np.count_nonzero(scores.log_probs < LOWEST_LOG_PROB))
    progress.unknown_source_words += int(scores.unknown_source.sum())
    progress.unknown_target_words += int(scores.unknown_target.sum())
    report(progress, reader.fraction())
    return grown


def _columns(scores: Scores, settings: AugmentSettings) -> Iterator[bytes]:
    """Yield the text of the new columns, six significant digits, line after line."""
    values = [
        np.exp(np.clip(scores.log_probs, LOWEST_LOG_PROB, 0.0)),
        np.exp(-np.minimum(scores.unknown_target, -LOWEST_LOG_PROB)),
    ]
    if settings.unknown_source:
        values.append(np.exp(-np.minimum(scores.unknown_source, -LOWEST_LOG_PROB)))
    text = " ".join(["%.6g"] * len(values))
    for row in zip(*(column.tolist() for column in values), strict=True):
        yield (text % row).encode()


def _write_features_json(
    output: str,
    table: str,
    model: AnyModel,
    settings: AugmentSettings,
    progress: AugmentProgress,
    command: str,
) -> None:
    if output == STANDARD_STREAM:
        logger.info("written to the standard output: no *.features.json beside it")
        return
    first = progress.scores
    columns = {
        name: None if first is None else first + number
        for number, name in enumerate(settings.columns())
    }
    facts = {
        "table": table,
        "table_sha256": progress.digest,
        "model_sha256": model.digest,
        "lines_read": progress.lines,
        "lines_written": progress.written,
        "clipped_scores": progress.clipped,
        "unknown_source_words": progress.unknown_source_words,
        "unknown_target_words": progress.unknown_target_words,
        "settings": asdict(settings),
        "command": command,
        "version": __version__,
        "seed": model.seed,
    }
    write_features(output, columns, facts)
