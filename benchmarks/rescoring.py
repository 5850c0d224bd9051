"""How fast a network for sentences rescores n-best lists, against the program of an afternoon.

    python benchmarks/rescoring.py MODEL N-BEST SOURCE [--sentences 30]

The naive twin puts the translations of a sentence, and its source as often, into a padded batch of
PyTorch. Both score the same lists in one run, on one core; seconds are those of the processor. The
first list compiles.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import time
from collections.abc import Callable
from itertools import groupby, islice
from pathlib import Path

import numpy as np
import torch

from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_lists import NbestLine
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import load_model
from moses_feature.rescoring.features import SentenceFeature
from moses_feature.rescoring.nbest import TOGETHER
from moses_feature.rescoring.source import SourceText

Lists = list[tuple[int, list[NbestLine]]]


def read_lists(path: str, count: int) -> Lists:
    """Read the lists of the first sentences."""
    with LineReader(path) as reader:
        lines = (NbestLine(line, "lists", 1) for line in reader)
        groups = groupby(lines, key=lambda line: line.sentence)
        return [(n, list(group)) for n, group in islice(groups, count)]


def naive(directory: str, source: SourceText) -> Callable[[Lists], list[float]]:
    """Return a scorer of padded batches."""
    model = load_model(Path(directory))
    network = model.network.eval()

    def of_list(sentence: int, translations: list[NbestLine]) -> list[float]:
        words = source.sentence(sentence).split()
        texts = (other.words for other in translations)
        sides = zip(*(model.direction.sides(words, text) for text in texts), strict=True)
        packed = (
            PackedSequences.pack([vocabulary.ids(text) for text in side])
            for side, vocabulary in zip(sides, (model.source, model.target), strict=True)
        )
        rows = np.arange(len(translations))
        tensors = [torch.from_numpy(array) for side in packed for array in side.padded(rows, END)]
        with torch.no_grad():
            flat, _ = network(*tensors)
        return [of_words.sum().item() for of_words in flat.split((tensors[3] + 1).tolist())]

    return lambda lists: [score for of in lists for score in of_list(*of)]


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("n_best")
    parser.add_argument("source")
    parser.add_argument("--sentences", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    lists = read_lists(arguments.n_best, arguments.sentences)
    source = SourceText.read(arguments.source)
    found, rates = {}, {}
    scorers = {
        "naive": naive(arguments.model, source),
        "shared": SentenceFeature("S", [arguments.model], source).scores,
    }
    for name, scores in scorers.items():
        scores(lists[:1])
        start = time.process_time()
        parts = (lists[n : n + TOGETHER] for n in range(0, len(lists), TOGETHER))
        found[name] = np.concatenate([scores(part) for part in parts])
        rates[name] = len(found[name]) / (time.process_time() - start)
    for name, rate in rates.items():
        print(f"{name:7} {rate:8.0f} translations/s")
    print(f"ratio {rates['shared'] / rates['naive']:.2f}")
    print(f"largest difference {np.abs(found['naive'] - found['shared']).max():.6f} nats")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
