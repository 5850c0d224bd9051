"""What a neural language model costs in search: sentences a second with and without it.

    python benchmarks/neural_decoding.py INI INPUT [--sentences 300] [--pop-limit 200]
        [--older CHECKOUT]

INI has a NeuralLM, BilingualNPLM or SentenceNetwork line. One core; the models are read before, and
the same sentences are translated each time: without the model; with it, asked word by word as small
models are; again with other weights, as in the next iteration of tuning; the same two with many
words at a time, as large models are asked; and with scores that are normalised over all words. Of a
network for sentences, which is always asked so, the first two alone. An older checkout, whose
benchmark has the same name, runs first.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from moses_feature.cslm import feed_forward
from moses_feature.cslm.feed_forward import FeedForward
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.language_model import BUFFER
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.source_phrases import Sentence
from moses_feature.decoder.system import System
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import read_text


class Asked:
    """Decoders of the same sentences whose neural models are asked in different ways."""

    def __init__(self, system: System, sentences: list[Sentence], pops: int) -> None:
        self._system = system
        self._sentences = sentences
        self._limits = SearchLimits(pops)

    def at_once(self) -> EmbeddedDecoder:
        """Return a decoder whose neural models are asked as their size has it."""
        return EmbeddedDecoder(self._system, self._sentences, self._limits)

    def together(self, normalised: bool = False) -> EmbeddedDecoder:
        """Return a decoder that asks them many n-grams at a time."""
        most, feed_forward.MOST_AT_ONCE = feed_forward.MOST_AT_ONCE, 0
        try:
            decoder = self.at_once()
        finally:
            feed_forward.MOST_AT_ONCE = most
        for model in decoder._options.models._models:
            if normalised and isinstance(model, FeedForward):
                model.normalised = True
        return decoder


def measure_twice(name: str, decoder: EmbeddedDecoder, count: int, baseline: float) -> None:
    """Measure a decoder, and again with another weight of the neural models."""
    measure(name, decoder, count, baseline)
    weights = decoder.features.weights[decoder.features.tuneable]
    neural = ("CSLM", "NNJM", "RNNsearch", "Transformer")
    weights[[feature.startswith(neural) for feature in decoder.features.names]] *= 1.5
    decoder._use(decoder.features.with_weights(weights))
    measure("  again, weight of it times 1.5", decoder, count, baseline)


def measure(name: str, decoder: EmbeddedDecoder, count: int, baseline: float | None) -> float:
    """Translate all sentences; print and return sentences a second."""
    models = decoder._options.models
    scored = models.scored
    start = time.perf_counter()
    for sentence in range(count):
        decoder.translate(sentence)
    rate = count / (time.perf_counter() - start)
    line = f"{name:38} {rate:7.1f} sentences/s"
    if baseline is not None:
        new = models.scored - scored
        line += f", {rate / baseline:.2f} of the rate without"
        line += f"; {new / count:6.0f} words scored a sentence"
    print(line)
    return rate


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ini")
    parser.add_argument("input")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--pop-limit", type=int, default=200)
    parser.add_argument("--older")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if arguments.older:
        run_older(arguments.older, arguments.ini, arguments.input, arguments.sentences)
    system = System.of_ini(MosesIni.read(arguments.ini))
    sentences = read_text(arguments.input)[0][: arguments.sentences]
    count = len(sentences)
    plain = tuple(model for model in system.language_models if model.order is None)
    asked = Asked(system, sentences, arguments.pop_limit)
    asked.at_once().translate(0)  # compiles
    plain_system = replace(system, language_models=plain, joint_models=(), networks=())
    without = Asked(plain_system, sentences, arguments.pop_limit).at_once()
    rate = measure("without", without, count, None)
    measure_twice("with it", asked.at_once(), count, rate)
    if system.networks:
        return
    measure_twice(f"with it, {BUFFER:,} n-grams at a time", asked.together(), count, rate)
    measure("with it, normalised", asked.together(normalised=True), count, rate)


def run_older(checkout: str, ini: str, text: str, sentences: int) -> None:
    """Run the benchmark of another checkout."""
    print(checkout)
    subprocess.run(  # noqa: S603
        [
            *(sys.executable, "benchmarks/neural_decoding.py"),
            *(Path(path).resolve() for path in (ini, text)),
            *("--sentences", str(sentences)),
        ],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": "."},
        check=True,
    )
    print("this checkout")


if __name__ == "__main__":
    main()
