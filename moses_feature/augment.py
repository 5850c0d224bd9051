"""Write the network's scores into a phrase table as new columns; `grower.py` says which."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from moses_feature import __version__
from moses_feature.cross_fitting import AnyModel
from moses_feature.errors import LostProcessError, MosesFeatureError, OutputError, UsageError
from moses_feature.features_json import write_features
from moses_feature.grower import Grower, GrownPart
from moses_feature.helpers import Helper, HelperHere, HelperProcess
from moses_feature.input_filter import phrases_in_texts
from moses_feature.packing import Packed
from moses_feature.phrase_table import STANDARD_STREAM, LineReader
from moses_feature.scoring import Scorer
from moses_feature.table_parts import Part, PartReader
from moses_feature.table_writer import TableWriter
from moses_feature.words import WordOptions

logger = logging.getLogger(__name__)

LINES_PER_PART = 1 << 14
"""Lines that are scored together, and between two places where a killed run can go on."""

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
    """

    inputs: Sequence[str] = ()
    unknown_source: bool = False
    escaped: Literal["auto", "yes", "no"] = "auto"
    source_factor: int | None = None
    target_factor: int | None = None
    hierarchical: bool = False

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

    def add(self, part: Part, grown: GrownPart) -> None:
        """Count a part that is done."""
        self.lines = part.lines_read
        self.digest = part.digest
        self.scores = part.scores if part.lines_read else None
        self.written += grown.lines
        self.clipped += grown.clipped
        self.unknown_source_words += grown.unknown_source_words
        self.unknown_target_words += grown.unknown_target_words


def augment(
    table: str,
    output: str,
    model: AnyModel,
    scorer: Scorer,
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
        "dtype": scorer.dtype,
        "words": asdict(words),
        "inputs": input_digests,
        "unknown_source": settings.unknown_source,
    }
    grower = Grower(scorer.packer, words, table, output, settings.unknown_source)
    with LineReader(table) as reader, closing(writer):
        progress = AugmentProgress(**writer.resume(identity)) if resume else AugmentProgress()
        if not resume:
            writer.start()
        parts = PartReader(
            reader, LINES_PER_PART, kept if settings.inputs else None, progress.scores
        )
        parts.skip(progress.lines, progress.digest)
        report(progress, reader.fraction())

        def finish(part: Part, grown: GrownPart) -> None:
            progress.add(part, grown)
            writer.write(grown.content, identity, asdict(progress))
            report(progress, part.fraction)

        try:
            _grow(parts, scorer, grower, finish)
        except (OutputError, LostProcessError):  # what has been written is good
            raise
        except MosesFeatureError:  # bad data: what has been written is of no use
            writer.discard()
            raise
        _write_features_json(output, table, model, settings, scorer.dtype, progress, command)
        writer.finish()
    return progress


def _grow(
    parts: Iterable[Part],
    scorer: Scorer,
    grower: Grower,
    finish: Callable[[Part, GrownPart], None],
) -> None:
    """Score part after part; helpers pack, grow and compress others meanwhile."""
    waiting = iter(parts)
    first = list(islice(waiting, 2))
    with ExitStack() as stack:
        helpers: list[Helper] = [HelperHere(grower)]
        if len(first) > 1:
            helpers = [HelperProcess(grower) for _ in range(scorer.helpers)]
        for helper in helpers:
            stack.callback(helper.close)
        stages = _Stages(scorer, helpers, finish)
        for part in chain(first, waiting):
            stages.take(part)
        stages.drain()


@dataclass
class _Stages:
    """Parts on their way through the helpers and the scorer; they leave in the order they came."""

    scorer: Scorer
    helpers: list[Helper]
    finish: Callable[[Part, GrownPart], None]
    packing: deque[tuple[Part, Helper, Future[Packed]]] = field(default_factory=deque)
    growing: deque[tuple[Part, Future[GrownPart]]] = field(default_factory=deque)
    taken: int = 0

    def take(self, part: Part) -> None:
        """Send a part on its way, and score one that is ready when there are enough of them."""
        helper = self.helpers[self.taken % len(self.helpers)]
        self.taken += 1
        self.packing.append((part, helper, helper.call(Grower.pack, part)))
        if len(self.packing) > 2 * len(self.helpers):
            self.score()

    def score(self) -> None:
        """Score the first part that is packed, and finish those that are grown."""
        part, helper, packed = self.packing.popleft()
        log_probs = self.scorer.score_packed(packed.result()).log_probs
        self.growing.append((part, helper.call(Grower.grow, log_probs)))
        while self.growing[0][1].done() or len(self.growing) > 2 * len(self.helpers):
            self.finish_first()
            if not self.growing:
                break

    def finish_first(self) -> None:
        """Wait for the first part that is being grown."""
        part, grown = self.growing.popleft()
        self.finish(part, grown.result())

    def drain(self) -> None:
        """Bring all parts to the end."""
        while self.packing:
            self.score()
        while self.growing:
            self.finish_first()


def _write_features_json(
    output: str,
    table: str,
    model: AnyModel,
    settings: AugmentSettings,
    dtype: str,
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
        "settings": {**asdict(settings), "scoring_dtype": dtype},
        "command": command,
        "version": __version__,
        "seed": model.seed,
    }
    write_features(output, columns, facts)
