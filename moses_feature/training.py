"""From phrase tables to a trained model directory."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from moses_feature import __version__
from moses_feature.checkpoint import CHECKPOINT
from moses_feature.errors import MosesFeatureError, OutputError, UsageError
from moses_feature.model_directory import CONFIG
from moses_feature.phrase_pairs import PairCollection, PhrasePair, count_words, read_pairs
from moses_feature.phrase_table import STANDARD_STREAM, LineReader
from moses_feature.trainer import Trainer, TrainingSettings, TrainingState
from moses_feature.vocabulary import Vocabulary
from moses_feature.words import WordOptions

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingData:
    """What to train on.

    Attributes:
        tables: phrase tables, or tab-separated files of phrase pairs.
        source_text, target_text: texts whose word frequencies make the shortlists; None for the
            tables themselves, each pair weighted by its joint count.
        shortlist: words of each side that the network knows; all others are UNK.
        words: how tokens become words.
    """

    tables: Sequence[str]
    source_text: str | None = None
    target_text: str | None = None
    shortlist: int = 15_000
    words: WordOptions = field(default_factory=WordOptions)


def train(
    data: TrainingData,
    settings: TrainingSettings,
    directory: Path,
    device: torch.device,
    *,
    resume: bool = False,
    command: str = "",
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[TrainingState], None] = lambda _: None,
) -> str:
    """Train a model and keep the best one in `directory`, with the checkpoint of the run.

    Args:
        data: the tables and how to read them.
        settings: how to train.
        directory: the model directory; must not hold a model unless `resume` is set.
        device: where to train.
        resume: go on from the checkpoint in `directory`; start, if the directory is empty.
        command: what the user typed, for the model's provenance.
        stop: asked after each update whether to stop.
        report: told the state of the run after each update.

    Returns:
        The reason for stopping; `interrupted` when `stop` said so.

    Raises:
        UsageError: `directory` holds a model already and `resume` is not set.
        OutputError: another run is writing `directory`, or it cannot be written.
        MosesFeatureError: bad data, or nothing to resume.
    """
    if STANDARD_STREAM in (*data.tables, data.source_text, data.target_text):
        raise UsageError("training reads from files: expected a file name, found -")
    holds_model = any((directory / name).exists() for name in (CONFIG, CHECKPOINT))
    if holds_model and not resume:
        raise UsageError(f"{directory} holds a model already: --resume goes on with it")
    with _locked(directory):
        trainer = _trainer(data, settings, directory, device, command)
        if holds_model:
            trainer.resume()
        reason = trainer.run(stop, report)
    logger.info(
        "training ended: %s; best held-out loss %.4f nats per target word",
        reason, trainer.state.best_held_out_loss,
    )  # fmt: skip
    return reason


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Make the directory, keep other runs from it, and remove it if nothing comes into it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError as error:
        raise OutputError(f"{directory}: expected a directory: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise OutputError(f"{directory}: another run is training there") from None
    finally:
        os.close(descriptor)
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()


def _trainer(
    data: TrainingData,
    settings: TrainingSettings,
    directory: Path,
    device: torch.device,
    command: str,
) -> Trainer:
    """Read the tables, make the shortlists and a network to train."""
    inputs: list[dict[str, Any]] = []
    collection = PairCollection(_all_pairs(data, inputs))
    if not len(collection):
        raise MosesFeatureError(
            f"{', '.join(data.tables)}: expected phrase pairs to train on, found none"
        )
    source_counts = _counts("source text", data.source_text, collection.source_counts, inputs)
    target_counts = _counts("target text", data.target_text, collection.target_counts, inputs)
    source = Vocabulary.most_frequent(source_counts, data.shortlist)
    target = Vocabulary.most_frequent(target_counts, data.shortlist)
    coverage = {
        "source": source.coverage(source_counts),
        "target": target.coverage(target_counts),
    }
    logger.info(
        "%d unique phrase pairs; the shortlists hold %.2f%% of the running source words and "
        "%.2f%% of the target words",
        len(collection), 100 * coverage["source"], 100 * coverage["target"],
    )  # fmt: skip
    pairs = collection.pairs(
        source, target, settings.held_out, settings.held_out_limit, settings.seed
    )
    del collection
    provenance = {
        "command": command,
        "version": __version__,
        "inputs": inputs,
        "shortlist_coverage": coverage,
    }
    return Trainer(pairs, source, target, data.words, settings, directory, device, provenance)


def _all_pairs(data: TrainingData, inputs: list[dict[str, Any]]) -> Iterator[PhrasePair]:
    for table in data.tables:
        with LineReader(table) as reader:
            yield from read_pairs(reader, data.words)
            inputs.append(_entry("table", reader))


def _entry(role: str, reader: LineReader) -> dict[str, Any]:
    return {
        "role": role,
        "path": reader.path,
        "lines": reader.line_number,
        "sha256": reader.digest(),
    }


def _counts(
    role: str,
    text: str | None,
    table_counts: Callable[[], dict[bytes, float]],
    inputs: list[dict[str, Any]],
) -> dict[bytes, float]:
    if text is None:
        return table_counts()
    with LineReader(text) as reader:
        counts = count_words(reader)
        inputs.append(_entry(role, reader))
    if not counts:
        raise MosesFeatureError(f"{text}: expected words for a shortlist, found none")
    return counts
