"""`augment-phrase-table --plan`: the real work on the head of a table, in a temporary folder."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.progress import Progress, TrainingReporter
from moses_feature.moses.lines import LineReader
from moses_feature.phrases.settings import TrainingData, TrainingSettings
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.processes import duration
from moses_feature.tables.settings import AugmentSettings

if TYPE_CHECKING:
    import torch

LINES = 50_000
GIGABYTE = 1e9


def plan_augmenting(
    output: str,
    models: Sequence[tuple[str, Sequence[Path]]],
    data: TrainingData,
    training: TrainingSettings,
    settings: AugmentSettings,
    device: torch.device,
    *,
    fits: bool,
) -> None:
    """Print time and disk of `augment-phrase-table`; without `models`, one is trained.

    Raises:
        UsageError: the table is not a file.
        MosesFeatureError: bad data in its head, or a model that cannot be read.
    """
    from moses_feature.phrases.training import train
    from moses_feature.tables.augment import augment
    from moses_feature.tables.column_models import load_column_models
    from moses_feature.tables.pipeline import local_pools
    from moses_feature.training.trainer import RunControl

    [table] = data.tables
    if not Path(table).is_file():
        raise UsageError(f"--plan looks at a file: expected its name, found {table}")
    with tempfile.TemporaryDirectory(prefix="plan-") as folder:
        head, lines, share = _head(table, Path(folder))
        if not models:
            models = [("", [Path(folder) / "model"])]
            with Progress(has_end=False) as bar:
                report = TrainingReporter(bar, training)
                control = RunControl(stop=lambda: report.planned, last=True, report=report)
                of_head = replace(data, tables=[str(head)])
                if training.minutes is not None:  # the head has its share of them
                    training = replace(training, minutes=training.minutes * share)
                train(of_head, training, models[0][1][0], device, control, fits=fits)
            click.echo(f"an epoch of the whole table is {1 / share:.3g} times as long", err=True)
        written = Path(folder) / "written" / Path(output).name
        written.parent.mkdir()
        loaded = load_column_models(models)
        pools = local_pools([of.scorer(device, settings.scoring_dtype) for of in loaded])
        begun = time.monotonic()
        with pools as open_pool:
            augment(str(head), str(written), loaded, open_pool, settings)
        seconds, size = time.monotonic() - begun, written.stat().st_size / share
    free = shutil.disk_usage(Path(output).absolute().parent).free
    click.echo(
        f"plan (an estimate, of {lines:,} lines of about {lines / share:,.0f}): scoring "
        f"{duration(seconds / share)}; the new table {size / GIGABYTE:.2g} GB, "
        f"{free / GIGABYTE:.2g} GB are free"
    )


def _head(table: str, folder: Path) -> tuple[Path, int, float]:
    """Write the head of a table; return the file, its lines, and its share of the table."""
    with LineReader(table) as reader:
        lines = list(islice(reader, LINES))
        whole = next(iter(reader), None) is None
        share = 1.0 if whole else reader.fraction() or 1.0
    path = folder / "head"
    path.write_bytes(b"".join(lines))
    return path, len(lines), share
