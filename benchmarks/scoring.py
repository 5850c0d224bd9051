"""Scoring speed: the scorer against what one would write with PyTorch in an afternoon.

    python benchmarks/scoring.py TABLE [--lines 5000] [--preset small] [--model DIR]

Without a model, weights are random (that does not change the time). Both sides score the same
lines in one run; the ratio is what counts, absolute figures depend on the machine.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from moses_feature.cross_fitting import scorer_of
from moses_feature.encoder_decoder import PRESETS, EncoderDecoder
from moses_feature.model_directory import PhraseModel, load_model
from moses_feature.phrase_pairs import PairCollection, read_pairs
from moses_feature.phrase_table import LineReader
from moses_feature.vocabulary import END, Vocabulary
from moses_feature.words import WordOptions

TWIN_BATCH = 256


def twin_scores(model: PhraseModel, pairs: list) -> np.ndarray:
    """Score in table order: batches of 256, padded, masked, full softmax."""
    network: EncoderDecoder = model.network
    scores = []
    for start in range(0, len(pairs), TWIN_BATCH):
        batch = pairs[start : start + TWIN_BATCH]
        source = [torch.tensor([*model.source.ids(s), END]) for s, _ in batch]
        target = [torch.tensor([*model.target.ids(t), END]) for _, t in batch]
        x, y = (pad_sequence(side, batch_first=True, padding_value=-1) for side in (source, target))
        state = torch.zeros(len(batch), network.sizes.hidden)
        for t in range(x.shape[1]):
            word = network.source_embedding(x[:, t].clamp(min=0))
            new = encoder_cell(network, word, state)
            state = torch.where((x[:, t] >= 0)[:, None], new, state)
        c = torch.tanh(network.summary(state))
        state = torch.tanh(network.decoder_start(c))
        total = torch.zeros(len(batch))
        previous = torch.full((len(batch),), END)
        for t in range(y.shape[1]):
            word = network.target_embedding(previous)
            state = decoder_cell(network, word, state, c)
            s = network.maxout_state(state) + network.maxout_input(word) + network.maxout_summary(c)
            s = s.unflatten(1, (-1, 2)).amax(2)
            logits = network.output_words(network.output_rank(s))
            log_probs = functional.log_softmax(logits, 1)
            previous = y[:, t].clamp(min=0)
            here = log_probs.gather(1, previous[:, None])[:, 0]
            total += torch.where(y[:, t] >= 0, here, 0.0)
        scores.append(total)
    return torch.cat(scores).numpy()


def encoder_cell(network: EncoderDecoder, word: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """Read a word."""
    i_z, i_r, i = network.encoder_input(word).chunk(3, 1)
    z, r = network.encoder_gates(state).chunk(2, 1)
    z, r = torch.sigmoid(i_z + z), torch.sigmoid(i_r + r)
    return z * state + (1 - z) * torch.tanh(i + network.encoder_candidate(r * state))


def decoder_cell(
    network: EncoderDecoder, word: torch.Tensor, state: torch.Tensor, c: torch.Tensor
) -> torch.Tensor:
    """Write a word."""
    i_z, i_r, i = network.decoder_input(word).chunk(3, 1)
    z, r, u = (network.decoder_state(state) + network.decoder_summary(c)).chunk(3, 1)
    z, r = torch.sigmoid(i_z + z), torch.sigmoid(i_r + r)
    return z * state + (1 - z) * torch.tanh(i + r * u)


def random_model(table: str, preset: str) -> PhraseModel:
    """Return a model with the table's shortlists and random weights."""
    with LineReader(table) as reader:
        collection = PairCollection(read_pairs(reader, WordOptions()))
    source, target = (
        Vocabulary.most_frequent(counts, 15_000)
        for counts in (collection.source_counts(), collection.target_counts())
    )
    network = EncoderDecoder(PRESETS[preset], len(source), len(target))
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.1)
    return PhraseModel(network, source, target, WordOptions(), {})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--lines", type=int, default=5000)
    parser.add_argument("--preset", choices=PRESETS, default="small")
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    model = (
        load_model(arguments.model)
        if arguments.model
        else random_model(arguments.table, arguments.preset)
    )
    with LineReader(arguments.table) as reader:
        lines = islice(read_pairs(reader, WordOptions()), arguments.lines)
        pairs = [(pair.source, pair.target) for pair in lines]
    scorer = scorer_of(model, torch.device("cpu"))
    with torch.inference_mode():
        scorer.score(pairs[:500]), twin_scores(model, pairs[:500])  # warm up
        start = time.perf_counter()
        ours = scorer.score(pairs).log_probs
        middle = time.perf_counter()
        twin = twin_scores(model, pairs)
        end = time.perf_counter()
    print(f"{len(pairs)} pairs, {torch.get_num_threads()} threads")
    print(f"scorer      {len(pairs) / (middle - start):8,.0f} pairs/s")
    print(f"naive twin  {len(pairs) / (end - middle):8,.0f} pairs/s")
    print(f"ratio       {(end - middle) / (middle - start):8.2f}")
    print(f"largest difference {np.abs(ours - twin).max():.1e} nats")


if __name__ == "__main__":
    main()
