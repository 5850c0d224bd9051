"""`augment-phrase-table` with the text of its table: all stages, interrupts, what does not fit."""

from __future__ import annotations

import json
import random
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import numpy as np
import pytest
from helpers.candidates import random_candidates
from helpers.files import read_gz
from helpers.tables import without_new_columns

from moses_feature.building.held_out import TextPart, cut_off
from moses_feature.building.settings import BuildSettings
from moses_feature.building.system import BuildData, build
from moses_feature.cli.common import progress
from moses_feature.metrics.bleu import BLEU, sentence_bleu
from moses_feature.moses.ini import MosesIni
from moses_feature.networks.files import is_model_directory
from moses_feature.phrases.model import load_model
from moses_feature.refining import run as refining
from moses_feature.refining import stages as stages_module
from moses_feature.refining.budget import RefiningPlan, plan
from moses_feature.refining.judge import Verdict, verdict
from moses_feature.refining.run import verdict_of
from moses_feature.refining.stages import Stages
from moses_feature.runtime.errors import UsageError

WORDS = ["the", "dog", "sees", "a", "cat", "big", "&apos;s", "house", "runs", "to", "é"]
SIZES = ["--sizes", "hidden=8 embedding=8 maxout=8 rank=8"]
NETWORK = [*SIZES, "--updates", "30"]
STAGES = 7
PARTS = "rest", "held-out", "judged"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A text whose words have two translations each, by the word before; and its system."""
    directory = tmp_path_factory.mktemp("text")
    choose = random.Random(2)
    lines = [[choose.choice(WORDS) for _ in range(choose.randint(3, 8))] for _ in range(150)]

    def translated(line: list[str]) -> list[str]:
        befores = ["", *line]
        return [
            word.upper() if before < word else f"{word}+"
            for before, word in zip(befores, line, strict=False)
        ]

    files = {
        "en": lines,
        "fr": [translated(line) for line in lines],
        "links": [[f"{n}-{n}" for n in range(len(line))] for line in lines],
        "documents": [[f"d{n // 5}"] for n in range(150)],
    }
    for name, content in files.items():
        (directory / name).write_text("".join(f"{' '.join(line)}\n" for line in content))
    with chdir(directory):
        build(BuildData("en", "fr", "links"), BuildSettings(order=3), Path("s"))
    return directory


@pytest.fixture
def text(built, tmp_path) -> None:
    """Copy it into the directory of a test."""
    copytree(built, tmp_path, dirs_exist_ok=True)


def story(tmp_path: Path) -> dict:
    return json.loads((tmp_path / "out.features.json").read_text())["refined"]


@pytest.mark.usefixtures("text")
def test_from_a_system_to_a_refined_column(run, tmp_path):
    words = "--system", "s", "--documents", "documents", "--ini-out", "new.ini"
    done = run("augment-phrase-table", "s/phrase-table.gz", "out.gz", *NETWORK, *words)
    assert without_new_columns(read_gz(tmp_path / "out.gz")) == read_gz(
        tmp_path / "s/phrase-table.gz"
    )
    of_text = story(tmp_path)
    assert [stage["stage"] for stage in of_text["stages"]][-1] == "refining it"
    assert len(of_text["stages"]) == STAGES == done.stderr.count("== ")
    training = load_model(tmp_path / "out.model").training
    assert training["objective"] == "expected BLEU"
    described = run("describe", "out.model").stdout
    assert "held-out expected BLEU" in described
    assert "loss" not in described
    assert training["refined_model"] == load_model(tmp_path / "out.work/model").digest
    roles = {of["role"]: of["path"] for of in training["inputs"]}
    assert roles["documents"].endswith("out.work/held-out.documents")
    table = MosesIni.read(tmp_path / "new.ini").table()
    assert table.arguments["path"].endswith("out.gz")
    assert table.score_count == 6
    held_out = set((tmp_path / "out.work/held-out.documents").read_text().split())
    rest = set((tmp_path / "out.work/rest.documents").read_text().split())
    assert held_out
    assert not held_out & rest
    again = run("augment-phrase-table", "s/phrase-table.gz", "out.gz", "--system", "s", exit_code=2)
    assert "out.work holds a run: --resume continues it" in again.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("text")
def test_the_column_is_judged(run, tmp_path, monkeypatch):
    """On sentences that nothing else has; a column that loses is not put into the ini."""
    monkeypatch.setattr(refining, "FEWEST_JUDGED", 5)
    words = "--system", "s", "--documents", "documents", "--ini-out"
    done = run("augment-phrase-table", "s/phrase-table.gz", "out.gz", *NETWORK, *words, "new.ini")
    found = verdict_of(story(tmp_path))
    assert str(found) in done.stdout
    work = tmp_path / "out.work"
    parts = [(work / f"{name}.documents").read_text().split() for name in PARTS]
    assert [len(part) for part in parts] == [110, 35, 5]
    assert len(set(parts[0])) + len(set(parts[1])) + len(set(parts[2])) == 30
    assert found.sentences == 5
    assert MosesIni.read(tmp_path / "new.ini").table().score_count == 6
    lost = Verdict(900, 31.0, 29.0, 0.001)
    monkeypatch.setattr(refining, "judge", lambda *_: lost)
    done = run("augment-phrase-table", "s/phrase-table.gz", "bad.gz", *NETWORK, *words, "bad.ini")
    assert "a loss beyond chance" in done.stdout
    assert "bad.ini is s/moses.ini without the column, which loses" in done.stderr
    assert MosesIni.read(tmp_path / "bad.ini").table().score_count == 4


@pytest.mark.parametrize(("helps", "meaning"), [(3.0, "a gain"), (0.0, "no more than chance")])
def test_the_verdict(helps, meaning):
    """Its translations and weights are those of a plain search over a grid, half by half."""
    candidates = random_candidates(sentences=400, features=4)
    quality = sentence_bleu(candidates.statistics)
    features = candidates.features.copy()
    features[:, 3] += helps * quality
    candidates = replace(candidates, features=features)
    without = np.array([1.0, 0.5, -0.2, 0.0])
    found = verdict(candidates, without, 3, 0.5)
    assert meaning in str(found)
    halves = [candidates.part(n, 2) for n in range(2)]
    after = []
    for tuned_on, judged in (halves, halves[::-1]):
        grid, along = np.linspace(0, 4, 4001), np.eye(4)[3]
        best = max(grid, key=lambda gamma: tuned_on.quality(without + gamma * along))
        chosen = judged.chosen(judged.features @ (without + best * along))
        after.append(judged.statistics[chosen].sum(axis=0))
    assert found.after == pytest.approx(100 * BLEU.quality(np.sum(after, axis=0)), abs=0.3)
    assert found.before == pytest.approx(100 * candidates.quality(without))
    assert found.sentences == 400


def test_what_a_budget_allows():
    """All of it without one; less with less; the least is named."""
    free = plan(None, 100, 0.02, 8_000, 1_000)
    assert (free.tuned_on, free.lists, free.judged) == (1_500, 8_000, 1_000)
    hour, short = (plan(minutes, 60, 0.02, 8_000, 1_000) for minutes in (60, 8))
    assert hour == RefiningPlan(1_500, 540.0, 8_000, 1_000)
    assert short == RefiningPlan(300, 72.0, 3_600, 600)
    slow = plan(10, 60, 0.5, 8_000, 1_000)  # three iterations at least, and no judging on 30
    assert slow == RefiningPlan(200, 3 * 0.52 * 200, 200, 0)
    with pytest.raises(UsageError, match="needs 4 minutes at least"):
        plan(3, 60, 0.02, 8_000, 1_000)
    # what it plans is within its shares, but for the fewest sentences
    each = 0.02 + 0.02
    assert 6 * each * short.tuned_on <= 0.15 * 480
    assert 0.02 * short.lists <= 0.15 * 480


def test_whole_documents_are_cut_off(tmp_path):
    part, end = (TextPart.within(tmp_path, name) for name in ("part", "end"))
    part.source.write_text("a\nb\nc\nd\ne\nf\n")
    part.target.write_text("A\nB\nC\nD\nE\nF\n")
    part.documents.write_text("1\n1\n2\n2\n2\n3\n")
    cut_off(part, end, 2, 2)  # the last has one line, the last two have four
    assert not end.source.exists()
    cut_off(part, end, 1, 3)
    assert part.source.read_text() == "a\nb\nc\nd\ne\n"
    assert (end.source.read_text(), end.target.read_text()) == ("f\n", "F\n")
    assert end.documents.read_text() == "3\n"
    cut_off(part, end, 1, 3)
    assert end.target.read_text() == "C\nD\nE\n"


def test_the_time_of_an_interrupted_stage_counts(tmp_path, monkeypatch):
    clock = iter([0.0, 50.0, 100.0, 107.0])
    monkeypatch.setattr(stages_module.time, "monotonic", lambda: next(clock))

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stages(tmp_path, {}, False, print).run("one", interrupted)
    again = Stages(tmp_path, {}, True, print)
    assert again.seconds() == 0
    again.run("one", lambda: {"found": 1})
    assert again.record["stages"] == [{"stage": "one", "seconds": 57.0, "found": 1}]


@pytest.mark.usefixtures("text")
def test_a_budget_that_is_spent_when_the_table_is_to_be_scored(run, tmp_path):
    words = "augment-phrase-table", "s/phrase-table.gz", "out.gz", *NETWORK, "--system", "s"
    run(*words, "--minutes", 10)
    written = (tmp_path / "out.gz").read_bytes()
    stages = tmp_path / "out.work/stages.json"
    record = json.loads(stages.read_text())
    record["stages"][-1]["seconds"] = 600.0
    stages.write_text(json.dumps(record))
    for name in ("out.gz", "out.features.json"):
        (tmp_path / name).unlink()
    done = run(*words, "--minutes", 10, "--resume")
    assert done.stderr.count(": done\n") == STAGES
    assert (tmp_path / "out.gz").read_bytes() == written
    record["stages"][-1].pop("seconds")
    stages.write_text(json.dumps(record))
    (tmp_path / "out.gz").unlink()
    assert "a good 'seconds'" in run(*words, "--resume", exit_code=1).stderr


@pytest.mark.slow
@pytest.mark.usefixtures("text")
def test_files_of_a_text_and_interrupts_after_each_stage(run, tmp_path, monkeypatch):
    words = ["augment-phrase-table", "s/phrase-table.gz", "out.gz", *NETWORK]
    run(*words, "--source", "en", "--target", "fr", "--alignment", "links")
    expected = read_gz(tmp_path / "out.gz")
    whole = Stages.run
    for stage in range(STAGES):
        asked = iter(range(99))

        def interrupted(self, what, work, asked=asked, last=stage):
            if next(asked) == last:
                raise KeyboardInterrupt
            return whole(self, what, work)

        words[2] = f"other{stage}.gz"
        given = *words, "--source", "en", "--target", "fr", "--alignment", "links"
        monkeypatch.setattr(Stages, "run", interrupted)
        assert "--resume continues" in run(*given, exit_code=130).stderr
        assert not (tmp_path / words[2]).exists()
        assert is_model_directory(tmp_path / f"other{stage}.work/model") == (stage == STAGES - 1)
        monkeypatch.setattr(Stages, "run", whole)
        done = run(*given, "--resume")
        assert done.stderr.count(": done\n") == stage
        assert read_gz(tmp_path / words[2]) == expected


@pytest.mark.usefixtures("text")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--system s --source en", 2, "--system knows its text"),
        ("--source en", 2, "--source and --target go together"),
        ("--alignment links", 2, "go with --source and --target"),
        ("--system s --reverse", 2, "--reverse: not for a network"),
        ("--system nowhere", 1, "nowhere/system.json: expected a system"),
        ("--system s --minutes 0.0001", 2, "this text needs 3 minutes at least on this machine"),
    ],
)
def test_what_does_not_fit(run, tmp_path, model_directory, words, code, message):
    (tmp_path / "m").symlink_to(model_directory)
    given = "augment-phrase-table", "s/phrase-table.gz", "out.gz", *words.split()
    assert message in run(*given, exit_code=code).stderr
    assert not (tmp_path / "out.gz").exists()


@pytest.mark.usefixtures("text")
def test_an_estimate(run, tmp_path):
    given = "augment-phrase-table", "s/phrase-table.gz", "out.gz", *NETWORK, "--plan"
    told = run(*given, "--system", "s").stdout
    assert "scoring" in told
    assert not (tmp_path / "out.gz").exists()
    assert not (tmp_path / "out.work").exists()


@pytest.mark.usefixtures("text")
def test_an_estimate_of_a_long_training(run, monkeypatch):
    """Training ends when its plan is printed, before the first evaluation."""
    monkeypatch.setattr(progress, "PLANNED_AFTER", 0.0)
    given = "augment-phrase-table", "s/phrase-table.gz", "out.gz", *SIZES, "--updates", "9999"
    done = run(*given, "--plan")
    assert "plan (an estimate)" in done.stderr
    assert "training ended: interrupted; best held-out loss" in done.stderr
    assert "scoring" in done.stdout


@pytest.mark.usefixtures("text")
def test_another_text_than_the_system_was_built_of(run, tmp_path):
    given = "augment-phrase-table", "s/phrase-table.gz", "out.gz", "--system", "s"
    rmtree("s")
    build(BuildData("en", "fr", "links"), BuildSettings(order=3), Path("s"))
    over = run(*given[:2], "s/lm.arpa.gz", *given[3:], exit_code=2)
    assert "lm.arpa.gz would be overwritten" in over.stderr
    english = (tmp_path / "en").read_text()
    (tmp_path / "en").write_text(english.replace("dog", "cat"))
    assert "expected the text that the system was built of" in run(*given, exit_code=1).stderr
    (tmp_path / "en").unlink()
    assert (
        "en: expected the text that s was built of, found no such"
        in run(*given, exit_code=1).stderr
    )
    (tmp_path / "en").write_text(english)
    other = "augment-phrase-table", "other", "new.gz", *NETWORK, "--source", "en", "--target", "fr"
    (tmp_path / "other").write_text("x ||| y ||| 1 1 1 1\n" * 9)
    done = run(*other, "--alignment", "links", exit_code=1)
    assert "found 0 of" in done.stderr
    assert "phrase pairs of theirs: are they tokenised as the table is?" in done.stderr
    for name in ("en", "fr", "links"):
        head = (tmp_path / name).read_text().splitlines()[:50]
        (tmp_path / f"{name}5").write_text("".join(f"{line}\n" for line in head))
    few = "--source", "en5", "--target", "fr5", "--alignment", "links5"
    assert "expected 100 sentence pairs at least" in run(*given[:3], *few, exit_code=1).stderr
    assert not (tmp_path / "out.work/stages.json").exists()
    (tmp_path / "s/system.json").write_text('{"files": {"source": 1}}')
    assert "s/system.json: expected a system" in run(*given, exit_code=1).stderr
