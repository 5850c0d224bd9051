"""Training speed against the naive twin with the same batches, and loss curves of two models.

    python benchmarks/training.py TABLE [--lines 100000] [--presets paper small] [--updates 60]
        [--device cuda]
    python benchmarks/training.py --curves MODEL MODEL --svg curves.svg

Both sides take turns in one run, with Adam and the same clipping; the ratio is what counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from twin import padded, processor, twin_log_probs

from moses_feature.moses.lines import LineReader
from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import PairSizes
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.encoder_decoder import EncoderDecoder
from moses_feature.phrases.objective import BatchSampler, PhraseData, PhraseObjective
from moses_feature.phrases.pairs import PairCollection, PhrasePairs, read_pairs
from moses_feature.phrases.settings import PRESETS, TrainingSettings
from moses_feature.training.objective import choose_device
from moses_feature.training.trainer import Trainer

WARM_UP = 5
COLOURS = ("#1f77b4", "#d62728")


def main() -> None:
    """Measure and print, or draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=["paper", "small"])
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--curves", nargs="+", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    if arguments.curves:
        arguments.svg.write_text(curves(arguments.curves))
        return
    if not arguments.table:
        sys.exit("expected a phrase table")
    with LineReader(arguments.table) as reader:
        collection = PairCollection(islice(read_pairs(reader, WordOptions()), arguments.lines))
    counts = collection.source_counts(), collection.target_counts()
    source, target = (Vocabulary.most_frequent(side, 15_000) for side in counts)
    pairs = collection.pairs(source, target, 0.01, 1000, 1)
    device = choose_device(arguments.device)
    print(f"{arguments.table}, {processor(device)}, torch {torch.__version__}")
    for preset in arguments.presets:
        measure(preset, pairs, source, target, arguments.updates, device)


def measure(
    preset: str,
    pairs: PhrasePairs,
    source: Vocabulary,
    target: Vocabulary,
    updates: int,
    device: torch.device,
) -> None:
    """Print pairs and target words per second of the twin and of the trainer."""
    settings = TrainingSettings(sizes=PRESETS[preset], updates=updates)
    rows = np.flatnonzero(~pairs.held_out)
    sampler = BatchSampler(pairs.sides, rows, settings.batch_size, 1, settings.pool)
    batches = [sampler.batch(update) for update in range(updates)]
    words = sum(int(pairs.target.lengths(rows).sum()) + len(rows) for rows in batches)
    size = sum(len(rows) for rows in batches)

    network = EncoderDecoder(PRESETS[preset], len(source), len(target))
    network.initialise(torch.Generator().manual_seed(1))
    network.to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def twin_update(update: int) -> None:
        rows = batches[update]
        x, y = (padded(phrases(side, rows)).to(device) for side in (pairs.source, pairs.target))
        loss = -twin_log_probs(network, x, y).sum() / len(rows)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
        optimizer.step()
        loss.item()

    twin = seconds(twin_update, updates)
    print(f"\n{preset}")
    print(f"  naive twin, float32   {size / twin:8,.0f} pairs/s  {words / twin:8,.0f} words/s")
    gru, short = PRESETS[preset], {"dtype": "bfloat16"}
    cases: dict[str, tuple[PairSizes, dict[str, Any]]] = {
        "float32": (gru, {}),
        "bfloat16": (gru, short),
        "bfloat16, 2,000 words": (gru, {**short, "sample": 2000}),
        "bfloat16, tanh": (replace(gru, unit="tanh"), short),
        "bfloat16, lstm": (replace(gru, unit="lstm"), short),
    }
    for name, (sizes, changed) in cases.items():
        settings = TrainingSettings(sizes=sizes, updates=updates, **changed)
        with tempfile.TemporaryDirectory() as scratch:
            objective = PhraseObjective(
                PhraseData(pairs, source, target, WordOptions()), settings, device
            )
            trainer = Trainer(objective, settings, Path(scratch), device, {"inputs": []})
            ours = seconds(lambda _, trainer=trainer: trainer._update(), updates)
        print(
            f"  {name:<22} {size / ours:8,.0f} pairs/s  {words / ours:8,.0f} words/s"
            f"  {twin / ours:.2f} times the twin"
        )


def phrases(side: PackedSequences, rows: np.ndarray) -> list[list[int]]:
    """Return phrases as lists of word ids."""
    return [side.ids[side.offsets[row] : side.offsets[row + 1]].tolist() for row in rows]


def seconds(update: Callable[[int], None], updates: int) -> float:
    """Return the time of the updates, after some to warm up."""
    for number in range(WARM_UP):
        update(number)
    start = time.perf_counter()
    for number in range(updates):
        update(number)
    return time.perf_counter() - start


def curves(models: list[Path]) -> str:
    """Return an SVG picture of the held-out losses of trained models, over the updates."""
    width, height, left, bottom = 640, 320, 60, 50
    histories = [json.loads((m / "config.json").read_text())["training"]["history"] for m in models]
    last = max(entry["update"] for history in histories for entry in history)
    losses = [entry["held_out_loss"] for history in histories for entry in history]
    low, high = np.floor(min(losses)), np.ceil(max(losses))

    def place(update: float, loss: float) -> str:
        x = left + (width - left - 20) * update / last
        y = (height - bottom) - (height - bottom - 20) * (loss - low) / (high - low)
        return f"{x:.1f},{y:.1f}"

    drawn = []
    for number, (model, history) in enumerate(zip(models, histories, strict=True)):
        points = " ".join(place(entry["update"], entry["held_out_loss"]) for entry in history)
        dashes = ' stroke-dasharray="6 4"' if number else ""
        colour = COLOURS[number % len(COLOURS)]
        drawn.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
        )
        x, y = width - 160, 40 + 20 * number
        drawn.append(
            f'<path d="M{x - 40} {y - 4}h30" stroke="{colour}" stroke-width="2"{dashes}/>'
            f'<text x="{x}" y="{y}">{model.name}</text>'
        )
    for loss in np.arange(low, high + 1):
        x, y = place(0, loss).split(",")
        drawn.append(f'<path d="M{x} {y}H{width - 20}" stroke="#ddd"/>')
        middle = float(y) + 4
        drawn.append(f'<text x="{left - 10}" y="{middle}" text-anchor="end">{loss:g}</text>')
    for update in np.linspace(0, last, 5):
        x, y = place(update, low).split(",")
        drawn.append(f'<text x="{x}" y="{float(y) + 18}" text-anchor="middle">{update:g}</text>')
    drawn.append(
        f'<text x="{(width + left) / 2}" y="{height - 8}" text-anchor="middle">updates</text>'
    )
    drawn.append(
        f'<text x="16" y="{height / 2}" text-anchor="middle" transform="rotate(-90 16 '
        f'{height / 2})">held-out loss, nats per target word</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12"><rect width="{width}" height="{height}" '
        'fill="white"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
