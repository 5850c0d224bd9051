"""Features that compare translations with what networks say themselves."""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.models import SEARCH_SIZES, SOURCE_WORDS, TARGET_WORDS, TRANSFORMER_SIZES, random_model
from helpers.toy import random_neural_lm

from moses_feature.cli.lists import rescore
from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.moses.nbest_lists import Hypothesis
from moses_feature.moses.system_directory import SystemDirectory, write_tuned
from moses_feature.networks.direction import Direction
from moses_feature.networks.files import write_model_files
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import save_model
from moses_feature.rescoring import mbr, nbest
from moses_feature.rescoring.mbr import MbrFeature
from moses_feature.rescoring.source import SourceText
from moses_feature.sentences.translate import translate, words_of, writer

SOURCES = [b"the dog a", b"", b"a b the", b"the dog a"]


@pytest.fixture(params=[SEARCH_SIZES, TRANSFORMER_SIZES])
def networks(tmp_path: Path, request) -> list[str]:
    """Two networks of different seeds, which do not end too soon."""
    for seed in (1, 2):
        model = random_model(request.param, seed)
        with torch.no_grad():
            model.network.output_words.bias[END] -= 4
        save_model(tmp_path / f"m{seed}", model)
    return [str(tmp_path / f"m{seed}") for seed in (1, 2)]


def drawn(seed: int, size: int) -> list[Hypothesis]:
    """Translations of random words, the last one empty."""
    generator = np.random.default_rng(seed)
    lengths = [*generator.integers(1, 9, size - 1), 0]
    return [
        Hypothesis(tuple(generator.choice(TARGET_WORDS, length).tolist()), np.zeros(1), 0.0)
        for length in lengths
    ]


LISTS = [(number, drawn(number, 7)) for number in range(len(SOURCES))]


def plain_bleu(translation: tuple[bytes, ...], reference: list[bytes]) -> float:
    """BLEU of one sentence, one added to the counts above single words."""
    if not translation:
        return 0.0
    product = 1.0
    for n in range(1, 5):
        ours, its = (
            Counter(tuple(of[i : i + n]) for i in range(len(of) - n + 1))
            for of in (translation, reference)
        )
        matches, total = (ours & its).total() + (n > 1), ours.total() + (n > 1)
        product *= matches / total
    return product**0.25 * min(1.0, math.exp(1 - len(reference) / len(translation)))


def expected(directory: str) -> list[float]:
    """The values of one network for `LISTS`, one translation at a time."""
    network, empty = writer(Path(directory))
    values = []
    for number, translations in LISTS:
        words = SOURCES[number].split()
        (own,) = translate(empty, [network.source.ids(words)], mbr.MOST)
        texts = [words_of(network, of, words) if words else [] for of in own]
        p = np.exp([of.log_prob for of in own])
        for of in translations:
            bleu = [plain_bleu(of.words, text) for text in texts]
            values.append(len(texts[0]) * float(np.dot(p / p.sum(), bleu)))
    return values


def feature(directories: list[str]) -> MbrFeature:
    return MbrFeature("A", directories, SourceText(SOURCES, "source"))


def test_values(networks):
    found = feature(networks[:1])
    values = found.scores(LISTS)
    assert values == pytest.approx(expected(networks[0]), abs=1e-5)
    assert len(set(np.round(values, 6))) > 3
    assert found.scores(LISTS[2:]) == pytest.approx(values[14:], abs=1e-5), "what is remembered"
    found.finish()
    both = [expected(directory) for directory in networks]
    assert both[0] != pytest.approx(both[1])
    assert feature(networks).scores(LISTS) == pytest.approx(np.mean(both, axis=0), abs=1e-5)


def test_threads_and_forgetting(networks, monkeypatch):
    whole = feature(networks).scores(LISTS)
    shared = feature(networks)
    monkeypatch.setattr(mbr, "MOST_KNOWN", 1)
    for _ in range(5):
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(lambda one: shared.scores([one]), LISTS))
        assert [value for part in parts for value in part] == pytest.approx(whole, abs=1e-5)


def test_no_translations(networks):
    assert feature(networks).scores([(0, []), (1, [])]) == []
    assert feature(networks).scores([]) == []


def test_models_that_do_not_translate(run, tmp_path, networks):
    save_model(tmp_path / "reverse", random_model(SEARCH_SIZES, direction=Direction(reverse=True)))
    files = random_neural_lm(np.random.default_rng(1))
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, files)
    Path("source").write_bytes(b"the dog\n")
    Path("lists").write_text("0 ||| le chien ||| LM0= -2 ||| -3\n")
    for model, code, found in (
        ("mbr:reverse", 2, "translates into the target language, found a reverse one"),
        ("mbr:lm", 2, "mbr:lm: expected a network that translates, rnnsearch or transformer"),
        ("mbr:nowhere", 1, "mbr:nowhere: expected a model directory, found none"),
        ("A=mbr:", 2, "mbr:: expected mbr:MODEL"),
    ):
        words = ("list", "rescore", "lists", "out", "--model", model, "--source", "source")
        assert found in run(*words, exit_code=code).stderr
        assert not Path("out").exists()
    no_source = run("list", "rescore", "lists", "out", "--model", f"mbr:{networks[0]}", exit_code=2)
    assert "--source" in no_source.stderr


@pytest.mark.parametrize("networks", [SEARCH_SIZES], indirect=True)
def test_lists_of_another_text_are_noticed(networks, caplog):
    """The first of each list is what the network says for the sentence, or for the one before."""
    words = SOURCE_WORDS[:6]
    sources = [b" ".join(words[n % 5 : n % 5 + 1] + words[n % 3 :]) for n in range(40)]
    network, empty = writer(Path(networks[0]))
    said = [
        words_of(network, of[0], source.split())
        for source, of in zip(
            sources, translate(empty, [network.source.ids(s.split()) for s in sources]), strict=True
        )
    ]
    for shift, told in ((0, False), (1, True)):
        caplog.clear()
        found = MbrFeature("A", networks[:1], SourceText(sources, "source"))
        lists = [
            (n, [Hypothesis(tuple(said[(n - shift) % 40]), np.zeros(1), 0.0)]) for n in range(40)
        ]
        found.scores(lists)
        found.finish()
        assert ("do the lists belong to source" in caplog.text) == told


def test_lists_are_rescored(run, networks, monkeypatch):
    Path("source").write_bytes(b"".join(of + b"\n" for of in SOURCES))
    with Path("lists").open("wb") as lists:
        for number, translations in LISTS:
            for of in translations:
                lists.write(b"%d ||| %b ||| LM0= -2 ||| -3\n" % (number, b" ".join(of.words)))
    given = [f"--model=A=mbr:{directory}" for directory in networks]
    given.append(f"--model=T={networks[0]}")
    run("list", "rescore", "lists", "out", *given, "--source", "source")
    lines = Path("out").read_text().splitlines()
    found = [float(line.split("A= ")[1].split()[0]) for line in lines]
    assert found == pytest.approx(feature(networks).scores(LISTS), abs=1e-4)
    assert all("T= " in line for line in lines)
    monkeypatch.setattr(nbest, "TOGETHER", 1)
    for threads in (1, 3):
        monkeypatch.setattr(rescore, "cores", lambda threads=threads: threads)
        run("list", "rescore", "lists", f"by-{threads}", *given, "--source", "source")
    assert Path("by-1").read_bytes() == Path("by-3").read_bytes()


def test_tuned_systems_keep_the_mark(tmp_path, networks):
    (tmp_path / "moses.ini").write_text("")
    (tmp_path / "w").write_text("")
    write_tuned(tmp_path, None, [("A", f"mbr:{networks[0]}"), ("T", networks[1])], "w", 100, {})
    read = SystemDirectory.read(tmp_path)
    assert read.rescoring == (("A", f"mbr:{networks[0]}"), ("T", networks[1]))
