"""Batched and prefix-sharing scores against one pair at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from helpers.equations import random_pairs
from helpers.models import random_model

from moses_feature.networks.architectures import Dtype
from moses_feature.networks.computation import Computation
from moses_feature.networks.phrases import PackedSequences, prefix_levels
from moses_feature.networks.vocabulary import END
from moses_feature.phrases import scorer as scorer_module
from moses_feature.phrases.model import load_model, save_model
from moses_feature.phrases.packing import pack_ids
from moses_feature.phrases.scorer import ForwardScorer, Scorer, packer_of, scorer_of

CPU = torch.device("cpu")


def score(scorer: Scorer, pairs) -> np.ndarray:
    source, target = (PackedSequences.pack(side) for side in zip(*pairs, strict=True))
    return scorer.score_packed(pack_ids(source, target)).log_probs


@pytest.fixture
def pairs(model):
    """Pairs with repeated sources, shared prefixes and duplicates."""
    some = random_pairs(model, 113, 5)
    return some + [(some[n % 7][0], target) for n, (_, target) in enumerate(some)] + some[:11]


@pytest.mark.parametrize("batch", [1, 2, 7, 64, 1000])
def test_scores_do_not_depend_on_the_batch(scorer, pairs, batch):
    """To the bit: a table scored in parts, or after a crash, has the same bytes."""
    together = score(scorer, pairs)
    parts = [score(scorer, pairs[start : start + batch]) for start in range(0, len(pairs), batch)]
    assert np.array_equal(np.concatenate(parts), together)


def test_scores_do_not_depend_on_the_order(scorer, pairs):
    order = np.random.default_rng(1).permutation(len(pairs))
    assert np.array_equal(score(scorer, [pairs[n] for n in order]), score(scorer, pairs)[order])


def test_scores_do_not_depend_on_the_threads(model, scorer, pairs):
    for threads in (1, 3):
        assert np.array_equal(
            score(scorer_of(model, CPU, threads=threads), pairs), score(scorer, pairs)
        )


def test_threads_are_the_scorers_own(model, pairs):
    torch.set_num_threads(2)
    score(scorer_of(model, CPU, threads=1), pairs)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("dtype", get_args(Dtype))
@pytest.mark.parametrize("normalised", [True, False])
def test_the_path_for_gpus_on_the_cpu(model, pairs, monkeypatch, dtype, normalised):
    """The network's own `forward` in small batches, words and pairs in the same order."""
    monkeypatch.setattr(scorer_module, "PAIRS_TOGETHER", 7)
    packed = pack_ids(*(PackedSequences.pack(side) for side in zip(*pairs, strict=True)))
    scorer = Scorer(model.network, packer_of(model), CPU, normalised=normalised)
    expected = scorer.score_packed(packed).word_log_probs
    forward = ForwardScorer(model.network, CPU, Computation.by(1, dtype, normalised))
    found = forward.word_log_probs(packed.pairs)
    np.testing.assert_allclose(found, expected, atol=2e-5 if dtype == "float32" else 0.1)


def test_bfloat16(model, scorer, pairs):
    short = scorer_of(model, CPU, "bfloat16")
    together, exact = score(short, pairs), score(scorer, pairs)
    assert 0 < np.abs(together - exact).mean() < 0.02
    assert np.abs(together - exact).max() < 0.1
    parts = [score(short, pairs[start : start + 5]) for start in range(0, len(pairs), 5)]
    assert np.array_equal(np.concatenate(parts), together)


def test_large_logits_in_bfloat16(pairs):
    """Logits of 30 and more, as trained networks have them."""
    model = random_model()
    with torch.no_grad():
        model.network.output_words.weight *= 20
    exact, short = (score(scorer_of(model, CPU, dtype), pairs) for dtype in get_args(Dtype))
    assert exact.mean() < -20
    assert np.abs(short - exact).mean() < 0.02 * np.abs(exact).mean()


def test_many_pairs_fill_more_than_one_block():
    model = random_model()
    many = random_pairs(model, 1500, 7)
    network_scores = score(scorer_of(model, CPU), many)
    alone = [score(scorer_of(model, CPU), [many[n]])[0] for n in range(0, 1500, 149)]
    assert np.array_equal(network_scores[::149], alone)


@pytest.mark.parametrize("dtype", get_args(Dtype))
def test_self_normalised_networks_need_no_softmax(model, pairs, tmp_path, dtype):
    """The logits alone; with --normalised, and of other networks, log Z is subtracted."""
    training = {"settings": {"self_normalisation": 0.1}}
    save_model(tmp_path / "m", replace(model, training=training))
    save_model(tmp_path / "plain", model)
    loaded, plain = load_model(tmp_path / "m"), load_model(tmp_path / "plain")
    assert loaded.self_normalised
    assert loaded.digest != plain.digest
    source, target = (PackedSequences.pack(side) for side in zip(*pairs, strict=True))
    rows = np.arange(len(pairs))
    tensors = [torch.from_numpy(a) for side in (source, target) for a in side.padded(rows, END)]
    with torch.no_grad():
        log_probs, log_norms = loaded.network.double()(*tensors)
    logits = (log_probs + log_norms).numpy()
    starts = np.concatenate([[0], np.cumsum(target.lengths(rows) + 1)[:-1]])
    expected = np.add.reduceat(logits, starts)
    loaded.network.float()
    found = score(scorer_of(loaded, CPU, dtype), pairs)
    np.testing.assert_allclose(found, expected, atol=2e-5 if dtype == "float32" else 0.3)
    exact = score(scorer_of(loaded, CPU, dtype, normalised=True), pairs)
    assert np.array_equal(exact, score(scorer_of(plain, CPU, dtype), pairs))
    assert np.abs(found - exact).max() > 0.1


def test_no_pairs(scorer):
    empty = PackedSequences.pack([])
    assert len(scorer.score_packed(pack_ids(empty, empty)).log_probs) == 0


def test_unknown_words_are_counted(scorer):
    scores = scorer.score([([b"a", b"?"], [b"A"]), ([b"a"], [b"?", b"B", b"!"]), ([], [])])
    assert scores.unknown_source.tolist() == [1, 0, 0]
    assert scores.unknown_target.tolist() == [0, 2, 0]


def test_prefix_levels_hold_every_prefix_once(model):
    generator = np.random.default_rng(7)
    phrases = [target for _, target in random_pairs(model, 89, 4)]
    roots = generator.integers(0, 5, len(phrases))
    roots[:5] = range(5)
    expected: dict[int, set] = {}
    for root, phrase in zip(roots.tolist(), phrases, strict=True):
        ended = [*phrase, END]
        for position in range(len(ended)):
            expected.setdefault(position, set()).add((root, tuple(ended[: position + 1])))
    nodes: list = [(root, ()) for root in range(5)]
    for position, level in enumerate(prefix_levels(PackedSequences.pack(phrases), roots)):
        edges = [
            (nodes[parent][0], (*nodes[parent][1], word))
            for parent, word in zip(level.parent.tolist(), level.word.tolist(), strict=True)
        ]
        assert len(edges) == len(set(edges))
        assert set(edges) == expected.pop(position)
        for row, edge in zip(level.rows.tolist(), level.edge_of_row.tolist(), strict=True):
            assert edges[edge] == (roots[row], tuple([*phrases[row], END][: position + 1]))
        nodes = [edge for edge, grows in zip(edges, level.grows.tolist(), strict=True) if grows]
    assert not expected
