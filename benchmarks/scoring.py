"""Scoring speed: against a naive twin, and against what the machine can do.

    python benchmarks/scoring.py TABLE [--lines 100000] [--presets paper small] [--model DIR]
        [--device cuda]

Without a model, weights are random (that does not change the time). All sides are measured in one
run on the first lines of the table; the ratios are what counts, absolute figures depend on the
machine. The machine limit is the time of the floating-point operations that cannot be avoided
(each distinct prefix once) at the fastest rate of matrix products of the same shapes, measured
here, and of reading and writing the gz files with the fastest library.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import io
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import nn
from twin import BATCH, padded, processor, twin_log_probs
from xopen import xopen

from moses_feature.moses.lines import LineReader
from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import PairSizes
from moses_feature.networks.computation import ROWS
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.networks.output_layer import WORDS_TOGETHER
from moses_feature.networks.pair_network import network_of
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.model import PhraseModel, load_model, save_model
from moses_feature.phrases.packing import Packed, WordPair
from moses_feature.phrases.pairs import PairCollection, read_pairs
from moses_feature.phrases.scorer import Scorer, packer_of, scorer_of
from moses_feature.phrases.settings import PRESETS, Sizes
from moses_feature.tables.augment import LINES_PER_PART
from moses_feature.tables.columns import ColumnsOfModel, NewColumns
from moses_feature.tables.parts import PartReader
from moses_feature.training.objective import choose_device

MIB = 1 << 20


SELF_NORMALISED = {"settings": {"self_normalisation": 0.1}}
"""Of a network whose log Z is not subtracted."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=["paper", "small"])
    parser.add_argument("--model", type=Path, help="in place of random weights")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    device = choose_device(arguments.device)
    print(f"{arguments.table}, {processor(device)}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as scratch:
        table = Table(arguments.table, arguments.lines, Path(scratch))
        gc.freeze()  # the pairs stay; looking at them again and again would slow both sides
        print(f"the first {len(table.pairs):,} lines")
        names = ["the model"] if arguments.model else arguments.presets
        for name in names:
            model = (
                load_model(arguments.model)
                if arguments.model
                else table.random_model(PRESETS[name])
            )
            print(f"\n{name}")
            measure(model, table, Path(scratch), device)


class Table:
    """The first lines of a phrase table."""

    def __init__(self, path: str, lines: int, scratch: Path) -> None:
        self.path = path
        self.head = scratch / "head.gz"
        with LineReader(path) as reader, gzip.open(self.head, "wb", compresslevel=6) as file:
            file.writelines(islice(reader, lines))
        with LineReader(self.head) as reader:
            pairs = read_pairs(reader, WordOptions())
            self.pairs = [(pair.source, pair.target) for pair in pairs]
        with LineReader(path) as reader:
            self.collection = PairCollection(read_pairs(reader, WordOptions()))
            self.lines = reader.line_number

    def random_model(self, sizes: PairSizes, direction: Direction = FORWARD) -> PhraseModel:
        """Return a model with the table's shortlists and weights that keep sums of size 1."""
        counts = self.collection.source_counts(), self.collection.target_counts()
        sides = (Vocabulary.most_frequent(side, 15_000) for side in counts)
        source, target = reversed(list(sides)) if direction.reverse else sides
        network = network_of(sizes, len(source), len(target))
        for layer in network.modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
            elif isinstance(layer, nn.Embedding):
                nn.init.normal_(layer.weight)
        return PhraseModel(network, source, target, WordOptions(), {}, False, direction)


def measure(model: PhraseModel, table: Table, scratch: Path, device: torch.device) -> None:
    """Print everything about one model."""
    pairs = table.pairs
    operations = Operations.of(model, pairs)
    twin_seconds, twin = time_twin(model, pairs, device)
    row("naive twin, float32", f"{len(pairs) / twin_seconds:10,.0f} pairs/s")
    directory = scratch / f"{model.network.sizes.hidden}.model"
    save_model(directory, model)
    exact = None
    for dtype in ("float32", "bfloat16"):
        scorer = scorer_of(model, device, dtype)
        seconds, scores = time_scorer(scorer, pairs)
        row(
            f"scoring alone, {dtype}",
            f"{len(pairs) / seconds:10,.0f} pairs/s, {twin_seconds / seconds:.2f} times the twin",
        )
        if exact is None:
            exact = scores
            row("  largest difference to the twin", f"{np.abs(scores - twin).max():10.1e} nats")
        else:
            error = np.abs(scores - exact)
            row("  error", f"mean {error.mean():.4f}, largest {error.max():.3f} nats")
            for least in (2, 10):
                row(
                    f"  rank correlation, {least} or more targets",
                    f"{rank_correlation(pairs, exact, scores, least):10.5f}",
                )
        logits_alone, _ = time_scorer(
            scorer_of(replace(model, training=SELF_NORMALISED), device, dtype), pairs
        )
        row(
            f"self-normalised, {dtype}",
            f"{len(pairs) / logits_alone:10,.0f} pairs/s, {seconds / logits_alone:.2f} times "
            "the speed with log Z",
        )
        limit = operations.seconds(dtype, device)
        row(
            "  machine limit, products",
            f"{len(pairs) / limit:10,.0f} pairs/s; share reached {limit / seconds:.0%}",
        )
        whole, memory = run_augment(table.head, directory, scratch, device, dtype)
        gz = gz_seconds(table.head, scratch / "out.gz")
        row(
            f"from gz to gz, {dtype}",
            f"{len(pairs) / whole:10,.0f} pairs/s, {twin_seconds / whole:.2f} times the twin",
        )
        row("  against scoring alone", f"{whole / seconds:10.2f} times the time")
        row(
            "  machine limit, products and gz",
            f"{len(pairs) / (limit + gz):10,.0f} pairs/s; share reached {(limit + gz) / whole:.0%}",
        )
        row("  peak memory", f"{memory / MIB:10,.0f} MiB")
        del scorer
    packing(model, table)
    other_networks(model.network.sizes, table, device)
    scaling(table, directory, scratch, device)
    many_targets(model, pairs, device)


def packing(model: PhraseModel, table: Table) -> None:
    """Print the time of packing lines in compiled code, and of packing their words one by one."""
    packer = packer_of(model)
    of_model = ColumnsOfModel(("p",), packer, WordOptions())
    with LineReader(table.head) as reader:
        lines = list(PartReader(reader, LINES_PER_PART, None, None))
    seconds = []
    for words in (WordOptions(), WordOptions(escaping="escape")):  # these are made one by one
        columns = NewColumns([replace(of_model, words=words)], str(table.head), "out")
        columns.pack(lines[0])
        start = time.perf_counter()
        for part in lines:
            columns.pack(part)
        seconds.append(time.perf_counter() - start)
    compiled, plain = (1e6 * of_all / len(table.pairs) for of_all in seconds)
    row("packing", f"{compiled:10.1f} us a line, {plain / compiled:.1f} times the speed of")
    row("  tokens made into words one by one", f"{plain:10.1f} us a line")


def other_networks(sizes: Sizes, table: Table, device: torch.device) -> None:
    """Print the speed of other networks of the same sizes, with that of the network itself."""
    others = {
        "the network itself": table.random_model(sizes),
        "p(source | target)": table.random_model(sizes, Direction(reverse=True)),
        **{
            f"unit {unit}": table.random_model(replace(sizes, unit=unit))
            for unit in ("tanh", "lstm")
        },
    }
    first = None
    for name, model in others.items():
        seconds, _ = time_scorer(scorer_of(model, device), table.pairs)
        first = first or seconds
        speed = f"{len(table.pairs) / seconds:10,.0f} pairs/s"
        row(f"random weights, {name}", f"{speed}, {first / seconds:.2f} times the first")


def row(name: str, value: str) -> None:
    """Print a line of the report."""
    print(f"  {name:<38} {value}", flush=True)


def time_twin(
    model: PhraseModel, pairs: list[WordPair], device: torch.device
) -> tuple[float, np.ndarray]:
    """Return the twin's time and scores."""
    network = model.network.to(device)

    def score(pairs: list[WordPair]) -> np.ndarray:
        scores = []
        for start in range(0, len(pairs), BATCH):
            batch = pairs[start : start + BATCH]
            x = padded([model.source.ids(source) for source, _ in batch])
            y = padded([model.target.ids(target) for _, target in batch])
            scores.append(twin_log_probs(network, x.to(device), y.to(device)))
        return torch.cat(scores).cpu().numpy()

    with torch.inference_mode():
        score(pairs[: 2 * BATCH])
        start = time.perf_counter()
        scores = score(pairs)
        seconds = time.perf_counter() - start
    network.cpu()
    return seconds, scores


def time_scorer(scorer: Scorer, pairs: list[WordPair]) -> tuple[float, np.ndarray]:
    """Return the time and the scores of the scorer, packing included."""
    scorer.score(pairs[:LINES_PER_PART])
    start = time.perf_counter()
    scores = [scorer.score(batch).log_probs for batch in parts(pairs)]
    return time.perf_counter() - start, np.concatenate(scores)


def parts(pairs: list[WordPair]) -> Iterator[list[WordPair]]:
    """Cut pairs as a table is cut."""
    for start in range(0, len(pairs), LINES_PER_PART):
        yield pairs[start : start + LINES_PER_PART]


def rank_correlation(
    pairs: list[WordPair], exact: np.ndarray, found: np.ndarray, least: int
) -> float:
    """Return Spearman's correlation within the sources with enough targets, weighted by targets."""
    rows = defaultdict(list)
    for number, (source, _) in enumerate(pairs):
        rows[tuple(source)].append(number)
    groups = [group for group in rows.values() if len(group) >= least]
    if not groups:
        return float("nan")
    ranks = [[np.argsort(np.argsort(side[group])) for side in (exact, found)] for group in groups]
    correlations = [np.corrcoef(a, b)[0, 1] for a, b in ranks]
    return float(np.average(correlations, weights=[len(group) for group in groups]))


@dataclass(frozen=True)
class Operations:
    """Matrix products that cannot be avoided: rows of each shape (inner, width)."""

    rows: dict[tuple[int, int], int]

    @classmethod
    def of(cls, model: PhraseModel, pairs: list[WordPair]) -> Operations:
        """Count the distinct prefixes, part by part."""
        packer = packer_of(model)
        rows: dict[tuple[int, int], int] = defaultdict(int)
        for batch in parts(pairs):
            for shape, count in shapes(model.network.sizes, len(model.target), packer.pack(batch)):
                rows[shape] += count
        return cls(dict(rows))

    def flops(self) -> float:
        """Return their floating-point operations."""
        return sum(2.0 * rows * inner * width for (inner, width), rows in self.rows.items())

    def seconds(self, dtype: str, device: torch.device) -> float:
        """Return the time that they take at the fastest rate of their shapes."""
        return sum(
            2.0 * rows * inner * width / best_rate(inner, width, getattr(torch, dtype), device)
            for (inner, width), rows in self.rows.items()
        )


def shapes(sizes: Sizes, words: int, packed: Packed) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield (inner, width) and rows of every product."""
    ((_, trees),) = packed.parts
    hidden, maxout = sizes.hidden, sizes.maxout
    encoded = sum(len(level.word) for level in trees.source_levels)
    sources = int(trees.source_of_row.max()) + 1
    decoded = sources + sum(int(level.grows.sum()) for level in trees.target_levels)
    yield (hidden, 2 * hidden), encoded
    yield (hidden, hidden), encoded + 2 * sources
    yield (hidden, 3 * hidden), sources + decoded
    yield (hidden, 2 * maxout), sources + decoded
    yield (maxout, sizes.rank), decoded
    yield (sizes.rank, words), decoded


def best_rate(inner: int, width: int, dtype: torch.dtype, device: torch.device) -> float:
    """Return the operations per second of the product at its best.

    On a CPU by all threads together, or one for each thread; of many or few words at once.
    """
    threads = torch.get_num_threads()
    rates = []
    on_cpu = device.type == "cpu"
    for rows in (ROWS, 4096) if on_cpu else (4096, 65_536):
        columns = min(width, WORDS_TOGETHER) if on_cpu and inner < width // 8 else width
        weight = torch.randn(inner, columns, dtype=dtype, device=device)

        def multiply(rows: int = rows, weight: torch.Tensor = weight) -> float:
            left = torch.randn(rows, len(weight), dtype=dtype, device=device)
            result = left.new_empty(rows, weight.shape[1])
            times = []
            for _ in range(12):
                start = time.perf_counter()
                for _ in range(4):
                    torch.mm(left, weight, out=result)
                if not on_cpu:
                    torch.cuda.synchronize()
                times.append((time.perf_counter() - start) / 4)
            return min(times)

        flops = 2.0 * rows * inner * columns
        rates.append(flops / multiply())
        if not on_cpu:
            continue
        with ThreadPoolExecutor(
            threads, initializer=torch.set_num_threads, initargs=(1,)
        ) as executor:
            times = list(executor.map(lambda _, run=multiply: run(), range(threads)))
        rates.append(threads * flops / max(times))
    return max(rates)


def gz_seconds(table: Path, output: Path) -> float:
    """Return the time to read one gz file and to write another with the fastest library."""
    start = time.perf_counter()
    with xopen(table, "rb", threads=0) as file:
        file.read()
    reading = time.perf_counter() - start
    with xopen(output, "rb", threads=0) as file:
        content = file.read()
    start = time.perf_counter()
    with xopen(io.BytesIO(), "wb", format="gz", compresslevel=1, threads=0) as file:
        file.write(content)
    return reading + time.perf_counter() - start


def run_augment(
    table: Path | str,
    model: Path,
    scratch: Path,
    device: torch.device,
    dtype: str = "float32",
) -> tuple[float, int]:
    """Run the command; return the seconds that it reports, and its peak memory in bytes.

    The seconds are those of the table, without starting Python and reading the model. The memory
    is the sum over its processes, what they share counted once (PSS).
    """
    program = (
        "import sys, time; import moses_feature.tables.augment as a; real = a.augment\n"
        "from moses_feature.cli.tables.augment import augment_phrase_table\n"
        "def timed(*a, **k):\n"
        "    start = time.perf_counter(); done = real(*a, **k)\n"
        "    print(time.perf_counter() - start); return done\n"
        "a.augment = timed; augment_phrase_table()"
    )
    output = scratch / "out.gz"
    output.unlink(missing_ok=True)
    process = subprocess.Popen(  # noqa: S603  # our own command
        [
            sys.executable,
            "-c",
            program,
            str(table),
            str(output),
            "--model",
            str(model),
            "--dtype",
            dtype,
            "--device",
            str(device),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, tree_memory(process.pid))
        time.sleep(0.1)
    printed, _ = process.communicate()
    if process.returncode:
        sys.exit("augment-phrase-table failed")
    return float(printed), peak


def tree_memory(pid: int) -> int:
    """Return the proportional set size of a process and its children, in bytes."""
    total = 0
    pids = [pid]
    while pids:
        here = Path("/proc") / str(pids.pop())
        try:
            lines = (here / "smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10
            for task in (here / "task").iterdir():
                pids += map(int, (task / "children").read_text().split())
        except (OSError, StopIteration):
            continue
    return total


def scaling(table: Table, directory: Path, scratch: Path, device: torch.device) -> None:
    """Print the time per line of a tenth of the lines, of the lines and of the whole table."""
    tenth = scratch / "tenth.gz"
    with LineReader(table.head) as reader, gzip.open(tenth, "wb", compresslevel=6) as file:
        file.writelines(islice(reader, len(table.pairs) // 10))
    for path, lines in (
        (tenth, len(table.pairs) // 10),
        (table.head, len(table.pairs)),
        (table.path, table.lines),
    ):
        seconds, memory = run_augment(path, directory, scratch, device)
        row(
            f"from gz to gz, {lines:,} lines",
            f"{1e6 * seconds / lines:10.1f} us a line, {memory / MIB:,.0f} MiB",
        )


def many_targets(model: PhraseModel, pairs: list[WordPair], device: torch.device) -> None:
    """Print what sharing prefixes saves: 2,000 sources with 50 sampled targets each."""
    generator = np.random.default_rng(1)
    sources = list(dict.fromkeys(tuple(source) for source, _ in pairs))[:2000]
    targets = [target for _, target in pairs]
    sampled = [
        [(source, targets[n]) for n in generator.integers(0, len(targets), 50)]
        for source in sources
    ]
    together = [pair for of_source in sampled for pair in of_source]
    apart = [[of_source[n] for of_source in sampled] for n in range(50)]
    scorer = scorer_of(model, device)
    shared, _ = time_scorer(scorer, together)
    start = time.perf_counter()
    for batch in apart:  # each source once in a batch: nothing to share but source prefixes
        scorer.score(batch)
    unshared = time.perf_counter() - start
    saved = 1 - Operations.of(model, together).flops() / sum(
        Operations.of(model, batch).flops() for batch in apart
    )
    row(
        "50 targets a source",
        f"{len(together) / shared:10,.0f} pairs/s; sharing prefixes saves {saved:.0%} of the "
        f"operations, {1 - shared / unshared:.0%} of the time",
    )


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
