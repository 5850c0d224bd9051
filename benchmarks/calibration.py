"""How often the p-value of `mert-compare` finds a difference between systems that have none.

Two systems are made equal: their translations of a sentence are drawn from the same pool. A run of
a system changes a share of its sentences, and has a quality of its own (the luck of tuning). The
sentences of each comparison are drawn, too. The pools are simulated, or n-best lists:

    python benchmarks/calibration.py
    python benchmarks/calibration.py --lists test.nbest.gz --reference test.fr

Prints, for each case, the shares of comparisons with p <= 0.05 and p <= 0.01, in percent; and how
often a true difference of 1 BLEU is found, beside a paired bootstrap without luck.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from mert.comparison.significance import compared, t_test
from moses_feature.metrics.bleu import BLEU, References
from moses_feature.moses.lines import read_parallel
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import nbest_lines
from moses_feature.runtime.arrays import Floats

RUNS = ((2, 2), (3, 3), (5, 5), (1, 3))
SHARED = (0.0, 0.5, 0.9, 0.97)
LUCK = (0.0, 0.3, 0.6)
LIST = 20
"""Translations of a pool."""


@dataclass(frozen=True)
class Case:
    """Two systems: their runs, the share of a system's sentences in each run, and BLEU of luck."""

    runs: tuple[int, int]
    shared: float
    luck: float
    better: float = 0.0
    """BLEU that the first system is better by."""


def simulated(generator: np.random.Generator, sentences: int = 2_000) -> Floats:
    """Return the statistics (sentences, LIST, 9) of pools with BLEU of 30 or so."""
    lengths = generator.integers(5, 40, sentences)
    easy = generator.beta(6, 4, sentences)
    pools = np.zeros((sentences, LIST, 9))
    for n in range(4):
        totals = np.maximum(lengths - n, 0)
        known = np.clip(easy[:, None] + generator.normal(0, 0.08, (sentences, LIST)), 0.02, 0.98)
        share = known ** (1 + 0.6 * n)
        pools[:, :, 2 * n + 1] = totals[:, None]
        pools[:, :, 2 * n] = generator.binomial(totals[:, None], share)
    pools[:, :, 8] = lengths[:, None]
    return pools


def of_lists(lists: Path, reference: Path) -> Floats:
    """Return the statistics (sentences, LIST, 9) of the first translations of n-best lists."""
    references = read_parallel([str(reference)])[0][0]
    found: list[list[list[bytes]]] = [[] for _ in references]
    with NbestReader(lists) as reader:
        for line in nbest_lines(reader, len(references)):
            if len(found[line.sentence]) < LIST:
                found[line.sentence].append(line.words)
    full = [(of, texts) for of, texts in zip(references, found, strict=True) if len(texts) == LIST]
    return np.stack([References([of]).statistics(texts) for of, texts in full]).astype(np.float64)


def drawn(
    pools: Floats, case: Case, sentences: int, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the statistics (runs, sentences, 9) of both systems on a text that is drawn."""
    text = generator.integers(0, len(pools), sentences)
    systems = []
    for count, better in zip(case.runs, (case.better, 0.0), strict=True):
        own = generator.integers(0, LIST, sentences)
        others = generator.integers(0, LIST, (count, sentences))
        keeps = generator.random((count, sentences)) < case.shared
        runs = pools[text, np.where(keeps, own, others)]
        bleu = 100 * BLEU.quality(runs[0].sum(axis=0))
        gains = better + generator.normal(0, case.luck, count)
        runs[:, :, 0:8:2] *= (1 + gains / bleu)[:, None, None]  # the geometric mean, too
        systems.append(runs)
    return systems[0], systems[1]


def p_values(case: Case, pools: Floats, sentences: int, trials: int) -> tuple[Floats, Floats]:
    """Return the p-values of comparisons, and those of their sentences alone."""
    generator = np.random.default_rng(7)
    found = [compared(*drawn(pools, case, sentences, generator)) for _ in range(trials)]
    of_sentences = [t_test(of.quality / of.of_sentences, np.inf) for of in found]
    return np.array([of.p for of in found]), np.array(of_sentences)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--sentences", type=int, default=1_000)
    parser.add_argument("--trials", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    generator = np.random.default_rng(3)
    pools = of_lists(given.lists, given.reference) if given.lists else simulated(generator)
    print(f"{len(pools):,} pools of {LIST} translations, texts of {given.sentences:,} sentences")
    cases = [Case(*of) for of in product(RUNS, SHARED, LUCK)]
    better = [Case((3, 3), shared, luck, 1.0) for shared in SHARED for luck in LUCK]
    ask = partial(p_values, pools=pools, sentences=given.sentences, trials=given.trials)
    with ProcessPoolExecutor(given.jobs) as pool:
        print("| runs | shared | luck | p ≤ 0.05 | p ≤ 0.01 | sentences alone, ≤ 0.05 |")
        print("|---|---|---|---|---|---|")
        for case, (found, alone) in zip(cases, pool.map(ask, cases), strict=True):
            shares = [
                100 * np.mean(of <= p) for of, p in ((found, 0.05), (found, 0.01), (alone, 0.05))
            ]
            runs = f"{case.runs[0]} and {case.runs[1]}"
            cells = " | ".join(f"{share:.1f}%" for share in shares)
            print(f"| {runs} | {100 * case.shared:.0f}% | {case.luck} | {cells} |", flush=True)
        print("\n1 BLEU better, three runs each: found at 0.05\n")
        print("| shared | luck | found | sentences alone |\n|---|---|---|---|")
        for case, (found, alone) in zip(better, pool.map(ask, better), strict=True):
            cells = " | ".join(f"{100 * np.mean(of <= 0.05):.1f}%" for of in (found, alone))
            print(f"| {100 * case.shared:.0f}% | {case.luck} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
