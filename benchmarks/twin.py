"""The naive twin: what one would write with PyTorch in an afternoon. The same cells, no tricks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from moses_feature.networks.vocabulary import END
from moses_feature.phrases.encoder_decoder import EncoderDecoder

BATCH = 256


def processor(device: torch.device) -> str:
    """Return what computes, in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.get_num_threads()} threads"


def padded(phrases: list[list[int]]) -> Tensor:
    """Return phrases (B, longest + 1) with END after each and -1 behind it."""
    ended = [torch.tensor([*phrase, END]) for phrase in phrases]
    return pad_sequence(ended, batch_first=True, padding_value=-1)


def twin_log_probs(network: EncoderDecoder, x: Tensor, y: Tensor) -> Tensor:
    """Return log p(y | x), (B,), of padded phrases."""
    state = torch.zeros(len(x), network.sizes.hidden, device=x.device)
    for t in range(x.shape[1]):
        word = network.source_embedding(x[:, t].clamp(min=0))
        new = encoder_cell(network, word, state)
        state = torch.where((x[:, t] >= 0)[:, None], new, state)
    c = torch.tanh(network.summary(state))
    state = torch.tanh(network.decoder_start(c))
    total = torch.zeros(len(x), device=x.device)
    previous = torch.full((len(x),), END, device=x.device)
    for t in range(y.shape[1]):
        word = network.target_embedding(previous)
        state = decoder_cell(network, word, state, c)
        s = network.maxout_state(state) + network.maxout_input(word) + network.maxout_summary(c)
        s = s.unflatten(1, (-1, 2)).amax(2)
        logits = network.output_words(network.output_rank(s))
        log_probs = functional.log_softmax(logits, 1)
        previous = y[:, t].clamp(min=0)
        here = log_probs.gather(1, previous[:, None])[:, 0]
        total = total + torch.where(y[:, t] >= 0, here, 0.0)
    return total


def encoder_cell(network: EncoderDecoder, word: Tensor, state: Tensor) -> Tensor:
    """Read a word."""
    i_z, i_r, i = network.encoder_input(word).chunk(3, 1)
    z, r = network.encoder_gates(state).chunk(2, 1)
    z, r = torch.sigmoid(i_z + z), torch.sigmoid(i_r + r)
    return z * state + (1 - z) * torch.tanh(i + network.encoder_candidate(r * state))


def decoder_cell(network: EncoderDecoder, word: Tensor, state: Tensor, c: Tensor) -> Tensor:
    """Write a word."""
    i_z, i_r, i = network.decoder_input(word).chunk(3, 1)
    z, r, u = (network.decoder_state(state) + network.decoder_summary(c)).chunk(3, 1)
    z, r = torch.sigmoid(i_z + z), torch.sigmoid(i_r + r)
    return z * state + (1 - z) * torch.tanh(i + r * u)
