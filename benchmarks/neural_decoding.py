"""What a neural language model costs in search: sentences a second with and without it.

    python benchmarks/neural_decoding.py INI INPUT [--sentences 300] [--pop-limit 200]
        [--older CHECKOUT]

INI has a NeuralLM line. One core; the models are read before, and the same sentences are translated
each time: without the model; with it; again with other weights, as in the next iteration of tuning;
and with scores that are normalised over all words. An older checkout, whose benchmark has the same
name, runs first.
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

from moses_feature.cslm.scorer import NeuralLM
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.system import System
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import read_text


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
    given = sentences, SearchLimits(arguments.pop_limit)
    count = len(sentences)
    plain = tuple(model for model in system.language_models if model.order is None)
    EmbeddedDecoder(system, *given).translate(0)  # compiles
    without = EmbeddedDecoder(replace(system, language_models=plain), *given)
    rate = measure("without", without, count, None)
    decoder = EmbeddedDecoder(system, *given)
    measure("with it", decoder, count, rate)
    weights = decoder.features.weights[decoder.features.tuneable]
    weights[[name.startswith("CSLM") for name in decoder.features.names]] *= 1.5
    decoder._use(decoder.features.with_weights(weights))
    measure("  again, weight of it times 1.5", decoder, count, rate)
    normalised = EmbeddedDecoder(system, *given)
    for model in normalised._options.models._models:
        if isinstance(model, NeuralLM):
            model.normalised = True
    measure("with it, normalised", normalised, count, rate)


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
