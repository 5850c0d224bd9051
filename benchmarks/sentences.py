"""Training speed of a Transformer against the same network in plain PyTorch, with the same batches.

    python benchmarks/sentences.py [--pairs 128] [--updates 40] [--rounds 3]

Both sides take turns in one run, one thread each, with random words; the ratio is what counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from moses_feature.transformer.network import Transformer
from moses_feature.transformer.settings import TRANSFORMER_PRESETS, waves

SUBWORDS, LENGTH, DROPOUT, SMOOTHING = 8000, 16, 0.3, 0.1
SIZES = TRANSFORMER_PRESETS["small"]


class Plain(nn.Module):
    """The network with PyTorch's own attention, dropout and cross-entropy."""

    def __init__(self) -> None:
        super().__init__()
        units = SIZES.units
        given = {"dropout": DROPOUT, "batch_first": True, "norm_first": True}
        layers = units, SIZES.heads, SIZES.inner
        self.source = nn.Embedding(SUBWORDS, units)
        self.output = nn.Linear(units, SUBWORDS)
        self.dropout = nn.Dropout(DROPOUT)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*layers, **given),
            SIZES.encoder_layers,
            nn.LayerNorm(units),
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*layers, **given), SIZES.decoder_layers, nn.LayerNorm(units)
        )
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0

    def loss(self, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Return the summed cross-entropy of the target words, with smoothed labels."""
        padding = torch.arange(source.shape[1]) > lengths[:, None]
        places = torch.from_numpy(waves(source.shape[1], SIZES.units))
        scale = SIZES.units**0.5
        read = self.encoder(
            self.dropout(self.source(source) * scale + places), src_key_padding_mask=padding
        )
        previous = functional.embedding(functional.pad(target[:, :-1], (1, 0)), self.output.weight)
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        written = self.decoder(
            self.dropout(previous * scale + places),
            read,
            tgt_mask=mask,
            tgt_is_causal=True,
            memory_key_padding_mask=padding,
        )
        logits = self.output(written[~padding]).float()
        return functional.cross_entropy(
            logits, target[~padding], label_smoothing=SMOOTHING, reduction="sum"
        )


def our_loss(network: Transformer, source: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    """Return the same of the network that is trained here."""
    log_probs, _, means = network(source, lengths, target, lengths, smooth=True)
    return -((1 - SMOOTHING) * log_probs + SMOOTHING * means).sum()


def seconds(
    network: nn.Module, loss: Callable[..., Tensor], batches: list[tuple[Tensor, ...]], short: bool
) -> float:
    """Return the time of an update of the processor, after two that are not counted."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    began = 0.0
    for number, batch in enumerate(batches):
        if number == 2:
            began = time.process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled=short):
            value = loss(*batch)
        optimizer.zero_grad()
        torch.autograd.backward(value / len(batch[0]))
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return (time.process_time() - began) / (len(batches) - 2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=128)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    draw = np.random.default_rng(1)
    batches = [
        tuple(
            torch.from_numpy(drawn)
            for drawn in (
                draw.integers(3, SUBWORDS, (given.pairs, LENGTH + 1)),
                draw.integers(3, SUBWORDS, (given.pairs, LENGTH + 1)),
                draw.integers(LENGTH - 2, LENGTH + 1, given.pairs),
            )
        )
        for _ in range(given.updates + 2)
    ]
    network, plain = Transformer(SIZES, SUBWORDS, SUBWORDS, DROPOUT).train(), Plain().train()
    network.initialise(torch.Generator().manual_seed(1))
    print(f"{given.pairs} pairs of {LENGTH} words, ms an update of one thread")
    print("| | plain PyTorch | here | ratio |\n|---|---|---|---|")
    for dtype in ("float32", "bfloat16"):
        short = dtype == "bfloat16"
        for _ in range(given.rounds):
            before = seconds(plain, plain.loss, batches, short)
            here = seconds(network, lambda *of: our_loss(network, *of), batches, short)
            print(f"| {dtype} | {before * 1e3:.1f} | {here * 1e3:.1f} | {before / here:.2f} |")


if __name__ == "__main__":
    main()
