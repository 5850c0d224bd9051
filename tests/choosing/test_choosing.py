"""`system build --minutes`: all stages, killed and continued, and what is refused."""

from __future__ import annotations

import json
import random
from contextlib import chdir
from pathlib import Path

import pytest
import torch
from helpers.models import TRANSFORMER_SIZES

from moses_feature import api
from moses_feature.building.built_text import text_of_system
from moses_feature.choosing import plan as plan_module
from moses_feature.choosing import run as run_module
from moses_feature.choosing.plan import ChoosingPlan, plan
from moses_feature.choosing.run import PartVerdict
from moses_feature.cli.systems import choose
from moses_feature.doctor.examine import examine
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.sentences.settings import SentenceData, SentenceSettings
from moses_feature.sentences.training import train_sentences

WORDS = ["the", "dog", "sees", "a", "cat", "big", "&apos;s", "house", "runs", "to", "é"]
PAIRS = 1_300


def train_little(part, minutes, model, seed) -> None:
    assert minutes > 10
    settings = SentenceSettings(sizes=TRANSFORMER_SIZES, updates=20, batch_size=16, seed=seed)
    data = SentenceData(str(part.source), str(part.target), shortlist=20)
    train_sentences(data, settings, model, torch.device("cpu"))


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """Texts of words with two translations, one of which depends on the word before."""
    folder = tmp_path_factory.mktemp("choosing")
    choose_word = random.Random(3)
    source, target, links = [], [], []
    for _ in range(PAIRS):
        words = [choose_word.choice(WORDS) for _ in range(choose_word.randint(3, 9))]
        before = ["", *words]
        source.append(" ".join(words))
        target.append(
            " ".join(
                word.upper() + ("X" if before[n] < word and choose_word.random() < 0.9 else "")
                for n, word in enumerate(words)
            )
        )
        links.append(" ".join(f"{n}-{n}" for n in range(len(words))))
    for name, lines in (("en", source), ("fr", target), ("links", links)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


BUILD = ("system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2)


@pytest.fixture
def chosen(home, run, monkeypatch):
    """A system of which all parts are kept, whatever they bring; built once, by a narrow search."""
    for module in (plan_module, run_module):
        monkeypatch.setattr(module, "POP_LIMITS", (50,))
        monkeypatch.setattr(module, "ITERATIONS", 3)
        monkeypatch.setattr(module, "RUNS", 2)
    monkeypatch.setattr(run_module, "SMALL", 0)
    monkeypatch.setattr(choose, "_train", train_little)
    monkeypatch.setattr(PartVerdict, "gains", True)
    with chdir(home):
        yield run(*BUILD, "--minutes", 60)


def test_all_parts_are_kept(chosen, home, run):
    """And the result is a system like any other."""
    rows = [line.split(" | ")[0] for line in chosen.stdout.splitlines()[2:]]
    assert rows == ["| an operation sequence model", "| lists rescored by the network"]
    assert all(line.endswith("| kept |") for line in chosen.stdout.splitlines()[2:])
    content = json.loads((home / "s/system.json").read_text())
    assert content["built"] == "built"
    assert content["rescoring"] == [["T", "network"], ["A", "mbr:network"]]
    assert not content["external"]
    parts = [Path("s", f"{name}.source").read_text().splitlines() for name in ("dev", "judged")]
    assert all(len(part) == PAIRS // 10 for part in parts)
    rest = Path("s/held-in.source").read_text().splitlines()
    everything = [*parts[0], *parts[1], *rest]
    assert sorted(everything) == sorted(Path("en").read_text().splitlines())
    (translated,) = api.translate("s", ["the dog runs"])
    assert len(translated.split()) == 3
    assert not [f for f in examine("s") if f.severity == "problem"]
    weights = Path("s/moses.ini").read_text()
    assert "path=built.osm.arpa.gz" in weights
    again = run(*BUILD, "--minutes", 60)
    assert again.stderr.count(": done") == 9
    assert again.stdout == chosen.stdout


@pytest.mark.usefixtures("chosen")
def test_another_text_or_directory_is_refused(home, run):
    with chdir(home):
        refused = run(*BUILD, "--minutes", 60, "--seed", 2, exit_code=2).stderr
        assert "s holds a run with other building" in refused
        for words, said in (
            (("--osm", "--minutes", 9), "--minutes decides about an operation sequence model"),
            (("--dev", "en", "--minutes", 9), "--dev and --dev-reference go together"),
            (("--dev", "en", "--dev-reference", "fr"), "go together, with --minutes"),
        ):
            assert said in run(*BUILD, *words, exit_code=2).stderr


def test_too_few_sentences(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, line in (("en", "a b"), ("fr", "A B"), ("links", "0-0 1-1")):
        Path(name).write_text(f"{line}\n" * 10)
    refused = run(*BUILD, "--minutes", 60, exit_code=1).stderr
    assert "en: expected 1000 sentence pairs at least" in refused
    dev = "--dev", "en", "--dev-reference", "fr"
    refused = run(*BUILD, "--minutes", 60, *dev, exit_code=1).stderr
    assert "en: expected 100 sentences at least, found 10" in refused
    assert not Path("s/built").exists()


def test_bad_texts_are_named(run, tmp_path, monkeypatch):
    """By the names that they were given under, and before anything is built."""
    monkeypatch.chdir(tmp_path)
    for name, word, lines in (("en", "a", 1001), ("fr", "b", 1000), ("d.en", "a", 200)):
        Path(name).write_text(f"{word}\n" * lines)
    Path("d.fr").write_text("b\n" * 150 + "b|c\n" * 50)
    dev = "--dev", "d.en", "--dev-reference", "d.fr"
    for words in ((), ("--raw", "--source-language", "en", "--target-language", "fr")):
        build = "system", "build", "en", "fr", "s", "--minutes", 60, *words
        refused = run(*build, exit_code=1).stderr
        assert "/en at line 1001: expected as many lines in both texts" in refused
    Path("fr").write_text("b\n" * 1001)
    refused = run("system", "build", "en", "fr", "s", "--minutes", 60, *dev, exit_code=1).stderr
    assert "d.fr at line 151" in refused
    for name, word in (("d.en", "b"), ("d.fr", "a")):
        Path(name).write_text(f"{word}\n" * 200)
    refused = run("system", "build", "en", "fr", "s", "--minutes", 60, *dev, exit_code=1).stderr
    assert "/en, which has 0% of its words, found 100% of them in" in refused
    assert not Path("s").exists() or not list(Path("s").iterdir())


@pytest.mark.usefixtures("chosen")
def test_a_given_development_set(home, run, monkeypatch):
    """It is prepared like the text, and nothing else is held out but what is judged."""
    monkeypatch.setattr(run_module, "LEAST_NETWORK", 1e9)
    monkeypatch.setattr(run_module, "SMALL", PAIRS)
    lines = [Path(home, name).read_text().splitlines(keepends=True)[:120] for name in ("en", "fr")]
    with chdir(home):
        for name, of in zip(
            ("dev.en", "dev.fr", "dev.2.fr"), (*lines, lines[1][::-1]), strict=True
        ):
            Path(name).write_text("".join(of))
        words = [*BUILD, "--minutes", 60]
        words[4] = "given"
        dev = "--dev", "dev.en", "--dev-reference", "dev.fr", "--dev-reference", "dev.2.fr"
        done = run(*words, *dev)
        assert "there is no time to train a network" in done.stderr
        assert "operation sequence" not in done.stderr
        assert "warning: given/held-in.target has " in done.stderr
        assert Path("given/dev.source").read_text() == Path("dev.en").read_text()
        assert Path("given/dev.target.1").read_text() == Path("dev.2.fr").read_text()
        held_in = Path("given/held-in.source").read_text().splitlines()
        assert len(held_in) == PAIRS - PAIRS // 10
        assert not json.loads(Path("given/system.json").read_text())["rescoring"]


@pytest.mark.usefixtures("chosen")
def test_a_network_that_cannot_score_is_left_out(home, run, monkeypatch):
    def refuse(*_) -> None:
        raise MosesFeatureError("expected a model of the language")

    monkeypatch.setattr(run_module, "SMALL", PAIRS)
    monkeypatch.setattr(choose, "_train", train_little)
    monkeypatch.setattr(run_module._Choice, "_try", refuse)
    with chdir(home):
        done = run(*[*BUILD[:4], "without", *BUILD[5:]], "--minutes", 60)
        assert "the network is left out: expected a model of the language" in done.stderr
        assert done.stdout.count("\n") == 2
        assert not json.loads(Path("without/system.json").read_text())["rescoring"]


@pytest.mark.usefixtures("chosen")
def test_a_development_set_becomes_text(home, run, monkeypatch):
    """What neither links nor documents are given for joins the text of the last system alone."""
    monkeypatch.setattr(run_module, "LEAST_NETWORK", 1e9)
    with chdir(home):
        for name, of, word in (("new.en", "en", "zebra"), ("new.fr", "fr", "ZEBRA")):
            lines = Path(of).read_text().splitlines()[:120]
            Path(name).write_text("".join(f"{line} {word}\n" for line in lines))
        dev = "--dev", "new.en", "--dev-reference", "new.fr", "--aligner", "fast-align"
        done = run("system", "build", "en", "fr", "joined", "--minutes", 60, "--order", 2, *dev)
        assert "new.en is text of joined now: do not tune on it again" in done.stderr
        parts = {
            name: Path(f"joined/{name}.source").read_text().splitlines()
            for name in ("held-in", "judged", "dev")
        }
        assert sorted(parts["held-in"] + parts["judged"]) == sorted(
            Path("en").read_text().splitlines()
        )
        assert parts["dev"] == Path("new.en").read_text().splitlines()
        (translated,) = api.translate("joined", ["zebra"])
        assert translated == "ZEBRA"
        Path("joined").rename("moved")
        assert text_of_system(Path("moved/built"), None).files.source == "moved/text.source.gz"


def test_a_first_stage_that_failed_begins_again(home, run, monkeypatch):
    def fail(*_, **__) -> None:
        Path("failed/built").mkdir(exist_ok=True)
        raise MosesFeatureError("no room")

    monkeypatch.setattr(run_module, "build", fail)
    with chdir(home):
        for _ in range(2):
            done = run("system", "build", "en", "fr", "failed", "--minutes", 60, exit_code=1)
            assert "no room" in done.stderr


def test_a_verdict():
    assert PartVerdict(10.0, 10.5, 0.05).gains
    assert not PartVerdict(10.0, 10.5, 0.2).gains
    assert not PartVerdict(10.5, 10.0, 0.01).gains
    assert str(PartVerdict(10.0, 10.5, 0.2)) == "BLEU 10.00 to 10.50 (+0.50, p 0.200): left out"


def test_the_plan_of_a_budget():
    """9 runs: 9 iterations of the sentences to tune on, and the judged ones once."""
    tuning = 9 * (9 * 1000 * (0.01 + 0.005) + 1000 * 0.01) / 60
    expected = pytest.approx(100 - 1 - tuning - 10)
    assert plan(100, 60, 0.01, 1000, 1000, 3) == ChoosingPlan(
        1000, 1000, expected, pytest.approx(tuning / 3 + 10)
    )
    assert plan(60, 60, 0.01, 3000, 1000, 3).tuned_on == 1000
    wide = plan(60, 60, 0.03, 1000, 1000, 3)
    assert (wide.pops, wide.tuned_on) == (500, 1000)
    slow = plan(60, 60, 0.1, 1000, 1000, 3)
    assert slow.pops == 200
    seconds = 9 * ((9 * slow.tuned_on + 1000) * 0.02 + 9 * slow.tuned_on * 0.005)
    assert 0.99 * 0.6 * 3600 < seconds <= 0.6 * 3600
    assert plan(14, 60, 0.002, 200, 100, 3).network == pytest.approx(9.68, abs=0.01)
    assert plan(14, 700, 0.002, 200, 100, 3).network == 0.0
    with pytest.raises(UsageError, match=r"--minutes 1: this text needs [0-9]+ minutes at least"):
        plan(1, 60, 0.1, 1000, 1000, 3)
