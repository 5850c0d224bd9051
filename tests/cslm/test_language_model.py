"""The feed-forward language model: against float64 numpy, out of torch, in NPLM's format."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.models import random_model

from moses_feature.cslm.ngrams import TrainingText
from moses_feature.cslm.nplm import load_neural_lm, read_nplm, write_nplm
from moses_feature.cslm.scorer import NeuralLM
from moses_feature.cslm.settings import LmData, LmSettings, LmSizes
from moses_feature.cslm.training import FeedForwardLM, save_language_model, train_language_model
from moses_feature.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_feature.phrases.model import save_model
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.training.trainer import RunControl

CPU = torch.device("cpu")
SIZES = LmSizes(order=4, projection=5, first=11, second=7)
WORDS = Vocabulary((b"le", b"chien", b"noir", b"\xe9t\xe9", b"dort"))


def random_network(seed: int = 1, sizes: LmSizes = SIZES) -> FeedForwardLM:
    """Return a network whose weights make scores differ."""
    network = FeedForwardLM(sizes, len(WORDS))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.7, generator=generator)
    return network


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a saved model with random weights."""
    frequencies = np.arange(len(WORDS), dtype=np.float64)
    save_language_model(tmp_path / "lm", random_network(), WORDS, frequencies, {})
    return tmp_path / "lm"


def some_ngrams(count: int = 200, order: int = SIZES.order) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    return (
        random.integers(0, len(WORDS), (count, order - 1)),
        random.integers(0, len(WORDS), count),
    )


def plain_log_probs(network: FeedForwardLM, contexts, words) -> tuple[np.ndarray, np.ndarray]:
    """Return log p and log Z in float64, one n-gram after the other."""
    weights = {name: t.detach().double().numpy() for name, t in network.state_dict().items()}
    log_probs, log_norms = [], []
    for context, word in zip(contexts, words, strict=True):
        x = np.concatenate([weights["projection.weight"][w] for w in context])
        first = np.maximum(0, weights["first.weight"] @ x + weights["first.bias"])
        second = np.maximum(0, weights["second.weight"] @ first + weights["second.bias"])
        logits = weights["output.weight"] @ second + weights["output.bias"]
        log_norms.append(math.log(sum(math.exp(logit) for logit in logits)))
        log_probs.append(logits[word] - log_norms[-1])
    return np.array(log_probs), np.array(log_norms)


def test_the_network_is_the_plain_one():
    network = random_network()
    contexts, words = some_ngrams()
    with torch.no_grad():
        found = network(torch.from_numpy(contexts), torch.from_numpy(words))
    for one, other in zip(found, plain_log_probs(network, contexts, words), strict=True):
        assert np.abs(one.numpy() - other).max() < 1e-5


def test_gradients_are_those_of_finite_differences():
    """Of the loss with the penalty on log Z, in float64."""
    network = random_network().double()
    contexts, words = (torch.from_numpy(array) for array in some_ngrams(9))

    def loss() -> torch.Tensor:
        log_probs, log_norms = network(contexts, words)
        return -log_probs.sum() + 0.3 * log_norms.square().sum()

    loss().backward()
    random = np.random.default_rng(5)
    for parameter in network.parameters():
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        for place in random.integers(0, len(flat), 6).tolist():
            before, step = flat[place].item(), 1e-5
            values = []
            for value in (before + step, before - step):
                flat[place] = value
                with torch.no_grad():
                    values.append(loss().item())
            flat[place] = before
            numeric = (values[0] - values[1]) / (2 * step)
            assert gradient[place].item() == pytest.approx(numeric, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("normalised", [True, False])
def test_out_of_torch_it_is_the_same(directory, normalised):
    """With the first layer computed ahead, log Z and features remembered, and any batch."""

    def load() -> NeuralLM:
        model = load_neural_lm(directory)
        return NeuralLM(model.sizes, model.weights, model.vocabulary, normalised, {})

    model = load()
    contexts, words = some_ngrams(300)
    expected, norms = plain_log_probs(random_network(), contexts, words)
    if not normalised:
        expected += norms
    whole = model.log_probs(contexts, words)
    assert np.abs(whole - expected).max() < 1e-5
    assert np.abs(model.log_norms(contexts) - norms).max() < 1e-5
    np.testing.assert_allclose(model.log_probs(contexts, words), whole, atol=1e-6)
    model.normalised = not normalised  # as `model score --normalised` has it
    changed = model.log_probs(contexts, words)
    assert np.abs(changed - whole - (norms if normalised else -norms)).max() < 2e-5
    single = load()
    ones = [single.log_probs(contexts[n : n + 1], words[n : n + 1])[0] for n in range(300)]
    np.testing.assert_allclose(ones, whole, atol=1e-5)


def test_a_word_that_is_not_known_is_the_mean_of_all(directory):
    model = load_neural_lm(directory)
    projection = model.weights["projection.weight"]
    frequencies = np.arange(len(WORDS))
    mean = frequencies @ projection[:-1] / frequencies.sum()
    assert np.abs(projection[model.null] - mean).max() < 1e-6


def test_sentences(directory):
    """Padding before, END after, UNK for unknown words."""
    model = load_neural_lm(directory)
    sentences = [[b"le", b"chat"], [], [b"chien", b"noir", b"dort", b"dort", b"le"]]
    found = model.sentence_log_probs(sentences)
    le, chien = WORDS.ids([b"le", b"chien"])
    contexts = np.array([[END, END, END], [END, END, le], [END, le, UNKNOWN]])
    expected, _ = plain_log_probs(random_network(), contexts, [le, UNKNOWN, END])
    assert np.abs(found[0] - expected).max() < 1e-5
    assert [len(scores) for scores in found] == [3, 1, 6]
    expected, _ = plain_log_probs(random_network(), np.array([[END, END, END]]), [chien])
    assert found[2][0] == pytest.approx(expected[0], abs=1e-5)


def test_commands(tmp_path, run):
    """Train, describe, score, export, and put into an ini."""
    write_text(tmp_path / "text", 120)
    run(
        "model",
        "train-cslm",
        "text",
        "lm",
        "--updates",
        "5",
        "--sizes",
        "order=3",
        "--threads",
        "1",
        "--self-normalisation",
        "0.1",
    )
    shown = run("describe", "lm").stdout
    assert "self-normalised        yes" in shown
    assert "trained on             text (text, 120 lines)" in shown
    scored = run("model", "score", "lm", "--per-word", stdin=b"w1 w2 other\n\n")
    model = load_neural_lm(tmp_path / "lm")
    expected = model.sentence_log_probs([[b"w1", b"w2", b"other"], []])
    for line, log_probs in zip(scored.stdout.splitlines(), expected, strict=True):
        total, words = line.split("\t")
        assert float(total) == pytest.approx(log_probs.sum(), abs=1e-5)
        assert [float(word) for word in words.split()] == pytest.approx(log_probs, abs=1e-5)
    assert "2 sentences, 3 words, 1 unknown; perplexity" in scored.stderr
    ini = run("model", "export", "lm", "nplm", "--format", "nplm").stdout
    assert ini == f"NeuralLM name=CSLM0 factor=0 order=3 path={tmp_path / 'nplm'}\n"
    (tmp_path / "moses.ini").write_text("[feature]\nWordPenalty\n\n[weight]\nWordPenalty0= -1\n")
    run("system", "add", "moses.ini", "two.ini", "--model", "lm", "--weight", "0.2")
    run("system", "add", "two.ini", "two.ini", "--model", "nplm")
    assert (tmp_path / "two.ini").read_text() == (
        f"[feature]\nWordPenalty\nNeuralLM name=CSLM0 factor=0 order=3 path={tmp_path}/lm\n"
        f"NeuralLM name=CSLM1 factor=0 order=3 path={tmp_path}/nplm\n\n"
        "[weight]\nWordPenalty0= -1\nCSLM0= 0.2\nCSLM1= 0.1\n"
    )
    for arguments in ((), ("--model", "lm", "--table", "t"), ("--model", "lm", "--name", "x")):
        run("system", "add", "moses.ini", "x.ini", *arguments, exit_code=2)
    save_model(tmp_path / "phrases", random_model())
    refused = run("system", "add", "moses.ini", "x.ini", "--model", "phrases", exit_code=1).stderr
    assert "phrases/config.json: expected architecture feed-forward-lm, found rnn-enc" in refused
    assert "not a model directory" in run("model", "score", ".", exit_code=1, stdin=b"").stderr


def test_ngrams_of_a_text():
    lines = [b"le chien\n", b"\n", b"noir le le chat dort\n"]
    ngrams = TrainingText(lines).ngrams(WORDS, 4)
    expected = []
    for line in lines:
        ids = [END] * 3 + WORDS.ids(line.split()) + [END]
        expected += [(ids[n : n + 3], ids[n + 3]) for n in range(len(ids) - 3)]
    rows = np.arange(len(ngrams))
    assert len(ngrams) == len(expected) == 10
    assert ngrams.contexts(rows).tolist() == [context for context, _ in expected]
    assert ngrams.words(rows).tolist() == [word for _, word in expected]


def test_equal_sentences_are_held_out_together():
    lines = [b"s%d a" % (n % 400) for n in range(800)]
    text = TrainingText(lines)
    held_out = text.held_out(0.001, 13, seed=1)
    chosen = {line for line, flag in zip(lines, held_out[::3], strict=True) if flag}
    assert len(chosen) == 13
    assert held_out.sum() == 13 * 2 * 3
    assert (text.held_out(0.001, 13, seed=2) != held_out).any()
    assert TrainingText(lines[:50]).held_out(0.001, 100, seed=1).sum() == 5 * 3


def test_nplm_and_back(directory, tmp_path):
    model = load_neural_lm(directory)
    write_nplm(tmp_path / "nplm", model)
    back = read_nplm(tmp_path / "nplm")
    assert back.vocabulary == model.vocabulary
    assert all(np.array_equal(back.weights[name], model.weights[name]) for name in model.weights)
    contexts, words = some_ngrams()
    difference = back.log_probs(contexts, words) - model.log_probs(contexts, words)
    assert np.abs(difference - model.log_norms(contexts)).max() < 1e-5  # NPLM subtracts no log Z


def test_nplm_with_another_order_of_words(directory, tmp_path):
    """As NPLM's own tools write it, with one list of words."""
    model = load_neural_lm(directory)
    write_nplm(tmp_path / "nplm", model)
    text = (tmp_path / "nplm").read_bytes()
    output = text[text.index(b"\\output_vocab") : text.index(b"\\input_embeddings")]
    text = text.replace(output, b"")
    for section in (b"\\output_weights\n", b"\\output_biases\n"):
        start = text.index(section) + len(section)
        end = text.index(b"\n\n", start)
        rows = text[start:end].split(b"\n")
        text = text[:start] + b"\n".join([*rows, rows[0], rows[0]]) + text[end:]
    text = text.replace(b"output_vocab_size 7", b"output_vocab_size 9")
    text = text.replace(b"\\input_vocab", b"\\vocab")
    (tmp_path / "other").write_bytes(text)
    contexts, words = some_ngrams()
    one, other = (
        read_nplm(tmp_path / name).log_probs(contexts, words) for name in ("nplm", "other")
    )
    assert np.array_equal(one, other)


NPLM_DAMAGES = {
    "rectifier": (b"rectifier", b"tanh", "activation_function rectifier, found 'tanh'"),
    "truncated": (b"\\end\n", b"", r"expected \\end, found the end of the file"),
    "no weights": (b"\\hidden_weights 2", b"\\hidden_weights 3", "a section .hidden_weights 2"),
    "sizes": (b"num_hidden 11", b"num_hidden 12", "12 x 15 finite numbers, found 11 x 15"),
    "numbers": (b"\\output_biases\n", b"\\output_biases\nx\n", "rows of numbers"),
    "words": (b"\\output_vocab\n</s>", b"\\output_vocab\nchat", "the first input words"),
    "begin": (b"<s>", b"<t>", "expected the word <s>"),
}


@pytest.mark.parametrize("damage", NPLM_DAMAGES)
def test_damaged_nplm(directory, tmp_path, damage):
    write_nplm(tmp_path / "nplm", load_neural_lm(directory))
    text = (tmp_path / "nplm").read_bytes()
    old, new, message = NPLM_DAMAGES[damage]
    assert old in text
    (tmp_path / "nplm").write_bytes(text.replace(old, new))
    with pytest.raises(MosesFeatureError, match=message):
        load_neural_lm(tmp_path / "nplm")


def test_what_nplm_cannot_express(tmp_path):
    words = Vocabulary((b"<s>", b"a", b"b", b"c", b"d"))
    save_language_model(tmp_path / "lm", random_network(), words, np.ones(7), {})
    with pytest.raises(MosesFeatureError, match="'<s>' means something else"):
        write_nplm(tmp_path / "nplm", NeuralLM.load(tmp_path / "lm"))


def write_text(path: Path, sentences: int) -> Path:
    """Write sentences in which a word decides the one three places on."""
    random = np.random.default_rng(7)
    lines = []
    for _ in range(sentences):
        words = random.integers(0, 6, 3).tolist()
        while len(words) < 9:
            words.append((words[-3] + 1) % 6)
        lines.append(" ".join(f"w{w}" for w in words) + "\n")
    path.write_text("".join(lines))
    return path


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path):
    data = LmData(str(write_text(tmp_path / "text", 150)))
    settings = LmSettings(sizes=SIZES, batch_size=31, updates=61, evaluate_every=20, dropout=0.1)
    train_language_model(data, settings, tmp_path / "whole", CPU)
    done = 0

    def stop() -> bool:
        nonlocal done
        done += 1
        return done == 34

    assert (
        train_language_model(data, settings, tmp_path / "p", CPU, RunControl(stop=stop))
        == "interrupted"
    )
    train_language_model(data, settings, tmp_path / "p", CPU, RunControl(resume=True))
    whole, parts = (tmp_path / n / "model.safetensors" for n in ("whole", "p"))
    assert whole.read_bytes() == parts.read_bytes()
    with pytest.raises(UsageError, match="holds a model already"):
        train_language_model(data, settings, tmp_path / "p", CPU)
    other = LmSettings(sizes=SIZES, batch_size=31, seed=2)
    with pytest.raises(MosesFeatureError, match="expected a run with settings"):
        train_language_model(data, other, tmp_path / "p", CPU, RunControl(resume=True))


@pytest.mark.slow
def test_a_grammar_is_learnt_and_log_z_kept_near_zero(tmp_path):
    """Three words of each sentence are random, the other seven and the end are certain."""
    data = LmData(str(write_text(tmp_path / "text", 1500)))
    sizes = LmSizes(order=5, projection=8, first=32, second=16)
    found = {}
    for penalty in (0.0, 0.1):
        settings = LmSettings(sizes=sizes, learning_rate=0.01, epochs=8, self_normalisation=penalty)
        train_language_model(data, settings, tmp_path / f"{penalty}", CPU)
        found[penalty] = NeuralLM.load(tmp_path / f"{penalty}").training
    certain = 3 * math.log(6) / 10
    # Nothing tells a sentence's end from its middle; the loss lies a little above the certain one.
    assert certain < found[0.0]["held_out_loss"] < certain + 0.35
    norms = [found[penalty]["mean_absolute_log_norm"] for penalty in (0.0, 0.1)]
    assert norms[1] < norms[0] / 4, norms
    assert not NeuralLM.load(tmp_path / "0.1").normalised


def test_what_cannot_be_trained_on(tmp_path):
    (tmp_path / "empty").write_text("\n\n")
    settings = LmSettings(sizes=SIZES, updates=1)
    with pytest.raises(MosesFeatureError, match="expected words to train on, found none"):
        train_language_model(LmData(str(tmp_path / "empty")), settings, tmp_path / "m", CPU)
    with pytest.raises(UsageError, match="found -"):
        train_language_model(LmData("-"), settings, tmp_path / "m", CPU)
    with pytest.raises(UsageError, match="self-normalisation"):
        LmSettings(self_normalisation=-1.0)
    with pytest.raises(ValueError, match="order: expected 2 to 32"):
        LmSizes(1, 1, 1, 1)
