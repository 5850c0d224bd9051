"""The compiled functions against their twins in PyTorch, and these against float64 numpy."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from helpers import elementwise as in_torch
from torch import Tensor

from moses_feature.networks import computation as compiled
from moses_feature.networks import kernels
from moses_feature.networks.output_layer import BEST, NO_LOGIT, OutputLayer, OutputWeights

ROWS, HIDDEN, WORDS, SOURCES = 11, 37, 19, 5


def normal(*shape: int, scale: float = 2.0) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR) * scale


GENERATOR = torch.Generator().manual_seed(5)
WORD = torch.randint(WORDS, (ROWS,), generator=GENERATOR)
SOURCE = torch.randint(SOURCES, (ROWS,), generator=GENERATOR)
INPUTS, SUMMARIES = normal(WORDS, 3 * HIDDEN), normal(SOURCES, 3 * HIDDEN)
PIECES, SUMMARY_PIECES = normal(WORDS, 2 * HIDDEN), normal(SOURCES, 2 * HIDDEN)


def after(function: str, do: ModuleType, *arguments: Tensor) -> list[np.ndarray]:
    """Call a function on copies; return what it left there."""
    copies = [argument.clone() for argument in arguments]
    getattr(do, function)(*copies)
    return [copy.numpy() for copy in copies]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


CASES = {
    "encoder_gates": (
        normal(ROWS, 2 * HIDDEN),
        INPUTS,
        WORD,
        normal(ROWS, HIDDEN),
        normal(ROWS, HIDDEN),
    ),
    "encoder_state": (
        torch.rand(ROWS, 2 * HIDDEN, generator=GENERATOR),
        normal(ROWS, HIDDEN),
        INPUTS,
        WORD,
        normal(ROWS, HIDDEN),
    ),
    "decoder_state": (
        normal(ROWS, 3 * HIDDEN),
        INPUTS,
        WORD,
        SUMMARIES,
        SOURCE,
        normal(ROWS, HIDDEN),
    ),
    "maxout": (
        normal(ROWS, 2 * HIDDEN),
        PIECES,
        WORD,
        SUMMARY_PIECES,
        SOURCE,
        normal(ROWS, HIDDEN),
    ),
    "tanh_in_place": (normal(ROWS, HIDDEN),),
    "logits_at": (
        normal(ROWS, HIDDEN),
        normal(WORDS, HIDDEN),
        normal(WORDS),
        torch.tensor([0, 0, 3, 10]),
        torch.tensor([18, 2, 2, 0]),
        normal(4),
    ),
}
RESULTS = {"encoder_gates": (4,), "logits_at": (5,), "maxout": (5,)}  # else the last argument


@pytest.mark.parametrize("function", CASES)
def test_compiled_functions(function):
    results = RESULTS.get(function, (-1,))
    plain, found = (after(function, do, *CASES[function]) for do in (in_torch, compiled))
    for index in results:
        np.testing.assert_allclose(found[index], plain[index], atol=2e-6, rtol=1e-5)
    if function == "encoder_gates":  # z is left in the first half
        half = np.s_[:, :HIDDEN]
        np.testing.assert_allclose(found[0][half], plain[0][half], atol=1e-6)


@pytest.mark.parametrize("do", [in_torch, compiled])
def test_states_follow_the_equations(do):
    gates, inputs, word, state, _ = (t.double().numpy() for t in CASES["encoder_gates"])
    word = WORD.numpy()
    found = after("encoder_gates", do, *CASES["encoder_gates"])
    z, r = np.split(sigmoid(gates + inputs[word, : 2 * HIDDEN]), 2, 1)
    np.testing.assert_allclose(found[0][:, :HIDDEN], z, atol=1e-6)
    np.testing.assert_allclose(found[4], r * state, atol=1e-5)

    gates, candidate, _, _, state = (t.double().numpy() for t in CASES["encoder_state"])
    new = np.tanh(candidate + inputs[word, 2 * HIDDEN :])
    z = gates[:, :HIDDEN]
    found = after("encoder_state", do, *CASES["encoder_state"])
    np.testing.assert_allclose(found[-1], z * state + (1 - z) * new, atol=1e-5)

    recurrent, _, _, summaries, _, state = (t.double().numpy() for t in CASES["decoder_state"])
    z, r, u = np.split(recurrent + summaries[SOURCE.numpy()], 3, 1)
    i_z, i_r, i = np.split(inputs[word], 3, 1)
    z, new = sigmoid(z + i_z), np.tanh(i + sigmoid(r + i_r) * u)
    found = after("decoder_state", do, *CASES["decoder_state"])
    np.testing.assert_allclose(found[-1], z * state + (1 - z) * new, atol=1e-5)

    s = (CASES["maxout"][0] + PIECES[WORD] + SUMMARY_PIECES[SOURCE]).double().numpy()
    found = after("maxout", do, *CASES["maxout"])
    np.testing.assert_allclose(found[-1], np.maximum(s[:, 0::2], s[:, 1::2]), atol=1e-5)


def test_exponential():
    x = np.linspace(-87, 88, 100_003, dtype=np.float32)
    found = np.array([kernels.exp.py_func(v) for v in x[::1000]])
    assert np.allclose([kernels.exp(v) for v in x[::1000]], found, rtol=1e-6)
    found = np.array([kernels.exp(v) for v in x])
    relative = np.abs(found / np.exp(x.astype(np.float64)) - 1)
    assert relative[np.abs(x) < 1].max() < 3e-7
    assert relative.max() < 1e-5  # x itself has no more digits than this
    assert kernels.exp(np.float32(-1e30)) < 2e-38
    assert np.isfinite(kernels.exp(np.float32(1e30)))


@pytest.mark.parametrize("do", [in_torch, compiled])
def test_sums_of_exponentials_in_parts(do):
    logits, bias = normal(ROWS, 203, scale=9), normal(203)
    top, total = torch.full((ROWS,), NO_LOGIT), torch.zeros(ROWS)
    for part in (slice(0, 100), slice(100, 101), slice(101, 203)):
        do.add_exps(logits[:, part].contiguous(), bias[part].contiguous(), top, total)
    expected = torch.logsumexp((logits + bias).double(), 1)
    np.testing.assert_allclose((total.log() + top).numpy(), expected.numpy(), atol=1e-5)
    assert torch.equal(top, (logits + bias).amax(1))


@pytest.mark.parametrize("do", [in_torch, compiled])
def test_the_largest_logits_are_kept(do):
    logits, bias = normal(ROWS, 203, scale=9).bfloat16(), normal(203)
    top, total = torch.full((ROWS,), NO_LOGIT), torch.zeros(ROWS)
    best = torch.full((ROWS, BEST), NO_LOGIT)
    best_word = torch.zeros((ROWS, BEST), dtype=torch.int64)
    for part in (slice(0, 1), slice(1, 140), slice(140, 203)):
        do.add_exps_of_most(
            logits[:, part].contiguous(),
            bias[part].contiguous(),
            part.start,
            top,
            total,
            best,
            best_word,
        )
    whole = logits.float() + bias
    expected = whole.topk(BEST, 1)
    assert torch.equal(best, expected.values)
    assert torch.equal(best_word, expected.indices)
    np.testing.assert_allclose(
        (total.log() + top).numpy(), whole.double().logsumexp(1).numpy(), atol=1e-5
    )


@pytest.mark.parametrize("kept", [1, 7, 202])
def test_the_likeliest_words(kept):
    log_probs = normal(ROWS, 203).double().numpy()
    log_probs[:, 0] = 100  # before the first word that counts
    best, words = np.empty((ROWS, kept)), np.empty((ROWS, kept), dtype=np.int64)
    kernels.best_words(log_probs, 1, best, words)
    order = np.argsort(-log_probs[:, 1:], axis=1)[:, :kept]
    np.testing.assert_array_equal(words, order + 1)
    np.testing.assert_array_equal(best, np.take_along_axis(log_probs, words, 1))


@pytest.mark.parametrize("words", [3, 203])
def test_output_layer(words):
    """Logits of up to 50: bfloat16 alone would be wrong by some tenths."""
    features, weights, bias = normal(ROWS, 31), normal(words, 31, scale=1.5), normal(words)
    row = torch.tensor([0, 0, 3, ROWS - 1, ROWS - 1])
    word = torch.tensor([0, words - 1, 1, 2, 2])
    exact = torch.log_softmax((features.double() @ weights.double().t()) + bias, 1)[row, word]
    errors = {}
    for dtype in (torch.float32, torch.bfloat16):
        layer = OutputLayer(OutputWeights.of(weights, bias, dtype, together=64), ROWS)
        for _ in range(2):  # the buffers are used again
            found = layer(features, row, word)
        errors[dtype] = (found - exact).abs().max().item()
    assert errors[torch.float32] < 1e-4
    assert errors[torch.bfloat16] < 0.02
    short = (features.bfloat16() @ weights.bfloat16().t()).float() + bias
    if words > 3:
        naive = torch.log_softmax(short, 1)[row, word]
        assert errors[torch.bfloat16] < (naive - exact).abs().max().item() / 3


COLD_AND_WARM = """
import hashlib, numpy as np
from moses_feature.networks import kernels
random = np.random.default_rng(1)
logits = random.normal(scale=3, size=(8, 1000)).astype(np.float32)
bias, top, total = (np.full(n, x, np.float32) for n, x in ((1000, 0.5), (8, -1e30), (8, 0)))
short = (logits.view(np.int32) >> 16).astype(np.int16)
kernels.add_exps(logits, bias, top, total)
best, words = np.full((8, 4), -1e30, np.float32), np.zeros((8, 4), np.int64)
kernels.add_exps_of_most(short, bias, 0, top, total, best, words)
print(hashlib.sha256(top.tobytes() + total.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_code_from_the_cache_gives_the_same_bits_as_fresh_code(tmp_path):
    command = [sys.executable, "-c", COLD_AND_WARM]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    cold, warm = (
        subprocess.run(command, env=environment, capture_output=True, check=True).stdout
        for _ in range(2)
    )
    assert cold == warm


def test_short_logits_of_any_size():
    """A sum of exponentials whose largest one grows by the exact computation."""
    words = normal(50, HIDDEN, scale=300.0)
    weights = OutputWeights.of(words, normal(50), torch.bfloat16, together=16)
    features = normal(ROWS, HIDDEN)
    row = torch.arange(ROWS).repeat_interleave(50)
    word = torch.arange(50).repeat(ROWS)
    log_probs = OutputLayer(weights, ROWS)(features, row, word).view(ROWS, 50)
    logits = features.double() @ words.double().t() + weights.bias
    expected = torch.log_softmax(logits, 1)
    assert torch.isfinite(log_probs).all()
    assert (log_probs - expected).abs().max() < logits.abs().max() / 128
