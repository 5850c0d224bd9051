"""Networks that remember a text: the equations, the command, and what goes wrong."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from errno import ENOSPC
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.equations import (
    assert_scored_alone,
    nearest_neighbours,
    transformer_features,
    transformer_output,
)
from helpers.models import SEARCH_SIZES, TRANSFORMER_SIZES, random_model, with_pieces

from moses_feature.networks.direction import Direction
from moses_feature.networks.files import MEMORY, has_memory
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END, UNKNOWN
from moses_feature.phrases.model import PhraseModel, save_model
from moses_feature.runtime.errors import FormatError, OutputError
from moses_feature.sentences import memory
from moses_feature.sentences.add_memory import add_memory
from moses_feature.sentences.memory import RememberedText, states_of
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.sentences.settings import SentenceData
from moses_feature.sentences.similar import SimilarSentences
from moses_feature.sentences.translate import ensemble, translate, writer

SOURCE = ["a b c", "the dog", "b b a", "c", "the dog one|N", "d", "a b c"]
TARGET = ["A B", "le chien", "noir A", "C D C", "un chien noir", "D", "A B"]


@pytest.fixture
def texts(tmp_path, monkeypatch) -> SentenceData:
    monkeypatch.chdir(tmp_path)
    Path("s").write_text("".join(f"{line}\n" for line in SOURCE))
    Path("t").write_text("".join(f"{line}\n" for line in TARGET))
    return SentenceData("s", "t")


def remembering(texts: SentenceData, model: PhraseModel, name: str = "m") -> SentenceModel:
    save_model(Path(name), model)
    assert add_memory(Path(name), texts, Path(f"{name}.memory")) == (6, 0)
    return SentenceModel(Path(f"{name}.memory"))


def test_similar_sentences():
    """Against cosines of dense vectors; what has no word in common is not found."""
    generator = np.random.default_rng(1)
    texts = [generator.integers(2, 12, n).tolist() for n in generator.integers(1, 9, 40)]
    asked = [generator.integers(2, 14, n).tolist() for n in generator.integers(0, 9, 20)]

    def grams(text: list[int]) -> list[tuple[int, ...]]:
        return [(word,) for word in text] + list(pairwise(text))

    every = sorted({gram for text in texts for gram in grams(text)})
    having = np.array([sum(gram in grams(text) for text in texts) for gram in every])

    def vector(text: list[int]) -> np.ndarray:
        counts = np.array([grams(text).count(gram) for gram in every])
        weights = (1 + np.log(np.maximum(counts, 1))) * (1 + np.log(41 / (1 + having)))
        return np.where(counts > 0, weights, 0.0)

    def unit(text: list[int]) -> np.ndarray:
        return vector(text) / np.linalg.norm(vector(text))

    index = SimilarSentences(PackedSequences.pack(texts))
    for text in asked:
        cosines = np.array([vector(text) @ unit(other) for other in texts])
        found = index.find(text, 5).tolist()
        best = np.sort(cosines)[::-1][:5]
        np.testing.assert_allclose(cosines[found], best[best > 0], atol=1e-5)
    assert index.find([99], 5).tolist() == []
    assert SimilarSentences(PackedSequences.pack([[2]] * 99)).find([2], 40).tolist() == list(
        range(40)
    )
    assert SimilarSentences(PackedSequences.pack([[UNKNOWN, 2]])).find([UNKNOWN], 1).tolist() == []


def plain_log_probs(
    model: PhraseModel, temperature: float, source: list[int], target: list[int]
) -> np.ndarray:
    """Log p of each word and END, in float64; every pair with a word in common is remembered."""
    ids = [model.source.ids(side.encode().split()) for side in SOURCE]
    written = [model.target.ids(side.encode().split()) for side in TARGET]
    like = [pair for pair in zip(ids, written, strict=True) if {*pair[0]} & {*source}]
    like = [pair for place, pair in enumerate(like) if pair not in like[:place]]
    states = np.concatenate([transformer_features(model, *pair)[0] for pair in like])
    words = np.concatenate([[*pair[1], END] for pair in like])
    features, _ = transformer_features(model, source, target)
    of_network = transformer_output(model, features)
    found = [
        nearest_neighbours(row, states, words, temperature, log_probs)
        for row, log_probs in zip(features, of_network, strict=True)
    ]
    return np.array(found)[np.arange(len(found)), [*target, END]]


def test_the_equations(texts):
    model = random_model(TRANSFORMER_SIZES)
    found = remembering(texts, model)
    temperature = RememberedText.load(Path("m.memory") / MEMORY).temperature
    for source, target in (("a b", "A"), ("the dog", "le chien"), ("c c d", ""), ("c", "C D C")):
        pair = found.ids(source.encode().split(), target.encode().split())
        (log_probs,) = found.word_log_probs([pair])
        np.testing.assert_allclose(log_probs, plain_log_probs(model, temperature, *pair), atol=1e-3)
    nothing_like_it = found.ids([b"&apos;"], [b"A"])
    expected = SentenceModel(Path("m")).word_log_probs([nothing_like_it])[0]
    assert np.array_equal(found.word_log_probs([nothing_like_it])[0], expected)


@pytest.mark.parametrize(
    "direction", [Direction(), Direction(reverse=True), Direction(right_to_left=True)]
)
@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("sizes", [SEARCH_SIZES, TRANSFORMER_SIZES])
def test_writing_scoring_and_searching_agree(texts, sizes, pieces, direction):
    model = random_model(sizes, direction=direction)
    if pieces:
        model = with_pieces(model)
    found = remembering(texts, model)
    sides = [
        direction.sides(s.encode().split(), t.encode().split())
        for s, t in zip(SOURCE, TARGET, strict=True)
    ]
    pairs = [(model.source.ids(read), model.target.ids(written)) for read, written in sides]
    assert_scored_alone(found, pairs * 4)
    without = SentenceModel(Path("m"))
    assert found.digest != without.digest
    assert found.log_probs(pairs).sum() > without.log_probs(pairs).sum() + 5
    _, empty = writer(Path("m.memory"))
    sources = [read for read, _ in pairs[:4]]
    for source, translations in zip(sources, translate(empty, sources, 3), strict=True):
        for of in translations:
            (expected,) = found.log_probs([(source, list(of.ids))])
            assert of.log_prob == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("sizes", [SEARCH_SIZES, TRANSFORMER_SIZES])
def test_states_are_the_inputs_of_the_softmax(tmp_path, sizes):
    """Of each pair, whatever is computed beside it, also of one without words."""
    save_model(tmp_path / "m", random_model(sizes))
    model = SentenceModel(tmp_path / "m")
    pairs = [
        model.ids(source.encode().split(), target.encode().split())
        for source, target in zip([*SOURCE, "c"], [*TARGET, ""], strict=True)
    ]
    sides = (PackedSequences.pack(side) for side in zip(*pairs, strict=True))
    states = states_of(model.network, *sides, np.arange(len(pairs)))
    for of, (source, target), expected in zip(
        states, pairs, model.word_log_probs(pairs), strict=True
    ):
        found = model.network.softmax.at(of, np.arange(len(of)), np.array([*target, END]))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        alone = model.network.features(
            PackedSequences.pack([source]), PackedSequences.pack([target])
        )
        np.testing.assert_allclose(alone, of, atol=1e-5)


def test_together_with_another_network(texts):
    """An ensemble of a network with a memory and one without."""
    found = remembering(texts, random_model(TRANSFORMER_SIZES))
    without = SentenceModel(Path("m"))
    _, empty = ensemble([Path("m"), Path("m.memory")])
    source = [found.source.ids(b"the dog".split())]
    for of in translate(empty, source, 4)[0]:
        of_each = [m.word_log_probs([(source[0], list(of.ids))])[0] for m in (found, without)]
        expected = np.log(np.exp(of_each).mean(0)).sum()
        assert of.log_prob == pytest.approx(expected, abs=1e-4)


def test_little_room(texts, monkeypatch):
    """States that had to be forgotten are computed again."""
    found = remembering(texts, random_model(TRANSFORMER_SIZES))
    pairs = [
        found.ids(s.encode().split(), t.encode().split())
        for s, t in zip(SOURCE, TARGET, strict=True)
    ]
    expected = found.log_probs(pairs)
    monkeypatch.setattr(memory, "MOST_STATES", 4)
    monkeypatch.setattr(memory, "TOGETHER", 2)
    again = SentenceModel(Path("m.memory"))
    with ThreadPoolExecutor(2) as threads:
        for _ in range(3):
            scores = threads.map(lambda pair: again.log_probs([pair])[0], pairs)
            np.testing.assert_allclose(list(scores), expected, atol=1e-4)


def test_the_command(texts, run):
    assert texts
    save_model(Path("m"), random_model(TRANSFORMER_SIZES))
    told = run("model", "add-memory", "m", "s", "t", "new").stderr
    assert "new remembers 6 different pairs; 0 were empty or too long" in told
    assert "s and t have no word that is escaped" in told
    described = run("describe", "new").stdout.splitlines()
    assert "remembered pairs       6" in described
    assert "remembered             s (source, 7 lines)" in described
    assert "memory" not in run("describe", "m").stdout
    text = b"the dog\n"
    alone, found = (run("model", "translate", of, stdin=text).stdout for of in ("m", "new"))
    assert found == "le chien\n" != alone
    refused = run("model", "export", "new", "x", "--format", "ctranslate2", exit_code=1).stderr
    assert "new: expected a network without a memory, found one with it" in refused
    pair = b"the dog\tle chien\n"
    scores = [float(run("model", "score", m, stdin=pair).stdout) for m in ("m", "new")]
    assert scores[1] > scores[0] + 1


def test_what_goes_wrong(texts, run):
    assert texts
    save_model(Path("m"), random_model(TRANSFORMER_SIZES))
    save_model(Path("phrases"), random_model())
    save_model(Path("plain"), replace(random_model(TRANSFORMER_SIZES), escaped=False))
    save_model(Path("other"), random_model(TRANSFORMER_SIZES, 2))
    Path("escaped").write_text("&apos;\n" * len(TARGET))
    run("model", "add-memory", "m", "s", "t", "new")
    Path("one").write_text("a\n")
    Path("full").mkdir()
    Path("full/file").write_text("a\n")
    Path("empty").write_text("\n")
    for words, message in (
        (("new", "s", "t", "newer"), "new: expected a network without a memory"),
        (("m", "s", "t", "full"), "full: expected a new or an empty directory"),
        (("m", "s", "t", "one"), "one: expected a new or an empty directory"),
        (("plain", "s", "escaped", "x"), "expected a text without Moses' escapes"),
        (("m", "s", "one", "x"), "one"),
        (("m", "empty", "empty", "x"), "expected pairs of 1 to 50 words, found none"),
        (("phrases", "s", "t", "x"), "expected architecture rnnsearch or transformer"),
    ):
        assert message in run("model", "add-memory", *words, exit_code=1).stderr
        assert not Path("x").exists()
    refused = run("model", "add-memory", "m", "s", "t", "new", exit_code=2).stderr
    assert "new is a model directory: write to another one" in refused
    path = Path("new") / MEMORY
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match="the memory of a network, found a damaged file"):
        SentenceModel(Path("new"))
    digest = SentenceModel(Path("m")).digest
    one, two, large = (PackedSequences.pack(side) for side in ([[2]], [[2], [3]], [[99]]))
    floats = PackedSequences(one.ids.astype(np.float32), one.offsets)
    for text, message in (
        (RememberedText(one, large, 1.0, digest, []), "expected ids of 13 words, found 99"),
        (RememberedText(one, one, float("nan"), digest, []), "expected a temperature above 0"),
        (RememberedText(one, one, 10**400, digest, []), "expected a temperature above 0"),
        (RememberedText(one, two, 1.0, digest, []), "of pairs, found 1 and 2"),
        (RememberedText(one, PackedSequences.pack([[]]), 1.0, digest, []), "bad ids or offsets"),
        (RememberedText(one, floats, 1.0, digest, []), "bad ids or offsets of the target"),
        (
            RememberedText(one, one, 1.0, "x", []),
            "the memory of this network, found one of another",
        ),
    ):
        text.save(path)
        with pytest.raises(FormatError, match=message):
            SentenceModel(Path("new"))
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(FormatError, match="a damaged file"):
        SentenceModel(Path("new"))


def test_a_full_disk_leaves_nothing(texts, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    save_model(Path("m"), random_model(TRANSFORMER_SIZES))
    before = set(Path().iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", full)
        with pytest.raises(OutputError, match=r"^new/[a-z.]*: cannot be written: No space left"):
            add_memory(Path("m"), texts, Path("new"))
    assert set(Path().iterdir()) == before
    add_memory(Path("m"), texts, Path("new"))
    assert has_memory(Path("new"))
