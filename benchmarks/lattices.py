"""Line search on the lattices of a search against that on its n-best lists, in one run.

    python benchmarks/lattices.py INI DEV REFERENCE [--pops N] [--n-best N]

The same searches give both, with the weights of the ini. Seconds are those of one core; a line goes
along each feature, and along random directions of three features.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from mert.corpus import Corpus
from mert.decoders.choice import DecoderSettings
from mert.decoders.embedded.decoder import SearchLimits
from mert.lattices.files import Vocabulary, read_lattices
from mert.lattices.lattice import together
from mert.lattices.lines import LatticeLines
from mert.lattices.paths import envelopes
from mert.lattices.strings import CountedStrings
from mert.nbest import read_nbest
from mert.optimisers.line_search import LineSearch
from mert.optimisers.mert import MOVING, Lines
from mert.optimisers.space import normalised
from mert.pools.pool import Pool
from moses_feature.metrics.metric import METRICS
from moses_feature.moses.ini import MosesIni

RANDOM = 20


def directions(size: int) -> list[np.ndarray]:
    """Return single features, then random directions."""
    generator = np.random.default_rng(1)
    random = np.zeros((RANDOM, size))
    for row in random:
        row[generator.permutation(size)[:MOVING]] = generator.normal(size=min(MOVING, size))
    return [*np.eye(size), *map(normalised, random)]


def time_lines(name: str, lines: Lines, weights: np.ndarray, size: int) -> None:
    """Time each line a second time, when all its translations have been counted."""
    scores = lines.scores(weights)
    chosen = lines.chosen(scores)
    of_kind = {}
    for number, direction in enumerate(directions(len(weights))):
        for _ in range(2):
            began = time.process_time()
            lines.along(scores, chosen, lines.line(direction), -np.inf, np.inf)
            spent = time.process_time() - began
        kind = "features" if number < len(weights) else "random directions"
        of_kind.setdefault(kind, []).append(1000 * spent)
    shown = ", ".join(f"{np.mean(spent):.1f} ms along {kind}" for kind, spent in of_kind.items())
    print(f"{name} ({size}): quality {lines.quality_of_rows(chosen):.5f}; a line takes {shown}")


def main() -> None:
    """Decode once, and time both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ini")
    parser.add_argument("dev")
    parser.add_argument("reference")
    parser.add_argument("--pops", type=int, default=500)
    parser.add_argument("--n-best", type=int, default=100)
    given = parser.parse_args()
    corpus = Corpus.read(given.dev, [given.reference])
    settings = DecoderSettings(limits=SearchLimits(pops=given.pops))
    decoder = settings.make(MosesIni.read(given.ini), corpus.sentences)
    features = decoder.features
    weights = normalised(features.weights[features.tuneable])
    bleu = METRICS["bleu"]
    with tempfile.TemporaryDirectory() as scratch:
        lists, lattices = Path(scratch) / "nbest.gz", Path(scratch) / "lattices.gz"
        decoder.write_nbest(features, given.n_best, lists)
        decoder.write_lattices(features, lattices)
        pool = Pool(corpus.references, features.names)
        pool.add(read_nbest(lists, features, len(corpus)))
        vocabulary = Vocabulary()
        found = list(read_lattices(lattices, vocabulary, len(features.names), len(corpus)))
    candidates = pool.candidates()
    time_lines("n-best lists", LineSearch(candidates), weights, len(candidates.features))
    numbers = [number for number, lattice in enumerate(found) if len(lattice)]
    joined = together([found[number] for number in numbers], numbers)
    references = [bleu.references(of_sentence) for of_sentence in corpus.references]
    strings = CountedStrings(references, vocabulary.words, bleu.width)
    lines = LatticeLines(joined, strings)
    time_lines("lattices", lines, weights, len(joined.tails))
    scores = lines.scores(weights)
    began = time.process_time()
    for direction in directions(len(weights)):
        envelopes(joined, scores, lines.scores(direction), -1.0, 1.0)
    spent = (time.process_time() - began) / len(directions(len(weights)))
    print(f"of that, {1000 * spent:.1f} ms for the envelopes")


if __name__ == "__main__":
    main()
