"""Models of other languages, and lists of another text."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.models import SEARCH_SIZES, random_model
from helpers.toy import random_neural_lm

from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.networks.direction import Direction
from moses_feature.networks.files import write_model_files
from moses_feature.networks.known_words import ENOUGH, FEWEST, KnownWords
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.model import save_model
from moses_feature.rescoring.features import OwnSource, SentenceFeature, scorers_of
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.sentences.scorer import SentenceModel

SOURCE, TARGET = b"the dog a b zzz", b"le chien un zzz"
PAIRS = 30


@dataclass
class Translation:
    """A translation of a list."""

    words: list[bytes]
    links: bytes | None = None


@pytest.fixture
def models(tmp_path: Path) -> None:
    """Save networks of both directions, and a phrase network."""
    save_model(tmp_path / "forward", random_model(SEARCH_SIZES))
    save_model(tmp_path / "reverse", random_model(SEARCH_SIZES, direction=Direction(reverse=True)))


def write(folder: Path, source: bytes, target: bytes, links: str = "") -> None:
    """Write a text and its n-best lists."""
    (folder / "source").write_bytes(PAIRS * (source + b"\n"))
    line = "{} ||| " + target.decode() + "  ||| LM0= -2 ||| -3.5" + links + "\n"
    (folder / "lists").write_text("".join(line.format(number) for number in range(PAIRS)))


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("model", ["forward", "reverse"])
def test_models_of_another_language_are_refused(tmp_path, run, model):
    arguments = ("list", "rescore", "lists", "out", "--model", model, "--source", "source")
    write(tmp_path, SOURCE, TARGET)
    run(*arguments)
    (tmp_path / "out").unlink()
    for source, target, text in (
        (TARGET, SOURCE, "source, and 90 of them as words of its other language"),
        (SOURCE, SOURCE, "the translations, and 120 of them as words of its other language"),
        (b"x y z", TARGET, "source"),
        (SOURCE, b"x y z", "the translations"),
    ):
        write(tmp_path, source, target)
        said = run(*arguments, exit_code=1).stderr
        assert f"words of {text}" in said
        assert not (tmp_path / "out").exists()


def test_a_language_model_of_another_language_is_refused(tmp_path, run):
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, random_neural_lm(np.random.default_rng(1)))
    words = (tmp_path / "lm" / "words.vocab").read_text().split()[2:]
    for target, exit_code in ((" ".join(words[:5]), 0), ("p q r s t", 1)):
        write(tmp_path, SOURCE, target.encode())
        said = run("list", "rescore", "lists", "out", "--model", "X=lm", exit_code=exit_code).stderr
        expected = "X: expected a model of the language of the translations, found that it knows 0"
        assert (expected in said) == bool(exit_code)


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("model", ["{}/forward", "mbr:{}/forward", "{}/lm"])
def test_a_stream_of_another_language_is_a_warning(tmp_path, caplog, model):
    """What one client of a server sends must not refuse the sentences of the others."""
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, random_neural_lm(np.random.default_rng(1)))
    source = SourceText([], "the sentences", is_stream=True)
    [scorer] = scorers_of([("X", model.format(tmp_path))], source)
    for _ in range(ENOUGH // PAIRS + 2):
        source.replace([SOURCE])
        assert len(scorer.scores([(0, [Translation([b"q"] * PAIRS)])])) == 1
    [warning] = [of.getMessage() for of in caplog.records]
    assert f"knows 0 of {ENOUGH + 10} words of the translations" in warning


@pytest.mark.usefixtures("models")
def test_translating_another_language(run):
    """After the first words that say so: what was printed until then is there."""
    assert run("model", "translate", "forward", stdin=PAIRS * (SOURCE + b"\n")).stdout
    said = run("model", "translate", "forward", stdin=PAIRS * b"x y z\n", exit_code=1)
    expected = "forward: expected a model of the language of the text to translate, found that it"
    assert f"{expected} knows 0 of 90" in said.stderr


def test_few_words_are_not_judged():
    vocabulary = Vocabulary((b"a", b"b"))
    known = KnownWords("model", "text", vocabulary)
    known.add([b"x"] * (FEWEST - 1))
    known.check()
    known.add([b"x"])
    with pytest.raises(MosesFeatureError, match="knows 0 of 50"):
        known.check()
    known = KnownWords("model", "text", vocabulary)
    with pytest.raises(MosesFeatureError, match="model: expected a model of the language of text"):
        known.add([b"x"] * ENOUGH)
    known = KnownWords("model", "text", vocabulary)
    known.add([b"x", b"b"] * ENOUGH)
    assert known.share == 0.5


@pytest.mark.parametrize(("of_other", "refused"), [(9, False), (10, False), (11, True)])
def test_languages_that_share_many_words(of_other, refused):
    """Swapped, a model may still know most words, and knows more as those of the other side."""
    vocabularies = Vocabulary((b"1", b".")), Vocabulary((b"1", b".", b"le"))
    known = KnownWords("model", "text", *vocabularies)
    known.add([b"1"] * (100 - of_other) + [b"le"] * of_other)
    if refused:
        with pytest.raises(MosesFeatureError, match="it is of these two the other way round"):
            known.check()
    else:
        known.check()
    known = KnownWords("model", "text", *vocabularies[::-1])
    known.add([b"1", b"le"] * 50)
    known.check()


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("model", ["forward"])
def test_word_alignments_of_another_text_are_refused(tmp_path, run, model):
    arguments = ("list", "rescore", "lists", "out", "--model", model, "--source", "source")
    for links in ("0-0 4-3", "5", ""):  # the second is none
        write(tmp_path, SOURCE, TARGET, f" ||| {links}")
        run(*arguments)
    (tmp_path / "out").unlink()
    write(tmp_path, SOURCE, TARGET, " ||| 0-0 5-1")
    said = run(*arguments, exit_code=1).stderr
    expected = "lists at line 1: expected links between 5 source and 4 target words"
    assert f"{expected}, as sentence 0 (from 0) of source has them, found " in said
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(("shift", "warned"), [(0, False), (1, True)])
def test_lists_of_another_text_are_noticed(tmp_path, monkeypatch, caplog, shift, warned):
    """By a network that knows which target word belongs to which source word."""

    def word_log_probs(self, pairs):  # noqa: ARG001
        return [np.array([-1.0 if s[0] == t[0] else -9.0, -1.0]) for s, t in pairs]

    monkeypatch.setattr(SentenceModel, "word_log_probs", word_log_probs)
    words = b"a b c d the dog".split()
    translations = b"A B C D le chien".split()
    text = SourceText([words[(n + shift) % 6] for n in range(60)], "source")
    feature = SentenceFeature("S", [str(tmp_path / "forward")], text)

    for n in range(60):
        feature.scores([(n, [Translation([translations[n % 6]])])])
    feature.finish()
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == warned
    assert all("do the lists belong to source" in message for message in messages)


@pytest.mark.parametrize(("tried", "better", "said"), [(19, 0, 0), (20, 13, 1), (20, 14, 0)])
def test_when_it_is_said(caplog, tried, better, said):
    own = OwnSource("S", "source")
    for number in range(tried):
        own.add(-1.0, -2.0 if number < better else -0.5)
    for _ in range(2):
        own.finish()
    assert len(caplog.records) == said


def test_words_are_counted_by_many_threads():
    """None is lost, although each thread waits between reading and writing a number."""

    class Slow(Vocabulary):
        def knows(self, word: bytes) -> bool:
            time.sleep(0.0005)
            return super().knows(word)

    known = KnownWords("model", "text", Slow((b"a",)))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(known.add, [[b"a"] * 4] * 50))
    assert known.share == 1.0


def test_an_empty_file_of_lists(tmp_path, run):
    save_model(tmp_path / "forward", random_model(SEARCH_SIZES))
    write(tmp_path, SOURCE, TARGET)
    (tmp_path / "lists").write_bytes(b"")
    options = ("--model", "forward", "--source", "source")
    said = run("list", "rescore", "lists", "out", *options, exit_code=1).stderr
    assert "lists: expected n-best lists, found an empty file" in said
    assert not (tmp_path / "out").exists()


def test_references_of_sentences_without_a_list(tmp_path, run):
    write(tmp_path, SOURCE, TARGET)
    (tmp_path / "weights").write_text("LM0= 1\n")
    (tmp_path / "reference").write_bytes((PAIRS + 2) * (TARGET + b"\n") + b"\n")
    options = ("--weights", "weights", "--reference", "reference")
    said = run("list", "rescore", "lists", "out", *options).stderr
    assert "2 sentences of the references have no list" in said


def test_the_same_text_twice_is_refused(tmp_path, run):
    (tmp_path / "text").write_bytes(b"a b\n" * 40)
    said = run("model", "train-sentences", "text", "text", "model", exit_code=2).stderr
    assert "text and text: expected two texts, found one" in said
    assert not (tmp_path / "model").exists()
