"""Expected BLEU against plain float64, its gradient against differences, lists that do not fit."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.equations import reference_log_probs
from helpers.models import random_model
from sacrebleu.metrics.bleu import BLEU

from moses_feature.moses.features import FeatureFunction, FeatureSet
from moses_feature.phrases.model import load_model, save_model
from moses_feature.phrases.refinement.lists import ListReader, NetworkColumn, RefineData
from moses_feature.phrases.refinement.refine import SHARES, ExpectedBleu, refine
from moses_feature.phrases.settings import RefineSettings
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import DataError, UsageError
from moses_feature.training.trainer import RunControl

CPU = torch.device("cpu")
SOURCES = [b"the dog a", b"b c", b"d", b"a b c d", b"c a"]
REFERENCES = [b"le chien un", b"B C", b"D", b"A B C D", b"C A"]
LISTS = [
    [(b"0-1=0-1 2=2", b"le chien un"), (b"0=0 1-2=1-2", b"le chien A"), (b"2=0 0-1=1", b"un B")],
    [(b"0-1=0-1", b"B C"), (b"1=0 0=1", b"C B"), (b"0=0 1=1", b"B D")],
    [(b"0=0", b"A")],
    [(b"0-1=0 2-3=1-3", b"A A C D"), (b"0=0 1-3=1-3", b"A B C D"), (b"3=0 0-2=1", b"D C")],
    [(b"0-1=0-1", b"C A"), (b"1=0 0=1", b"A C")],
]
LM = [[-2.0, -1.5, -1.0], [-3.0, -1.0, -2.0], [-1.0], [-2.0, -2.5, -0.5], [-1.0, -1.25]]
FEATURES = FeatureSet(
    (
        FeatureFunction("LM0", (0.5,), (True,)),
        FeatureFunction("TM0", (0.2, 9.0, 0.3, 0.1), (True, False, True, True)),
    )
)
"""The lists have no value of the one that is not tuned."""
COLUMN = 2


def weights(directory: Path) -> bytes:
    return (directory / "model.safetensors").read_bytes()


def pairs_of(sentence: int, place: int) -> list[tuple[list[bytes], list[bytes]]]:
    text, words = LISTS[sentence][place]
    spans = []
    for part in text.split():
        sides = [side.split(b"-") for side in part.split(b"=")]
        spans.append([(int(side[0]), int(side[-1]) + 1) for side in sides])
    return [(SOURCES[sentence].split()[a:b], words.split()[c:d]) for (a, b), (c, d) in spans]


def log_prob(model, source, target) -> float:
    ids = model.source.ids(source), model.target.ids(target)
    return float(reference_log_probs(model, *ids).sum())


def column_of(model, sentence: int, place: int) -> float:
    return sum(log_prob(model, *pair) for pair in pairs_of(sentence, place))


def write_lists(path: Path, model, change=lambda line: line) -> None:
    lines = []
    for sentence, of_sentence in enumerate(LISTS):
        for place, (segmentation, words) in enumerate(of_sentence):
            value = column_of(model, sentence, place)
            features = f"LM0= {LM[sentence][place]} TM0= -1 {value:.6g} -2"
            line = b"%d ||| %b  ||| %b ||| -1.5 ||| %b\n"
            lines.append(change(line % (sentence, words, features.encode(), segmentation)))
    path.write_bytes(b"".join(lines))


@pytest.fixture
def files(tmp_path):
    model = random_model()
    save_model(tmp_path / "m", model)
    write_lists(tmp_path / "lists", model)
    (tmp_path / "source").write_bytes(b"".join(line + b"\n" for line in SOURCES))
    (tmp_path / "reference").write_bytes(b"".join(line + b"\n" for line in REFERENCES))
    return tmp_path


def data_of(files: Path, **changed) -> RefineData:
    paths = str(files / "source"), [str(files / "reference")], str(files / "lists")
    digest = load_model(files / "m").digest
    column = NetworkColumn(COLUMN, digest)
    return replace(RefineData(files / "m", *paths, FEATURES, TableWords(), column), **changed)


def objective_of(files: Path, **settings) -> ExpectedBleu:
    data, model = data_of(files), load_model(files / "m")
    words = data.words.words(model)
    reader = ListReader(FEATURES, COLUMN, words, model.source, model.target)
    lists = reader.read(data.lists, data.source, data.references)
    return ExpectedBleu(model, lists, 0.3, RefineSettings(**settings), CPU)


def plain(model, sharpness: float, sentence: int, weight: float = 0.3) -> float:
    metric = BLEU(tokenize="none", smooth_method="add-k", smooth_value=1, effective_order=False)
    scores, bleu = [], []
    for place, (_, words) in enumerate(LISTS[sentence]):
        fixed = 0.5 * LM[sentence][place] + 0.2 * -1 + 0.1 * -2
        scores.append(sharpness * (fixed + weight * column_of(model, sentence, place)))
        reference = [REFERENCES[sentence].decode()]
        bleu.append(metric.sentence_score(words.decode(), reference).score / 100)
    p = np.exp(np.array(scores) - max(scores))
    return float((p / p.sum()) @ bleu)


def test_expected_bleu_against_plain_sums(files):
    objective = objective_of(files, perplexity=1.7)
    model = load_model(files / "m")
    rows = np.array([3, 0, 4, 1])
    found = objective.terms(objective.network, rows).rewards
    expected = [plain(model, objective.sharpness, int(row)) for row in rows]
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-6)
    assert 2 not in np.concatenate([objective.batch(0), objective.held_out])


def without_column(files: Path) -> tuple[ExpectedBleu, FeatureSet]:
    """The objective of lists of a system that does not have the network's column."""
    plain_table = FeatureFunction("TM0", (0.2, 9.0, 0.1), (True, False, True))
    features = FeatureSet((FEATURES.functions[0], plain_table))

    def without(line: bytes) -> bytes:
        fields = line.split(b" ||| ")
        values = fields[2].split()
        del values[4]
        return b" ||| ".join([*fields[:2], b" ".join(values), *fields[3:]])

    write_lists(files / "lists", load_model(files / "m"), without)
    data, model = data_of(files, features=features, column=None), load_model(files / "m")
    reader = ListReader(features, None, data.words.words(model), model.source, model.target)
    lists = reader.read(data.lists, data.source, data.references)
    return ExpectedBleu(model, lists, None, RefineSettings(perplexity=1.7), CPU), features


def test_lists_without_the_column(files):
    found, _ = without_column(files)
    write_lists(files / "lists", load_model(files / "m"))
    expected = objective_of(files, perplexity=1.7)
    np.testing.assert_allclose(found._lists.scores, expected._lists.scores, atol=1e-5)
    rows = np.array([3, 0, 4, 1])
    model, weight = load_model(files / "m"), found.identity()["weight"]
    terms = found.terms(found.network, rows).rewards.detach().numpy()
    plainly = [plain(model, found.sharpness, int(row), weight) for row in rows]
    np.testing.assert_allclose(terms, plainly, atol=1e-6)


def test_the_weight_of_a_column_that_lists_do_not_have(files, caplog):
    caplog.set_level("INFO", logger="moses_feature")
    found, _ = without_column(files)
    told = re.findall(r"([0-9.]+) with ([0-9.e+-]+)", caplog.text)
    assert len(told) == len(SHARES)
    best = max(told, key=lambda pair: float(pair[0]))
    assert float(best[1]) == found.identity()["weight"]
    held_out = {*found.held_out.tolist()}
    learnt = [row for row in (0, 1, 3, 4) if row not in held_out]
    model = load_model(files / "m")
    expected = [plain(model, found.sharpness, row, float(best[1])) for row in learnt]
    assert float(best[0]) == pytest.approx(np.mean(expected), abs=1e-4)


def test_whole_documents_are_held_out(files):
    data, model = data_of(files), load_model(files / "m")
    (files / "documents").write_text("b\na\na\nb\na\n")
    reader = ListReader(FEATURES, COLUMN, data.words.words(model), model.source, model.target)
    lists = reader.read(data.lists, data.source, data.references, str(files / "documents"))
    settings = RefineSettings(perplexity=1.7)
    objective = ExpectedBleu(model, lists, 0.3, settings, CPU)
    held_out = {*objective.held_out.tolist()}
    assert held_out in ({0, 3}, {1, 4})  # the list of sentence 2 has one translation
    assert {*objective.batch(0).tolist()} == {0, 1, 3, 4} - held_out
    (files / "documents").write_text("a\n" * 5)
    lists = reader.read(data.lists, data.source, data.references, str(files / "documents"))
    with pytest.raises(DataError, match="two documents at least"):
        ExpectedBleu(model, lists, 0.3, settings, CPU)
    (files / "documents").write_text("a\n" * 4)
    with pytest.raises(DataError, match="expected 5 lines, as the text has, found 4"):
        reader.read(data.lists, data.source, data.references, str(files / "documents"))


def test_its_gradient_against_differences(files):
    objective = objective_of(files, perplexity=1.7)
    network = objective.network.double()
    rows = np.array([0, 1, 3])

    def loss() -> torch.Tensor:
        return -objective.terms(network, rows).rewards.sum()

    loss().backward()
    for name in ("decoder_state.weight", "encoder_input.bias", "output_words.weight"):
        parameter = dict(network.named_parameters())[name]
        place = int(parameter.grad.abs().argmax())
        with torch.no_grad():
            flat, step = parameter.view(-1), 1e-4
            flat[place] += step
            above = loss()
            flat[place] -= 2 * step
            below = loss()
            flat[place] += step
        expected = float(above - below) / (2 * step)
        assert parameter.grad.view(-1)[place].item() == pytest.approx(expected, rel=1e-3)


def test_the_lists_are_as_peaked_as_asked(files):
    objective = objective_of(files, perplexity=1.6, held_out=0.2)
    model = load_model(files / "m")
    entropies = []
    for row in np.unique(np.concatenate([objective.batch(0)])):
        places = range(len(LISTS[row]))
        scores = [0.5 * LM[row][place] + 0.3 * column_of(model, row, place) for place in places]
        p = np.exp(objective.sharpness * (np.array(scores) - max(scores)))
        p /= p.sum()
        entropies.append(-(p * np.log(p)).sum())
    assert math.exp(np.mean(entropies)) == pytest.approx(1.6, rel=1e-4)


def test_no_list_is_as_flat_as_that(files):
    with pytest.raises(UsageError, match=r"perplexity: expected less than 2\.\d"):
        objective_of(files, perplexity=5.0)


def test_a_run_gains_and_goes_on_to_the_byte(files, caplog):
    caplog.set_level("INFO", logger="moses_feature")
    settings = RefineSettings(
        batch_size=2, learning_rate=0.01, updates=30, evaluate_every=6, perplexity=1.7
    )
    refine(data_of(files), settings, files / "whole", CPU)
    assert f"translations of {len(SOURCES)} sentences, " in caplog.text
    training = load_model(files / "whole").training
    losses = [entry["training_loss"] for entry in training["history"][1:]]
    assert min(losses[1:]) < losses[0] - 0.01
    first, *_ = training["history"]
    assert first["update"] == 0  # the network as it was
    assert min(entry["held_out_loss"] for entry in training["history"]) == pytest.approx(
        training["held_out_loss"]
    )
    assert training["objective"] == "expected BLEU"
    assert training["refined_model"] == load_model(files / "m").digest
    asked = iter(range(99))
    control = RunControl(stop=lambda: next(asked) == 13)
    assert refine(data_of(files), settings, files / "parts", CPU, control) == "interrupted"
    refine(data_of(files), settings, files / "parts", CPU, RunControl(resume=True))
    assert weights(files / "parts") == weights(files / "whole") != weights(files / "m")
    with pytest.raises(UsageError, match="holds a model already"):
        refine(data_of(files), settings, files / "whole", CPU)


def no_segmentation(line: bytes) -> bytes:
    return b" ||| ".join(line.split(b" ||| ")[:4]) + b"\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (no_segmentation, "lists at line 1: expected the phrases behind the total"),
        (
            lambda line: line.replace(b"LM0=", b"LM1="),
            "line 1: expected the features LM0:1 LM1:0, found LM0:0 LM1:1",
        ),
        (lambda line: line.replace(b" -2 |||", b" |||"), "features TM0:3, found TM0:2"),
        (
            lambda line: line[: line.index(b"LM0")] + line[line.index(b"TM0") :],
            "found LM0:0",
        ),
        (lambda line: line.replace(b"-1.5", b"x"), "line 1: expected sentence"),
        (
            lambda line: line.replace(b"LM0= ", b"LM0= x"),
            "line 1: expected Name= value .* found .x-2.0",
        ),
        (lambda line: line.replace(b"||| 0", b"||| 7"), "expected phrases that cover 3 source"),
        (lambda line: b"9" + line, "line 1: expected a sentence from 0 to 4, found 90"),
    ],
)
def test_lists_that_do_not_fit(files, change, message):
    write_lists(files / "lists", load_model(files / "m"), change)
    with pytest.raises(DataError, match=message):
        objective_of(files)


def test_other_models_texts_and_directions(files):
    settings = RefineSettings(updates=1)
    write_lists(files / "lists", random_model(seed=9))
    with pytest.raises(DataError, match="expected the network's log p as their column"):
        refine(data_of(files), settings, files / "new", CPU)
    (files / "reference").write_bytes(b"A\n")
    with pytest.raises(DataError, match=r"reference: expected 5 lines as in .*source, found 1"):
        refine(data_of(files), settings, files / "new", CPU)
    with pytest.raises(UsageError, match="expected the network that made the column"):
        refine(data_of(files, column=NetworkColumn(COLUMN, "other")), settings, files / "new", CPU)
    (files / "lists").write_bytes(b"")
    (files / "reference").write_bytes(b"A\n" * 5)
    with pytest.raises(DataError, match="two sentences at least whose translations differ"):
        refine(data_of(files), settings, files / "new", CPU)
    with pytest.raises(UsageError, match="expected a file name, found -"):
        refine(data_of(files, source="-"), settings, files / "new", CPU)
    for wrong in ({"perplexity": 1.0}, {"weight": 0.0}, {"held_out": 1.0}, {"dropout": 1.0}):
        with pytest.raises(UsageError):
            RefineSettings(**wrong)
    assert not (files / "new" / "config.json").exists()
