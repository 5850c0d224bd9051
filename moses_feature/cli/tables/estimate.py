"""`--estimate`: the real work on the head of a table, in a temporary folder."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.estimates import (
    on_disk,
    process_bytes,
    quiet,
    rate,
    size,
    try_training,
)
from moses_feature.cli.common.progress import duration
from moses_feature.moses.lines import LineReader
from moses_feature.phrases.settings import TrainingData, TrainingSettings
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM
from moses_feature.tables.settings import AugmentSettings

if TYPE_CHECKING:
    import torch


SAMPLE_LINES = 100_000


@dataclass(frozen=True)
class Sample:
    """The head of the tables.

    Attributes:
        path: the file, as plain text.
        lines: the number of lines.
        share: its share of the tables.
        pairs: the number of unique phrase pairs in it.
        words: the number of words in all its lines, both sides together.
        seconds: the time of reading it for training.
    """

    path: Path
    lines: int
    share: float
    pairs: int
    words: int
    seconds: float


def estimate_training(data: TrainingData, settings: TrainingSettings, device: torch.device) -> None:
    """Print time, memory and disk of a training run.

    Raises:
        UsageError: a table that is not a file.
        MosesFeatureError: bad data in its head.
    """
    with tempfile.TemporaryDirectory(prefix="estimate-") as folder:
        sample = _sample(data, Path(folder))
        _print_sample(sample)
        _estimate_training(data, settings, device, sample)


def estimate_augmenting(
    output: str,
    models: Sequence[tuple[str, Sequence[Path]]] | None,
    data: TrainingData,
    training: TrainingSettings,
    settings: AugmentSettings,
    device: torch.device,
) -> None:
    """Print time, memory and disk of `augment-phrase-table`; without `models`, one is trained.

    Raises:
        UsageError: the table is not a file.
        MosesFeatureError: bad data in its head, or a model that cannot be read.
    """
    from moses_feature.tables.augment import augment
    from moses_feature.tables.column_models import load_column_models
    from moses_feature.tables.pipeline import local_pools

    with tempfile.TemporaryDirectory(prefix="estimate-") as folder:
        sample = _sample(data, Path(folder))
        _print_sample(sample)
        trained = models or [("", [_estimate_training(data, training, device, sample)])]
        begun = time.monotonic()
        parts: list[tuple[int, float]] = [(0, begun)]
        written = Path(folder) / "written" / Path(output).name
        written.parent.mkdir()
        loaded = load_column_models(trained)
        pools = local_pools([of.scorer(device, settings.scoring_dtype) for of in loaded])
        with quiet(), pools as open_pool:
            augment(
                str(sample.path),
                str(written),
                loaded,
                open_pool,
                settings,
                report=lambda done, _: parts.append((done.lines, time.monotonic())),
            )
        (first, ready), (last, ended) = parts[min(1, len(parts) - 2)], parts[-1]
        seconds = ready - begun + (ended - ready) * (sample.lines / sample.share) / (last - first)
        click.echo(f"scoring: {duration(seconds)}")
        whole = written.stat().st_size / sample.share
        click.echo(f"the new table: {size(whole)}; {_free(Path(output).absolute().parent)}")


def _sample(data: TrainingData, folder: Path) -> Sample:

    from moses_feature.phrases.pairs import PairCollection, PhrasePair, read_pairs

    for table in data.tables:
        if not Path(table).is_file():
            found = table if table == STANDARD_STREAM or Path(table).exists() else "none"
            raise UsageError(f"--estimate looks at a file: expected its name, found {found}")
    lines, share = _write_head(data.tables, folder / "head")
    begun = time.monotonic()
    pairs: list[PhrasePair] = []
    for table in data.tables:
        with LineReader(table) as reader:
            pairs += islice(read_pairs(reader, data.words), SAMPLE_LINES // len(data.tables))
    unique = len(PairCollection(pairs))
    seconds = time.monotonic() - begun
    if not unique:
        raise MosesFeatureError(f"{', '.join(data.tables)}: expected phrase pairs, found none")
    words = sum(len(pair.source) + len(pair.target) for pair in pairs)
    return Sample(folder / "head", lines, share, unique, words, seconds)


def _write_head(tables: Sequence[str], path: Path) -> tuple[int, float]:
    """Write the head of each table; return the number of lines, and their share of all tables."""
    written, all_lines = 0, 0.0
    with path.open("wb") as head:
        for table in tables:
            with LineReader(table) as reader:
                here = list(islice(reader, SAMPLE_LINES // len(tables)))
                whole = next(iter(reader), None) is None
                fraction = 1.0 if whole else reader.fraction() or 1.0
            head.writelines(here)
            written += len(here)
            all_lines += len(here) / fraction
    return written, written / all_lines if all_lines else 1.0


def _print_sample(sample: Sample) -> None:
    click.echo(
        f"measured on the first {sample.lines:,} lines, {100 * sample.share:.3g}% of all; the "
        f"whole is about {sample.lines / sample.share:,.0f} lines with "
        f"{sample.pairs / sample.share:,.0f} unique pairs"
    )


def _estimate_training(
    data: TrainingData, settings: TrainingSettings, device: torch.device, sample: Sample
) -> Path:
    """Train for some seconds; print the estimate of the whole run; return the model."""
    from moses_feature.phrases.pairs import peak_bytes
    from moses_feature.phrases.training import train

    directory = sample.path.parent / "model"
    of_sample = replace(data, tables=[str(sample.path)], folds=1)
    trial = try_training(train, of_sample, settings, directory, device)
    pairs = sample.pairs / sample.share * (1 - 1 / data.folds if data.folds > 1 else 1)
    click.echo(
        f"training: reading {duration(sample.seconds / sample.share)}; "
        f"{rate(trial, settings, pairs, 'pairs')}"
        + (f", {data.folds} times (--folds)" if data.folds > 1 else "")
    )
    of_pairs = peak_bytes(sample.lines / sample.share, sample.words / sample.lines)
    click.echo(
        f"memory: about {size(process_bytes() + of_pairs)} while tables are read; "
        f"{on_disk(data.folds * trial.disk)}"
    )
    return directory


def _free(folder: Path) -> str:
    try:
        status = os.statvfs(folder)
    except OSError:
        return f"{folder} is not there"
    return f"{size(status.f_bavail * status.f_frsize)} are free in {folder}"
