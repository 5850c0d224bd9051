"""Cross-fitting: no network scores a source phrase that it was trained on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.training import TINY, write_pairs

from moses_feature.moses.lines import LineReader
from moses_feature.moses.words import WordOptions
from moses_feature.networks.phrases import Phrases
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.cross_fitting import CrossFittedModel, load_any_model
from moses_feature.phrases.model import load_model
from moses_feature.phrases.pairs import Folds, PairCollection, phrase_hashes, read_pairs
from moses_feature.phrases.scorer import packer_of, scorer_of
from moses_feature.phrases.settings import TrainingData, TrainingSettings
from moses_feature.phrases.table_words import TableWords
from moses_feature.phrases.training import train
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.training.trainer import RunControl

CPU = torch.device("cpu")
SETTINGS = TrainingSettings(sizes=TINY, updates=7, batch_size=17)


@pytest.fixture
def table(tmp_path) -> Path:
    return write_pairs(tmp_path / "pairs.tsv", 300)


def pairs_of(path: Path) -> list[tuple[list[bytes], list[bytes]]]:
    lines = path.read_bytes().splitlines()
    return [tuple(side.split() for side in line.split(b"\t")) for line in lines]


@pytest.fixture
def directory(table, tmp_path) -> Path:
    train(TrainingData([str(table)], folds=3), SETTINGS, tmp_path / "m", CPU)
    return tmp_path / "m"


def test_folds_split_the_source_phrases(table):
    with LineReader(str(table)) as reader:
        collection = PairCollection(read_pairs(reader, WordOptions()))
    words = Vocabulary(tuple(sorted({word for source, _ in pairs_of(table) for word in source})))
    folds = Folds(3, 1)
    number = {
        tuple(source): int(folds.of(phrase_hashes(Phrases.pack([words.ids(source)])))[0])
        for source, _ in pairs_of(table)
    }
    trained_on: list[set[tuple[bytes, ...]]] = []
    for fold in range(3):
        pairs = collection.pairs(words, words, 0.05, 1000, 1, folds, fold)
        names = list(words.shortlist)
        phrases = [
            tuple(
                names[i - words.ids([names[0]])[0]]
                for i in pairs.source.ids[pairs.source.offsets[row] : pairs.source.offsets[row + 1]]
            )
            for row in range(len(pairs))
        ]
        held_out = {p for p, out in zip(phrases, pairs.held_out, strict=True) if out}
        trained = {p for p, out in zip(phrases, pairs.held_out, strict=True) if not out}
        assert held_out
        assert all(number[phrase] != fold for phrase in held_out | trained)
        assert not held_out & trained
        trained_on.append(trained)
    assert set.union(*trained_on) == set(number)
    assert min(list(number.values()).count(fold) for fold in range(3)) > len(number) / 5


def test_what_the_network_cannot_tell_apart_is_on_one_side(table):
    """Source phrases with the same ids, unknown words being one."""
    with LineReader(str(table)) as reader:
        collection = PairCollection(read_pairs(reader, WordOptions()))
    words = Vocabulary.most_frequent(collection.source_counts(), 3)
    folds = Folds(3, 1)
    left = [collection.pairs(words, words, 0.1, 1000, 1, folds, fold) for fold in range(3)]
    everything = collection.pairs(words, words, 0.1, 1000, 1)
    assert len(collection.source_hashes(words)) < len({tuple(s) for s, _ in pairs_of(table)})
    for pairs in (everything, *left):
        hashes = phrase_hashes(pairs.source)
        assert not set(hashes[pairs.held_out]) & set(hashes[~pairs.held_out])
    for pairs, fold in zip(left, range(3), strict=True):
        assert not (folds.of(phrase_hashes(pairs.source)) == fold).any()
    assert sum(map(len, left)) == 2 * len(collection)


def test_hashes_of_phrases():
    """Equal for equal ids alone: order, length and the empty phrase count."""
    phrases = [[], [1], [2], [1, 2], [2, 1], [1, 1], [1, 1, 1], [3], [0], [1, 2], []]
    hashes = phrase_hashes(Phrases.pack(phrases)).tolist()
    assert hashes[9] == hashes[3]
    assert hashes[10] == hashes[0]
    assert len(set(hashes)) == len(phrases) - 2
    for number, phrase in enumerate(phrases):
        assert phrase_hashes(Phrases.pack([phrase])).tolist() == [hashes[number]]


def test_each_pair_is_scored_by_the_network_that_never_saw_its_source(directory, table):
    model = load_any_model(directory)
    assert isinstance(model, CrossFittedModel)
    known = pairs_of(table)[:97]
    unknown = [([b"new", *source], target) for source, target in known[:11]]
    networks = [scorer_of(load_model(directory / f"fold-{k}"), CPU) for k in (1, 2, 3)]
    fold = model.folds.of(phrase_hashes(Phrases.pack([model.source.ids(s) for s, _ in known])))
    expected = [networks[k].score([pair]).log_probs[0] for k, pair in zip(fold, known, strict=True)]
    expected += [np.mean([n.score([pair]).log_probs[0] for n in networks]) for pair in unknown]
    scores = scorer_of(model, CPU).score([*known, *unknown])
    np.testing.assert_allclose(scores.log_probs, expected, rtol=1e-12)
    of_words = np.add.reduceat(scores.word_log_probs, scores.offsets[:-1])
    np.testing.assert_allclose(of_words, scores.log_probs, rtol=1e-12)
    assert scorer_of(model, CPU).score([]).log_probs.size == 0


def test_scores_do_not_depend_on_the_batch(directory, table):
    scorer = scorer_of(load_any_model(directory), CPU)
    pairs = pairs_of(table)[:53]
    alone = [scorer.score([pair]).log_probs[0] for pair in pairs]
    assert np.array_equal(scorer.score(pairs).log_probs, alone)


def test_an_interrupted_run_goes_on(directory, table, tmp_path):
    data = TrainingData([str(table)], folds=3)
    asked = iter(range(99))
    parts = tmp_path / "parts"
    assert (
        train(data, SETTINGS, parts, CPU, RunControl(stop=lambda: next(asked) == 11))
        == "interrupted"
    )
    assert not (parts / "fold-3").exists()
    with pytest.raises(UsageError, match="holds a model already"):
        train(data, SETTINGS, parts, CPU)
    with pytest.raises(UsageError, match="give --folds"):
        train(TrainingData([str(table)]), SETTINGS, parts, CPU, RunControl(resume=True))
    with pytest.raises(FormatError, match="Folds"):
        train(TrainingData([str(table)], folds=2), SETTINGS, parts, CPU, RunControl(resume=True))
    train(data, SETTINGS, parts, CPU, RunControl(resume=True))
    assert load_any_model(parts).digest == load_any_model(directory).digest


def test_escaped_words_outside_the_shortlists_are_remembered(tmp_path):
    """Else the table would be taken for another one, and each pair scored by all networks."""
    table = tmp_path / "pairs"
    patterns = [format(n, "b").replace("1", "a ").replace("0", f"w{n} ") for n in range(60)]
    pairs = [(f"{pattern}&apos;", f"b v{n} &quot;") for n, pattern in enumerate(patterns)]
    table.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    train(TrainingData([str(table)], shortlist=1, folds=2), SETTINGS, tmp_path / "m", CPU)
    model = load_any_model(tmp_path / "m")
    assert list(model.source.shortlist) == [b"a"]
    assert model.escaped
    words = TableWords().words(model)
    assert words.pair(b"a &apos;", b"b") == ([b"a", b"&apos;"], [b"b"])
    packed = packer_of(model).pack([words.pair(s.encode(), t.encode()) for s, t in pairs])
    np.testing.assert_array_equal(packed.shares, 1)


def test_too_few_phrases(tmp_path):
    (tmp_path / "one").write_text("a\tb\n")
    with pytest.raises(MosesFeatureError, match="too few for 2 folds"):
        train(TrainingData([str(tmp_path / "one")], folds=2), SETTINGS, tmp_path / "m", CPU)


def test_damaged_directories(directory):
    facts = json.loads((directory / "folds.json").read_text())
    for broken in ("{", '{"folds": 1}', json.dumps({**facts, "folds": 1})):
        (directory / "folds.json").write_text(broken)
        with pytest.raises(FormatError, match="damaged"):
            load_any_model(directory)
    (directory / "folds.json").write_text(json.dumps(facts))
    (directory / "sources.safetensors").write_bytes(b"x")
    with pytest.raises(FormatError, match="hashes of source phrases"):
        load_any_model(directory)


def test_commands(run, tmp_path):
    """Train, describe, score and augment with folds."""
    lines = [f"{' '.join(s)} ||| {' '.join(t)} ||| 1 1 1 1\n" for s, t in TABLE]
    (tmp_path / "t").write_text("".join(lines))
    run("augment-phrase-table", "t", "o", "--folds", 2, "--updates", 3, "--hidden", 8)
    assert "networks               2, cross-fitted" in run("model", "describe", "o.model").output
    scored = run("model", "score", "o.model", stdin=b"a b\tA B\nnever seen\tA\n").output.split()
    first = next(line for line in (tmp_path / "o").read_text().split("\n") if "a b |||" in line)
    assert float(first.split("|||")[2].split()[4]) == pytest.approx(
        np.exp(float(scored[0])), rel=1e-4
    )


TABLE = [(p.split(), p.upper().split()) for p in ("a", "b", "c", "a b", "b c", "a b c", "c a")]
