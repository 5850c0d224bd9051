"""Training: updates, evaluation, checkpoints; a toy task that must be learnt."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.models import SEARCH_SIZES
from helpers.training import TINY, write_pairs
from safetensors import safe_open

from moses_feature.cli.models.training_run import train_and_show
from moses_feature.phrases.model import load_model
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.settings import Sizes, TrainingData, TrainingSettings
from moses_feature.phrases.training import train
from moses_feature.runtime import environment
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.training.objective import Terms, choose_device, frequency_loss
from moses_feature.training.trainer import RunControl

CPU = torch.device("cpu")


@pytest.fixture
def data(tmp_path):
    return TrainingData([str(write_pairs(tmp_path / "pairs.tsv", 400))])


def weights(directory: Path) -> bytes:
    return (directory / "model.safetensors").read_bytes()


@pytest.mark.parametrize(("optimizer", "cooldown"), [("adam", 0), ("adam", 0.6), ("adadelta", 0)])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(data, tmp_path, optimizer, cooldown):
    """To the bit: weights, optimiser, sampler and history."""
    options = {"sizes": TINY, "optimizer": optimizer, "batch_size": 17, "evaluate_every": 10}
    options["cooldown"] = cooldown
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(data, TrainingSettings(**options, updates=47), whole, CPU)
    updates_done = 0

    def stop_in_between() -> bool:
        nonlocal updates_done
        updates_done += 1
        return updates_done == 24

    long_run = TrainingSettings(**options, updates=47)
    assert train(data, long_run, parts, CPU, RunControl(stop=stop_in_between)) == "interrupted"
    assert train(data, long_run, parts, CPU, RunControl(resume=True)) == "47 updates done"
    assert weights(parts) == weights(whole)
    losses = [load_model(d).training["history"] for d in (whole, parts)]
    assert [entry["held_out_loss"] for entry in losses[0]] == [
        entry["held_out_loss"] for entry in losses[1]
    ]


def test_the_seed_decides(data, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        settings = TrainingSettings(sizes=TINY, seed=seed, updates=5)
        train(data, settings, tmp_path / name, CPU)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


@pytest.mark.parametrize(
    ("budget", "dtype", "capability", "flags", "told"),
    [
        ({"updates": 1}, "bfloat16", "AVX2", "avx2", "has no bfloat16"),
        ({"minutes": 9}, "bfloat16", "AVX512", "avx2 avx512_bf16", ""),
        ({"minutes": 9}, "float32", "AVX2", "avx2", ""),
        ({"minutes": 9}, "float32", "AVX512", "fpu avx512_bf16", "bfloat16 would be twice as fast"),
        ({"updates": 1}, "float32", "AVX512", "fpu avx512_bf16", ""),
    ],
)
def test_advice_on_bfloat16(tmp_path, monkeypatch, caplog, budget, dtype, capability, flags, told):
    caplog.set_level("INFO")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(environment, "_CPUINFO", tmp_path / "cpuinfo")
    settings = TrainingSettings(dtype=dtype, **budget)
    train_and_show(lambda *_: "", None, settings, tmp_path, CPU, False, "pairs")
    assert told in caplog.text if told else "bfloat16" not in caplog.text


def test_bfloat16_is_close_to_float32(data, tmp_path):
    losses = []
    for dtype in ("float32", "bfloat16"):
        settings = TrainingSettings(sizes=TINY, dtype=dtype, updates=60, learning_rate=0.01)
        train(data, settings, tmp_path / dtype, CPU)
        losses.append(load_model(tmp_path / dtype).training["held_out_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_budgets_and_patience(data, tmp_path):
    for name, settings, reason in (
        ("e", TrainingSettings(sizes=TINY, epochs=0.5), "0.5 epochs done"),
        ("m", TrainingSettings(sizes=TINY, minutes=0.001), "0.001 minutes spent"),
        (
            "p",
            TrainingSettings(sizes=TINY, learning_rate=1e-12, evaluate_every=1, patience=3),
            "no better held-out loss in 3 evaluations",
        ),
    ):
        assert train(data, settings, tmp_path / name, CPU) == reason
        load_model(tmp_path / name)


def test_without_patience_the_budget_is_spent(data, tmp_path):
    settings = TrainingSettings(
        sizes=TINY, learning_rate=1e-12, evaluate_every=1, patience=0, updates=7
    )
    assert train(data, settings, tmp_path / "m", CPU) == "7 updates done"
    with pytest.raises(UsageError, match="a patience of 0 never ends"):
        TrainingSettings(sizes=TINY, patience=0)


@pytest.fixture
def rates(monkeypatch) -> list[float]:
    """The learning rate of each update that Adam makes."""
    found: list[float] = []
    step = torch.optim.Adam.step

    def observed(self):
        found.append(self.param_groups[0]["lr"])
        return step(self)

    monkeypatch.setattr(torch.optim.Adam, "step", observed)
    return found


def test_annealing_lowers_the_learning_rate(data, tmp_path, rates):
    """After each evaluation without gain, and for good."""
    options = {"sizes": TINY, "learning_rate": 50.0, "evaluate_every": 1, "annealing": 0.1}
    settings = TrainingSettings(**options, updates=9, patience=9)
    train(data, settings, tmp_path / "m", CPU)
    with safe_open(tmp_path / "m" / "checkpoint.safetensors", framework="pt") as file:
        history = json.loads(file.metadata()["state"])["history"]
    losses = [entry["held_out_loss"] for entry in history]
    gains = [loss < min(losses[:n], default=math.inf) for n, loss in enumerate(losses)]
    expected = [50 * 0.1 ** gains[:n].count(False) for n in range(9)]
    assert rates == pytest.approx(expected)
    assert rates[-1] < 50


def test_the_cooldown_is_the_end_of_the_budget(data, tmp_path, rates):
    """Of the one that is nearest to its end; a run that goes on may be given one."""
    options = {"sizes": TINY, "learning_rate": 0.5, "annealing": 1}
    settings = TrainingSettings(**options, updates=10, cooldown=0.4, epochs=100)
    train(data, settings, tmp_path / "m", CPU)
    assert rates == pytest.approx([0.5] * 7 + [0.375, 0.25, 0.125])
    rates.clear()
    settings = TrainingSettings(**options, updates=14, cooldown=2 / 14)
    train(data, settings, tmp_path / "m", CPU, RunControl(resume=True))
    assert rates == pytest.approx([0.5, 0.5, 0.5, 0.25])


def test_an_infinite_loss_stops_with_the_last_good_checkpoint(data, tmp_path, monkeypatch):
    from moses_feature.training import trainer

    settings = TrainingSettings(sizes=TINY, evaluate_every=5, updates=30)
    healthy = trainer.Trainer._terms

    def poisoned(self, network, rows):
        terms = healthy(self, network, rows)
        return Terms(terms.rewards * (math.nan if self.state.update == 12 else 1.0))

    monkeypatch.setattr(trainer.Trainer, "_terms", poisoned)
    with pytest.raises(MosesFeatureError, match="update 13: the loss is nan"):
        train(data, settings, tmp_path / "m", CPU)
    monkeypatch.undo()
    load_model(tmp_path / "m")
    assert train(data, settings, tmp_path / "m", CPU, RunControl(resume=True)) == "30 updates done"


def test_what_cannot_be_trained(data, tmp_path):
    settings = TrainingSettings(sizes=TINY, updates=2)
    directory = tmp_path / "m"
    train(
        data, settings, directory, CPU, RunControl(resume=True)
    )  # with nothing to resume: from the start
    with pytest.raises(UsageError, match="holds a model already"):
        train(data, settings, directory, CPU)
    with pytest.raises(MosesFeatureError, match="expected a run with settings"):
        train(data, TrainingSettings(sizes=TINY, seed=9), directory, CPU, RunControl(resume=True))
    with pytest.raises(UsageError, match="found -"):
        train(TrainingData(["-"]), settings, tmp_path / "n", CPU)
    (tmp_path / "empty").write_text("")
    with pytest.raises(MosesFeatureError, match="expected phrase pairs to train on, found none"):
        train(TrainingData([str(tmp_path / "empty")]), settings, tmp_path / "n", CPU)
    (directory / "checkpoint.safetensors").write_bytes(b"damaged")
    with pytest.raises(MosesFeatureError, match="expected a checkpoint"):
        train(data, settings, directory, CPU, RunControl(resume=True))


def test_one_pair_can_be_trained_on(tmp_path, caplog):
    (tmp_path / "one").write_text("a\tb\n")
    data = TrainingData([str(tmp_path / "one")])
    train(data, TrainingSettings(sizes=TINY, updates=3), tmp_path / "m", CPU)
    assert "the held-out loss is the training loss" in caplog.text


def test_shortlists_from_texts(data, tmp_path):
    (tmp_path / "text").write_text("w1 w1 w2 w2 w2 other\n")
    data = TrainingData(data.tables, source_text=str(tmp_path / "text"), shortlist=2)
    train(data, TrainingSettings(sizes=TINY, updates=1), tmp_path / "m", CPU)
    model = load_model(tmp_path / "m")
    assert model.source.shortlist == (b"w2", b"w1")
    assert len(model.target.shortlist) == 2
    assert model.training["shortlist_coverage"]["source"] == 5 / 6
    assert [entry["lines"] for entry in model.training["inputs"]][1] == 1


def test_unknown_names_list_the_valid_ones():
    with pytest.raises(UsageError, match="'sgd': expected one of adam, adadelta"):
        TrainingSettings(optimizer="sgd")
    with pytest.raises(UsageError, match="float16"):
        TrainingSettings(dtype="float16")
    with pytest.raises(UsageError, match="held-out share"):
        TrainingSettings(held_out=1.0)
    with pytest.raises(UsageError, match="cooldown: expected a share"):
        TrainingSettings(cooldown=1.5, updates=9)
    with pytest.raises(UsageError, match="a cooldown is a share of a budget"):
        TrainingSettings(cooldown=0.3)
    with pytest.raises(UsageError, match="device 'warp' cannot be used"):
        choose_device("warp")


@pytest.mark.slow
def test_copying_and_reversing_are_learnt(tmp_path):
    """The floor is 0: the target is certain, given the source."""
    data = TrainingData([str(write_pairs(tmp_path / "pairs.tsv", 3000, longest=4))])
    settings = TrainingSettings(
        sizes=Sizes(hidden=64, embedding=16, maxout=32, rank=16),
        learning_rate=0.007,
        updates=2250,
        evaluate_every=250,
        held_out=0.05,
    )
    train(data, settings, tmp_path / "m", CPU)
    model = load_model(tmp_path / "m")
    assert model.training["held_out_loss"] < 0.1
    right, wrong = (
        scorer_of(model, CPU)
        .score(
            [
                (b"w1 w2 w3".split(), b"w3 w2 w1".split()),
                (b"w1 w2 w3".split(), b"w1 w2 w3".split()),
            ]
        )
        .log_probs
    )
    assert right > -0.5
    assert wrong < -5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_scores_as_the_cpu_does(data, tmp_path):
    cuda = torch.device("cuda")
    train(data, TrainingSettings(sizes=TINY, updates=20), tmp_path / "m", cuda)
    pairs = [(f"w{n} w1".encode().split(), f"w1 w{n}".encode().split()) for n in range(7)]
    on_gpu = scorer_of(load_model(tmp_path / "m"), cuda).score(pairs).log_probs
    on_cpu = scorer_of(load_model(tmp_path / "m"), CPU).score(pairs).log_probs
    np.testing.assert_allclose(on_gpu, on_cpu, atol=1e-4)


def test_self_normalisation(run, tmp_path):
    """Log Z is near 0, and scores without it are near those with it."""
    write_pairs(tmp_path / "pairs", 400)
    sizes = "--sizes", "hidden=12 embedding=8 maxout=8 rank=6"
    options = *sizes, "--updates", 200, "--learning-rate", 0.01, "--evaluate-every", 100
    found = {}
    for name, factor in (("m", 0.5), ("plain", 0)):
        run("model", "train", "pairs", name, *options, "--self-normalisation", factor)
        stdin = b"w1 w2\tw2 w1\nw3\tw3\n"
        scores = run("model", "score", name, stdin=stdin).stdout
        normalised = run("model", "score", name, "--normalised", stdin=stdin).stdout
        found[name] = [np.array(list(map(float, s.split()))) for s in (scores, normalised)]
    assert np.array_equal(*found["plain"])
    assert 0 < np.abs(found["m"][0] - found["m"][1]).max() < 1
    assert load_model(tmp_path / "m").training["mean_absolute_log_norm"] < 0.5


@pytest.mark.parametrize("sizes", [TINY, SEARCH_SIZES])
def test_a_self_normalised_network_begins_with_frequencies(data, tmp_path, sizes):
    """Log Z is near 0 before anything is learnt, and no word is as likely as another."""
    begun = TrainingSettings(sizes=sizes, learning_rate=1e-9, updates=1, self_normalisation=0.1)
    train(data, begun, tmp_path / "m", CPU)
    model = load_model(tmp_path / "m")
    assert model.training["mean_absolute_log_norm"] < 0.3
    pairs = set(Path(data.tables[0]).read_text().splitlines())
    words = Counter(word for pair in pairs for word in pair.split("\t")[1].split())
    counts = np.array([len(pairs), 0, *(words[w.decode()] for w in model.target.shortlist)])
    weights = model.network.state_dict()
    biases = [bias for name, bias in weights.items() if re.match(r"output_words.*bias", name)]
    for bias in biases:
        np.testing.assert_allclose(bias.exp(), (counts + 1) / (counts + 1).sum(), rtol=1e-4)


def test_dropout_is_of_training_alone_and_resumes(data, tmp_path):
    """Scores have no dropout; an interrupted run draws what the uninterrupted one does."""
    settings = TrainingSettings(sizes=TINY, dropout=0.3, updates=21, evaluate_every=10)
    whole, parts, without = tmp_path / "whole", tmp_path / "parts", tmp_path / "without"
    train(data, settings, whole, CPU)
    asked = iter(range(99))
    train(data, settings, parts, CPU, RunControl(stop=lambda: next(asked) == 13))
    train(data, settings, parts, CPU, RunControl(resume=True))
    train(data, TrainingSettings(sizes=TINY, updates=21, evaluate_every=10), without, CPU)
    assert weights(whole) == weights(parts) != weights(without)
    pairs = [([b"w1"], [b"w2", b"w1"])] * 2
    first, second = scorer_of(load_model(whole), CPU).score(pairs).log_probs
    assert first == second


def test_a_network_that_has_learnt_too_little_says_so(data, tmp_path, caplog):
    """By its epochs, and by the loss of a model that knows word frequencies alone."""
    options = {"sizes": TINY, "batch_size": 20, "evaluate_every": 10, "patience": 100}
    train(data, TrainingSettings(**options, updates=2), tmp_path / "little", CPU)
    pairs = [line.split("\t")[1].split() for line in Path(data.tables[0]).read_text().splitlines()]
    counts = Counter(word for pair in pairs for word in [*pair, "END"])
    total = sum(counts.values())
    expected = -sum(n / total * math.log(n / total) for n in counts.values())
    share = 100 * 2 * 20 / len(pairs)
    [said] = [of.getMessage() for of in caplog.records if "too little" in of.message]
    assert f"it has seen {share:.0f}% of its data once, and its held-out loss of" in said
    of_frequencies = float(re.search(r"near the ([0-9.]+) of word", said)[1])
    assert of_frequencies == pytest.approx(expected, abs=0.15)  # that is of the held-out pairs
    caplog.clear()
    easy = TrainingData([str(write_pairs(tmp_path / "easy.tsv", 100, longest=2))])
    more = TrainingSettings(**options, updates=300, learning_rate=0.02, held_out=0.1)
    train(easy, more, tmp_path / "much", CPU)
    assert "too little" not in caplog.text


def test_the_loss_of_word_frequencies():
    """Three words once, once and six times, one added to each: p = 2/11, 2/11, 7/11."""
    found = frequency_loss(np.array([0, 2]), np.array([1, 1, 6]))
    assert found == pytest.approx(-(math.log(2 / 11) + math.log(7 / 11)) / 2)
