"""What a neural language model costs in search: sentences a second with and without it.

    python benchmarks/neural_decoding.py INI INPUT [--sentences 300]

INI has a NeuralLM line. One core; the models are read before, and the same sentences are
translated each time: without the model; with it and no buffer (each n-gram scored when it is
asked for); with a buffer, cold; again with other weights, as in the next iteration of tuning; and
with scores that are normalised over all words.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from dataclasses import replace

from mert.corpus import read_text
from mert.decoders.embedded.decoder import EmbeddedDecoder
from mert.decoders.embedded.language_model import BUFFER
from mert.decoders.embedded.system import System
from mert.source_phrases import Sentence
from moses_feature.lm.scorer import NeuralLM
from moses_feature.moses.ini import MosesIni


def decoder_of(
    system: System, sentences: list[Sentence], normalised: bool = False, buffer: int = BUFFER
) -> EmbeddedDecoder:
    """Return a decoder."""
    decoder = EmbeddedDecoder(system, sentences, buffer=buffer)
    for model in decoder._options.models._models:
        if normalised and isinstance(model, NeuralLM):
            model.normalised = True
    return decoder


def measure(name: str, decoder: EmbeddedDecoder, count: int, baseline: float | None) -> float:
    """Translate all sentences; print and return sentences a second."""
    models = decoder._options.models
    asked = models.asked.copy()
    neural = [n for n, m in enumerate(models._models) if isinstance(m, NeuralLM)]
    scored = models.scored
    start = time.perf_counter()
    for sentence in range(count):
        decoder.translate(sentence)
    rate = count / (time.perf_counter() - start)
    line = f"{name:34} {rate:7.1f} sentences/s"
    if baseline is not None:
        line += f", {rate / baseline:.2f} of the rate without"
    new = models.scored - scored
    if neural:
        total = sum((models.asked - asked)[neural])
        line += f"; {new / count:6.0f} n-grams scored a sentence, {1 - new / total:.1%} of "
        line += "look-ups answered from memory"
    print(line)
    return rate


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ini")
    parser.add_argument("input")
    parser.add_argument("--sentences", type=int, default=300)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    system = System.of_ini(MosesIni.read(arguments.ini))
    sentences = read_text(arguments.input)[0][: arguments.sentences]
    count = len(sentences)
    plain = tuple(model for model in system.language_models if model.order is None)
    decoder_of(system, sentences[:1]).translate(0)  # compiles
    without = decoder_of(replace(system, language_models=plain), sentences)
    rate = measure("without", without, count, None)
    measure("with it, no buffer", decoder_of(system, sentences, buffer=0), count, rate)
    buffered = decoder_of(system, sentences)
    measure(f"with it, buffer of {BUFFER:,}", buffered, count, rate)
    weights = buffered.features.weights[buffered.features.tuneable]
    names = buffered.features.names
    weights[[n.startswith("CSLM") for n in names]] *= 1.5
    buffered._use(buffered.features.with_weights(weights))
    measure("  again, weight of it times 1.5", buffered, count, rate)
    measure("with it, normalised", decoder_of(system, sentences, normalised=True), count, rate)


if __name__ == "__main__":
    main()
