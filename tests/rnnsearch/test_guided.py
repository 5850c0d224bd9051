"""Guided alignment: what is learnt from links, against plain sums, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from moses_feature.moses.alignments import PLACES, links_of
from moses_feature.networks.direction import Direction
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import load_model
from moses_feature.rnnsearch.settings import RnnSearchSizes
from moses_feature.sentences.settings import SentenceData, SentenceSettings
from moses_feature.sentences.texts import spread
from moses_feature.sentences.training import GUIDANCE, SentenceObjective, _read

SIZES = ("--sizes", "hidden=24 embedding=12 alignment=16 maxout=16")
QUICK = ("--batch-size", 20, "--learning-rate", 0.01)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def texts(tmp_path: Path) -> Path:
    """Write sentences of different words that translate one by one; all are linked to the last."""
    generator = np.random.default_rng(1)
    lines = []
    for _ in range(300):
        source = [f"w{n}" for n in generator.permutation(9)[: generator.integers(2, 6)]]
        target = [word.upper() for word in source]
        lines.append((source, target, [f"{len(source) - 1}-{n}" for n in range(len(target))]))
    for name, column in zip(("source", "target", "links"), zip(*lines, strict=True), strict=True):
        (tmp_path / name).write_text("".join(" ".join(words) + "\n" for words in column))
    return tmp_path


def test_links_are_those_of_a_plain_reader():
    generator = np.random.default_rng(3)
    for _ in range(20):
        places = generator.integers(0, 7, (generator.integers(0, 12), 2)).tolist()
        text = " ".join(f"{source}-{target}" for source, target in places).encode()
        numbers = {(target << PLACES) + source for source, target in places}
        assert links_of(text, 7, 7).tolist() == sorted(numbers)


def test_links_of_pieces():
    """All pieces of linked words are linked."""
    generator = np.random.default_rng(6)
    for _ in range(20):
        of_read, of_written = generator.integers(1, 4, 5), generator.integers(1, 4, 6)
        count = generator.integers(1, 9)
        read, written = generator.integers(0, 5, count), generator.integers(0, 6, count)
        expected = [
            (of_read[:r].sum() + a, of_written[:w].sum() + b)
            for r, w in zip(read, written, strict=True)
            for b in range(of_written[w])
            for a in range(of_read[r])
        ]
        found = spread(read, written, of_read, of_written)
        assert list(zip(*found, strict=True)) == expected


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("right_to_left", [False, True])
def test_the_loss_of_alignments(texts, reverse, right_to_left):
    """It is the plain sum over the links of a pair, of its first alignment, in every direction."""
    direction = Direction(reverse=reverse, right_to_left=right_to_left)
    (texts / "source").write_text("a b c\na b c\nd\na\n")
    (texts / "target").write_text("A B\nA B\nD D\nA B B\n")
    (texts / "links").write_text("0-0 2-1 1-0\t2-0\n0-1\t\n\t\n0-2 0-0 0-2\t0-0\n")
    kept = [((0, 0), (2, 1), (1, 0)), (), ((0, 2), (0, 0))]  # a pair comes once
    settings = SentenceSettings(sizes=RnnSearchSizes(6, 5, 4, 3), held_out=0.1)
    source, target, links = (str(texts / name) for name in ("source", "target", "links"))
    data = SentenceData(source, target, min_count=1, direction=direction, word_alignment=links)
    material = linked = _read(data, settings)[0]
    objective = SentenceObjective(*linked, settings, CPU)
    network = objective.network
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    pairs = linked[0].pairs
    rows = np.array([2, 0, 1])
    penalty = objective.terms(network, rows).penalty.item()

    expected = 0.0
    for row in rows:
        read, lengths = map(torch.from_numpy, pairs.source.padded(np.array([row]), END))
        written, words = map(torch.from_numpy, pairs.target.padded(np.array([row]), END))
        previous = torch.nn.functional.pad(written[:, :-1], (1, 0), value=END)
        annotations = network.annotations(read, lengths)
        alignment = network.decode(annotations, lengths, previous.t())[1][:, 0].detach().numpy()
        linked = np.zeros_like(alignment)
        linked[int(words), int(lengths)] = 1
        for of_source, of_target in kept[row]:
            of_read, of_written = (of_target, of_source) if reverse else (of_source, of_target)
            if right_to_left:
                of_written = int(words) - 1 - of_written
            linked[of_written, of_read] = 1
        linked /= np.maximum(linked.sum(1, keepdims=True), 1)
        expected -= GUIDANCE * (linked * np.log(alignment)).sum()
    assert penalty == pytest.approx(expected, rel=1e-5)
    smoothed = SentenceObjective(*material, replace(settings, label_smoothing=0.2), CPU)
    terms = smoothed.terms(network, rows)
    means = network(*smoothed.given(network, rows), smooth=True)[2]
    expected += 0.2 * (terms.rewards - means).sum().item()  # both are in the loss
    assert terms.penalty.item() == pytest.approx(expected, rel=1e-5)
    assert objective.shown({"held_out_loss": 2.0, "held_out_penalty": 3 * GUIDANCE}) == (
        "2.0000, alignments 3.0000"
    )


@pytest.mark.slow
def test_it_aligns_as_it_is_told(run, texts):
    """Even to words that do not help; by itself it would not."""
    shares = []
    for name, more in (("told", ("--alignment", "links")), ("alone", ())):
        options = (*SIZES, *QUICK, "--patience", 100, *more)
        run("model", "train-sentences", "source", "target", name, *options, "--updates", 200)
        text = (texts / "source").read_bytes()
        run("model", "translate", name, "--alignment-out", f"{name}.json", "--beam", 1, stdin=text)
        found = [json.loads(line) for line in Path(f"{name}.json").read_text().splitlines()]
        last = [
            np.argmax(weights) == len(line["source"]) - 1
            for line in found
            for weights in line["alignment"][:-1]
        ]
        shares.append(np.mean(last))
    assert shares[0] > 0.9
    assert shares[1] < 0.6


def test_the_log_shows_what_is_learnt_of_alignments(run, texts):
    (texts / "links").write_text("\n" + "".join("0-0\n" for _ in range(299)))
    options = (*SIZES, *QUICK, "--alignment", "links", "--cooldown", 0.5)
    log = run("model", "train-sentences", "source", "target", "m", *options, "--updates", 20).stderr
    assert "(1 have no links)" in log
    training = load_model(texts / "m").training
    assert training["unlinked"] == 1
    for entry in training["history"]:
        loss, alignments = entry["held_out_loss"], entry["held_out_penalty"] / GUIDANCE
        assert f"held-out {loss:.4f}, alignments {alignments:.4f}" in log
        assert f"learning rate {entry['learning_rate']:.2g}" in log
    assert training["history"][-1]["learning_rate"] == pytest.approx(0.01 * 0.1)


def test_a_run_goes_on_with_the_same_links(run, texts):
    options = ("source", "target", *SIZES, *QUICK, "--dropout", 0.2, "--learning-rate", 0.002)
    told = ("--alignment", "links")
    run("model", "train-sentences", *options, "whole", *told, "--updates", 12)
    run("model", "train-sentences", *options, "parts", *told, "--updates", 6)
    again = ("model", "train-sentences", *options, "parts", "--updates", 12, "--resume")
    assert (
        "no word alignment, found word alignment as it was then" in run(*again, exit_code=1).stderr
    )
    run(*again, *told)
    weights = [(texts / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]
    shorter = run(*again, *told, "--max-length", 4, exit_code=1).stderr
    assert "expected a run with pairs" in shorter
    roles = [entry["role"] for entry in load_model(texts / "whole").training["inputs"]]
    assert roles == ["source", "target", "word alignment"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0-0\n1-0\n", "links at line 2: expected links between 1 source and 2 target words"),
        ("0-0\n0-0 x\n", "links at line 2: expected word alignments, such as 0-0 1-1, found"),
        ("0-0\n", "source at line 2: expected as many lines in both texts and the word alignment"),
        ("0-0\n0-0\n\n", "links at line 3: expected as many lines"),
        ("\n\n", "links: expected links such as 0-0 1-2, found none in 2 sentence pairs"),
    ],
)
def test_bad_links(run, texts, content, message):
    (texts / "source").write_text("a\na\n")
    (texts / "target").write_text("A B\nA C\n")
    (texts / "links").write_text(content)
    options = ("source", "target", "m", "--alignment", "links")
    assert message in run("model", "train-sentences", *options, exit_code=1).stderr
    assert not (texts / "m" / "model.safetensors").exists()


@pytest.mark.parametrize(
    "network", [SIZES, ("--architecture", "transformer", "--sizes", "units=24")]
)
def test_a_large_batch_is_learnt_in_parts(run, monkeypatch, tmp_path, network):
    """The gradient is the same, but for rounding, with links and smoothed labels, too."""
    options = (*network, *QUICK, "--alignment", "links", "--label-smoothing", 0.1, "--subwords", 0)
    options = (*options, "--updates", 3, "--dropout", 0, "--warmup", 0)
    texts = ("model", "train-sentences", "source", "target")
    run(*texts, "whole", *options)
    monkeypatch.setattr("moses_feature.sentences.training.MOST_PADDED", 70)
    run(*texts, "parts", *options)
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    differences = [np.abs(parts[name] - whole[name]).max() for name in whole]
    assert 0 < max(differences) < 5e-3
    assert np.median(differences) < 1e-6
