"""Tuning and comparing toy systems, killed and not; MIRA and the significance tests."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from click.testing import CliRunner
from helpers.candidates import planted, random_candidates
from helpers.toy import make_toy, random_neural_lm, write_corpus

from mert.comparison.results import TuningRun, notes_on_weights
from mert.comparison.significance import (
    CorpusScorer,
    compared,
    mean_quality,
    t_test,
)
from mert.optimisers.candidates import SearchSpace, normalised
from mert.optimisers.choice import optimizer
from mert.optimisers.moses_files import read_candidates
from mert.settings import OPTIMIZERS, DecoderSettings, MosesSettings, TuningSettings
from mert.tuning.corpus import Corpus
from mert.tuning.plan import TuningPlan, seconds_of
from mert.tuning.state import read_run
from moses_feature.cli.tuning.compare import mert_compare
from moses_feature.cli.tuning.decode import mert_decode
from moses_feature.cli.tuning.tune import mert_tune
from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.system import System
from moses_feature.metrics import metric_of
from moses_feature.metrics.bleu import BLEU, sentence_bleu
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.nbest_lists import first_translations
from moses_feature.networks.files import write_model_files
from moses_feature.rescoring.nbest import read_weights
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.runtime.files import locked_directory
from moses_feature.tables.features_json import write_features

PLAIN = ("UnknownWordPenalty", "WordPenalty", "PhrasePenalty", "Distortion")
OTHER_WEIGHTS = {"TM0": (0.02, 0.4), "LM0": (0.02,), "Distortion0": (0.5,)}


@pytest.fixture(scope="module")
def task(tmp_path_factory) -> Path:
    """Return a folder with a badly weighted system, a dev and a test set."""
    folder = tmp_path_factory.mktemp("task")
    toy = make_toy(folder / "toy", seed=5, longest=2)
    for seed in (11, 12):
        write_corpus(toy, folder, seed)
    toy.ini.with_weights(OTHER_WEIGHTS, ["badly weighted"]).write(folder / "bad.ini")
    return folder


def arguments(task: Path, work: Path, *more: object) -> list[str]:
    given = (
        task / "bad.ini",
        "--dev",
        task / "11.in",
        "--dev-reference",
        task / "11.ref",
        "--work-dir",
        work,
        "--nbest-size",
        30,
        "--pop-limit",
        50,
        *more,
    )
    return [str(argument) for argument in given]


def stdin(content: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(content))


def invoke(command, words, exit_code: int = 0):
    result = CliRunner().invoke(command, [str(word) for word in words])
    unexpected = result.exception and not isinstance(result.exception, SystemExit)
    assert not unexpected, result.exception
    assert result.exit_code == exit_code, result.output
    return result


def state_of(work: Path) -> dict:
    return json.loads((work / "state.json").read_text())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_tuning_finds_weights_that_translate_like_the_references(task, tmp_path, name):
    """The references are reachable: BLEU rises towards 1, and never falls in the result."""
    result = invoke(mert_tune, arguments(task, tmp_path / "w", "--algorithm", name))
    state = state_of(tmp_path / "w")
    bleu = [iteration["quality"] for iteration in state["iterations"]]
    assert max(bleu) > bleu[0] + 0.05
    best = state["iterations"][int(np.argmax(bleu))]
    tuned = MosesIni.read(tmp_path / "w" / "moses.ini")
    features = FeatureSet.of_ini(tuned)
    np.testing.assert_allclose(
        features.weights[features.tuneable], best["weights"], rtol=1e-4, atol=1e-6
    )
    assert f"BLEU {100 * max(bleu):.2f}" in result.output
    assert b"# weights tuned by moses-feature" in tuned.content().splitlines()[0]
    for line in MosesIni.read(task / "bad.ini").content().splitlines():
        if b"= " not in line:
            assert line in tuned.content().splitlines()


@pytest.mark.slow
def test_rescored_lists(task, tmp_path):
    """The search is tuned as it would be without the new feature, and keeps these weights."""
    files = random_neural_lm(np.random.default_rng(1))
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, files)
    invoke(mert_tune, arguments(task, tmp_path / "plain"))
    rescored = arguments(task, tmp_path / "w", "--rescore", f"CSLM9={tmp_path / 'lm'}")
    result = invoke(mert_tune, rescored)
    plain, search, final = (
        {name: line.values for name, line in MosesIni.read(path).weights.items()}
        for path in (
            tmp_path / "plain" / "moses.ini",
            tmp_path / "w" / "search" / "moses.ini",
            tmp_path / "w" / "moses.ini",
        )
    )
    assert plain == search == final
    weights = read_weights(tmp_path / "w" / "rescoring.weights")
    assert {*final, "CSLM9"} <= {*weights, "UnknownWordPenalty0"}
    state = read_run(tmp_path / "w")
    first, best = state.iterations[0], state.best
    assert first.quality == pytest.approx(read_run(tmp_path / "w" / "search").best.quality)
    content = json.loads((tmp_path / "w" / "system.json").read_text())
    assert state.kept == "known"
    assert (weights["CSLM9"], content["rescoring"]) == ((0,), [])
    assert "CSLM9 does not help: BLEU" in result.stderr
    assert result.stdout.startswith(
        f"{tmp_path / 'w' / 'moses.ini'}: BLEU {100 * best.quality:.2f}"
    )
    head = (tmp_path / "w" / "moses.ini").read_text()
    assert "# rescoring.weights, by which lists of this search are put in order, tuned by" in head
    again = invoke(mert_tune, rescored)
    assert again.stdout == result.stdout


def test_a_rescored_run_goes_on_with_its_search(task, tmp_path):
    """The order of the lists begins anew, since they are of another search then."""
    files = random_neural_lm(np.random.default_rng(1))
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, files)
    rescore = "--rescore", f"CSLM9={tmp_path / 'lm'}", "--max-iterations"
    for name, most in (("whole", 3), ("grown", 1), ("grown", 3)):
        invoke(mert_tune, arguments(task, tmp_path / name, *rescore, most))
    for name in ("moses.ini", "rescoring.weights", "search/moses.ini"):
        whole, grown = (weights_of(tmp_path / run / name) for run in ("whole", "grown"))
        assert whole == grown, name


def test_a_rescored_run_is_refused_before_its_search_is_tuned(task, tmp_path):
    files = random_neural_lm(np.random.default_rng(1))
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, files)
    once = "--max-iterations", 1
    invoke(mert_tune, arguments(task, tmp_path / "w", *once))
    rescored = arguments(task, tmp_path / "w", *once, "--rescore", f"CSLM9={tmp_path / 'lm'}")
    refused = invoke(mert_tune, rescored, exit_code=2).output
    assert re.search(r'expected rescoring \[\["CSLM9", "", \(content \w+…\)\]\], found no', refused)
    assert not (tmp_path / "w" / "search").exists()


@pytest.mark.slow
def test_systems_that_search_alike_are_tuned_once(task, tmp_path):
    """What differs in the order of the lists alone: as if each had been tuned by itself."""
    for seed, name in enumerate(("one", "two")):
        files = random_neural_lm(np.random.default_rng(seed))
        write_model_files(tmp_path / name, LM_ARCHITECTURE, files)
    systems = [f"{name}={task / 'bad.ini'}" for name in ("first", "plain", "second")]
    work = tmp_path / "w"
    arguments_of = [
        *systems,
        *compare_arguments(task, work, "--seeds", 2, "--pop-limit", 50)[2:],
        "--rescore",
        f"first:CSLM9={tmp_path / 'one'}",
        "--rescore",
        f"second:CSLM9={tmp_path / 'two'}",
    ]
    result = invoke(mert_compare, arguments_of)
    assert f"{work}/first/seed-1/search has tuned the same already" in result.stderr
    assert result.stderr.count("has tuned the same already") == 4
    searches = [work / "first/seed-2/search", work / "plain/seed-2", work / "second/seed-2/search"]
    weights = [MosesIni.read(search / "moses.ini").weights for search in searches]
    assert weights[0] == weights[1] == weights[2]
    alone = [*arguments(task, tmp_path / "alone", "--rescore", f"CSLM9={tmp_path / 'two'}")]
    invoke(mert_tune, [*alone, "--seed", 2, "--max-iterations", 3, "--nbest-size", 20])
    for name in ("search/moses.ini", "rescoring.weights"):
        mine, its = (work / "second/seed-2" / name, tmp_path / "alone" / name)
        assert weights_of(mine) == weights_of(its)
    assert not list(work.rglob(".searched*"))


def test_a_rescored_run_is_tuned_to_the_end_only_if_its_search_is(task, tmp_path):
    files = random_neural_lm(np.random.default_rng(1))
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, files)
    short = (
        "--seeds",
        1,
        "--pop-limit",
        50,
        "--max-iterations",
        2,
        "--nbest-size",
        100,
    )
    result = invoke(
        mert_compare,
        [
            f"plain={task / 'bad.ini'}",
            f"rescored={task / 'bad.ini'}",
            *compare_arguments(task, tmp_path / "w", *short)[2:],
            "--rescore",
            f"rescored:CSLM9={tmp_path / 'lm'}",
        ],
    )
    order = read_run(tmp_path / "w" / "rescored" / "seed-1")
    assert order.has_converged
    runs = [line.split("|")[2].strip() for line in result.stdout.splitlines()[2:4]]
    assert runs == 2 * ["1: 1 not tuned to the end"]


def test_nothing_to_tune(task, tmp_path):
    ini = (task / "bad.ini").read_text()
    lines = [
        f"{line} tuneable=false" if " name=" in line or line in PLAIN else line
        for line in ini.splitlines()
    ]
    (tmp_path / "bad.ini").write_text("\n".join(lines) + "\n")
    words = [tmp_path / "bad.ini", *arguments(task, tmp_path / "w")[1:]]
    result = invoke(mert_tune, words, exit_code=2)
    assert "expected a weight to tune, found none that is tuneable" in result.output


def test_force_tunes_where_another_translation_matches(task, tmp_path):
    """BLEU of the first translation is 0, and that of one that the search has looked at is not."""
    decoder = EmbeddedDecoder(System.of_ini(MosesIni.read(task / "bad.ini")), [b"a b c d".split()])
    first, *others = [h.words for h in decoder.translate(0, 500)]
    references = BLEU.references([first])
    matches = references.statistics(others)[:, 6]
    reference = next(
        words
        for words, fours in zip(others, matches, strict=True)
        if fours == 0 and len(words) > 3 and references.statistics([words])[0, 2] > 0
    )
    (tmp_path / "in").write_text("a b c d\n")
    (tmp_path / "ref").write_bytes(b" ".join(reference) + b"\n")
    words = [task / "bad.ini", "--dev", tmp_path / "in", "--dev-reference", tmp_path / "ref"]
    words += ["--max-iterations", 2, "--nbest-size", 500]
    result = invoke(mert_tune, [*words, "--work-dir", tmp_path / "no"], exit_code=1)
    assert "(--force tunes all the same)" in result.output
    invoke(mert_tune, [*words, "--work-dir", tmp_path / "w", "--force"])
    assert max(i["quality"] for i in state_of(tmp_path / "w")["iterations"]) > 0


def weights_of(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def test_what_is_left_in_the_work_directory(task, tmp_path):
    """N-best lists as Moses writes them; feature and score files that mert-optimize can read."""
    invoke(mert_tune, arguments(task, tmp_path / "w", "--max-iterations", 3))
    state = state_of(tmp_path / "w")
    lists = sorted(path.name for path in (tmp_path / "w").glob("run*"))
    assert lists == ["run1.best30.out.gz", "run2.best30.out.gz", "run3.best30.out.gz"]
    candidates = read_candidates(tmp_path / "w/features.dat.gz", tmp_path / "w/scores.dat.gz")
    assert len(candidates.features) == state["iterations"][-1]["hypotheses"]
    assert candidates.names == FeatureSet.of_ini(MosesIni.read(task / "bad.ini")).names
    weights = np.array(state["iterations"][-1]["weights"])
    assert candidates.quality(weights) == pytest.approx(
        state["iterations"][-1]["quality"], abs=0.01
    )
    new = [iteration["new"] for iteration in state["iterations"]]
    assert sum(new) == len(candidates.features)
    assert new[0] > 0


def test_the_same_seed_gives_the_same_weights(task, tmp_path):
    inis = []
    for name, seed, jobs in (("a", 1, 1), ("b", 1, 2), ("c", 2, 1)):
        more = ("--seed", seed, "--jobs", jobs, "--max-iterations", 3)
        invoke(mert_tune, arguments(task, tmp_path / name, *more))
        content = (tmp_path / name / "moses.ini").read_bytes()
        inis.append([line for line in content.splitlines() if not line.startswith(b"#")])
    assert inis[0] == inis[1] != inis[2]


def run_until(task: Path, work: Path, lists: int, *more: object) -> None:
    """Tune in a process of its own and kill it when it has written so many n-best lists."""
    program = (
        "import sys; from moses_feature.cli.tuning.tune import mert_tune; mert_tune(sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments(task, work, *more)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 600
    while len(list(work.glob("run*.gz"))) < lists and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_weights(task, tmp_path):
    """Killed with -9 twice, in the middle of what follows decoding."""
    more = ("--max-iterations", 6)
    invoke(mert_tune, arguments(task, tmp_path / "whole", *more))
    for lists in (1, 2):
        run_until(task, tmp_path / "killed", lists, *more)
    invoke(mert_tune, arguments(task, tmp_path / "killed", *more))
    whole, killed = (state_of(tmp_path / name) for name in ("whole", "killed"))
    for one, other in zip(whole["iterations"], killed["iterations"], strict=True):
        assert one["weights"] == other["weights"]
        assert one["quality"] == other["quality"]
    again = invoke(mert_tune, arguments(task, tmp_path / "killed", *more))
    assert "tuning ended" in again.output
    assert state_of(tmp_path / "killed") == killed


def test_a_finished_run_goes_on_with_more_iterations(task, tmp_path):
    """To the bytes of a run that had them from the start; not with fewer."""
    invoke(mert_tune, arguments(task, tmp_path / "whole", "--max-iterations", 4))
    (tmp_path / "grown").mkdir()
    invoke(mert_tune, arguments(task, tmp_path / "grown", "--max-iterations", 2))
    (tmp_path / "grown" / "test.nbest.gz").touch()  # as mert-compare leaves it
    (tmp_path / "grown" / "notes").write_text("mine")
    result = invoke(mert_tune, arguments(task, tmp_path / "grown", "--max-iterations", 4))
    assert "going on after iteration 2" in result.output
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    (tmp_path / "grown" / "notes").unlink()  # what others put there stays
    assert {path.name for path in (tmp_path / "grown").iterdir()} == names
    assert "run4.best30.out.gz" in names
    for name in names - {"state.json", "moses.ini"}:
        found = [(tmp_path / run / name).read_bytes() for run in ("whole", "grown")]
        assert found[0] == found[1], name
    assert weights_of(tmp_path / "whole/moses.ini") == weights_of(tmp_path / "grown/moses.ini")
    result = invoke(mert_tune, arguments(task, tmp_path / "grown", "--max-iterations", 3), 2)
    assert "a run of 4 iterations at most: expected as many or more, found 3" in result.output


def test_a_directory_of_something_else_is_refused(task, tmp_path):
    invoke(mert_tune, arguments(task, tmp_path / "w", "--max-iterations", 1))
    for more, message in (
        (
            ("--seed", 5, "--max-iterations", 1),
            "with other settings: expected seed 5, found seed 1;",
        ),
        (
            ("--pop-limit", 5, "--max-iterations", 1),
            "with other decoder: expected pops 5, found pops 50",
        ),
    ):
        result = invoke(mert_tune, arguments(task, tmp_path / "w", *more), exit_code=2)
        assert message in result.output
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "notes").write_text("mine")
    result = invoke(mert_tune, arguments(task, tmp_path / "x"), exit_code=2)
    assert "expected a new or empty directory" in result.output
    (tmp_path / "w" / "state.json").write_text("{")
    result = invoke(mert_tune, arguments(task, tmp_path / "w"), exit_code=1)
    assert "expected the state of a tuning run, found a damaged file" in result.output


def test_two_runs_in_one_directory(task, tmp_path):
    with locked_directory(tmp_path / "w", "tuning"):
        result = invoke(mert_tune, arguments(task, tmp_path / "w"), exit_code=1)
    assert "another run is tuning there" in result.output
    assert not (tmp_path / "w").exists()


def test_errors_come_before_the_tuning(task, tmp_path):
    (tmp_path / "short").write_text("A B\n")
    (tmp_path / "wrong").write_text("nothing of this occurs\n" * 25)
    (tmp_path / "empty").write_text("")
    words = arguments(task, tmp_path / "w")
    reference = words.index("--dev-reference") + 1
    for name, message in (
        ("short", "expected 25 lines as in"),
        ("wrong", "no two words in a row of 25 translations are in"),
        ("empty", "expected 25 lines as in"),
        ("none", "No such file"),
    ):
        words[reference] = str(tmp_path / name)
        result = invoke(mert_tune, words, exit_code=1)
        assert message in result.output
    assert not (tmp_path / "w").exists()
    with pytest.raises(MosesFeatureError, match="expected sentences, found no word"):
        Corpus.read(tmp_path / "empty", [tmp_path / "empty"])
    result = invoke(
        mert_tune,
        arguments(task, tmp_path / "w", "--decoder", "moses", "--moses", tmp_path / "none"),
        exit_code=2,
    )
    assert "no Moses program moses: looked for" in result.output


def test_an_empty_line_and_a_constant_feature(tmp_path):
    """An empty sentence with an empty reference; a table column that is 1 everywhere."""
    toy = make_toy(tmp_path / "toy", seed=5, longest=2)
    source, target = write_corpus(toy, tmp_path, 3)
    source.write_bytes(source.read_bytes() + b"\n")
    target.write_bytes(target.read_bytes() + b"\n")
    table = toy.folder / "table0"
    lines = [line.split(" ||| ") for line in table.read_text().splitlines()]
    table.write_text(
        "".join(f"{s} ||| {t} ||| {v.split()[0]} 1 ||| {r}\n" for s, t, v, *r in lines)
    )
    words = [
        toy.folder / "moses.ini",
        "--dev",
        source,
        "--dev-reference",
        target,
        "--work-dir",
        tmp_path / "w",
        "--max-iterations",
        2,
    ]
    result = invoke(mert_tune, words)
    assert "TM0_1 is the same for all translations of every sentence" in result.output
    state = state_of(tmp_path / "w")
    assert state["constants"] == ["TM0_1"]
    assert sum(of == 0 for of in state["spread"]) == 1
    nbest = gzip.decompress((tmp_path / "w/run1.best100.out.gz").read_bytes())
    assert b"\n25 |||  ||| LR0= 0 0" in nbest


def test_mert_decode(task, tmp_path):
    sentences = (task / "11.in").read_bytes()
    words = [str(task / "toy" / "moses.ini"), "--lists", str(tmp_path / "n"), "--nbest-size", "3"]
    result = CliRunner().invoke(mert_decode, words, input=stdin(sentences))
    assert result.exit_code == 0, result.output
    assert result.stdout == (task / "11.ref").read_text()
    assert "25 sentences in" in result.stderr
    first = (tmp_path / "n").read_text().splitlines()[0]
    assert first.startswith("0 ||| ")
    forced = CliRunner().invoke(
        mert_decode, [words[0], "--constraint", str(task / "11.ref")], input=stdin(sentences)
    )
    assert forced.exit_code == 0, forced.output
    assert forced.stdout.split("\n")[0].split(" ||| ")[-1] == first.split(" ||| ")[-1]
    (tmp_path / "r").write_text("unreachable\n" * 25)
    forced = CliRunner().invoke(
        mert_decode, [words[0], "--constraint", str(tmp_path / "r")], input=stdin(sentences)
    )
    assert forced.exit_code == 1
    assert "25 of 25 translations cannot be derived" in forced.stderr


def test_lists_have_the_same_bytes_whatever_the_number_of_processes(task, tmp_path):
    sentences = (task / "11.in").read_bytes()
    found = []
    for jobs in ("1", "2"):
        path = tmp_path / f"lists-{jobs}.gz"
        words = [str(task / "toy" / "moses.ini"), "--lists", str(path), "--jobs", jobs]
        assert CliRunner().invoke(mert_decode, words, input=stdin(sentences)).exit_code == 0
        found.append(path.read_bytes())
    assert found[0] == found[1]
    assert gzip.decompress(found[0]).startswith(b"0 ||| ")


def compare_arguments(task: Path, work: Path, *more: object) -> list[object]:
    return [
        f"baseline={task / 'bad.ini'}",
        f"other={task / 'other.ini'}",
        "--dev",
        task / "11.in",
        "--dev-reference",
        task / "11.ref",
        "--test",
        task / "12.in",
        "--test-reference",
        task / "12.ref",
        "--work-dir",
        work,
        "--max-iterations",
        3,
        "--nbest-size",
        20,
        *more,
    ]


@pytest.fixture
def other_system(task) -> None:
    """A system whose table has a third score, of random noise."""
    generator = np.random.default_rng(1)
    grown = []
    for line in (task / "toy" / "table0").read_text().splitlines():
        source, target, scores, *others = line.split(" ||| ")
        scores = f"{scores} {generator.uniform(0.1, 1):.3f}"
        grown.append(" ||| ".join([source, target, scores, *others]))
    (task / "grown").write_text("\n".join(grown) + "\n")
    ini = MosesIni.read(task / "bad.ini")
    ini.with_scores(ini.table("TM0"), task / "grown", [0.1]).write(task / "other.ini")


@pytest.mark.usefixtures("other_system")
def test_mert_compare(task, tmp_path):
    result = invoke(mert_compare, compare_arguments(task, tmp_path / "w"))
    table = [line for line in result.stdout.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in table[0].split("|")[1:5]] == [
        "system",
        "runs",
        "dev BLEU",
        "test BLEU",
    ]
    assert len(table) == 4
    assert "3 runs a system" in result.stdout
    assert "tok:none|smooth:none" in result.stdout
    assert "other: TM0_2: weights " in result.stdout
    content = json.loads((tmp_path / "w" / "comparison.json").read_text())
    baseline, other = content["systems"]
    assert [run["seed"] for run in baseline["runs"]] == [1, 2, 3]
    assert other["difference"] == pytest.approx(other["test_mean"] - baseline["test_mean"])
    assert 0 < other["p"] <= 1
    page = (tmp_path / "w" / "comparison.html").read_text()
    assert "optimising" in page
    assert "plotly" in page
    assert "run 2" in page
    assert "<td>max_iterations</td><td>3</td>" in page
    average = MosesIni.read(tmp_path / "w" / "other" / "average.ini").weights["TM0"].values
    runs = [[run["weights"][f"TM0_{n}"] for n in range(3)] for run in other["runs"]]
    np.testing.assert_allclose(average, np.mean(runs, axis=0), rtol=1e-4, atol=1e-6)
    translations = (tmp_path / "w/other/seed-1/test.out").read_text().splitlines()
    assert len(translations) == 25
    homes = [tmp_path / f"w/baseline/seed-{seed}" for seed in (1, 2, 3)]
    first, *others = [(home / "run1.best20.out.gz").read_bytes() for home in homes]
    assert others == [first] * 2  # gzip with the time of writing in it: a copy
    spent = other["seconds"]
    assert spent["loading"] > 0
    assert spent["testing"] > 0
    again = invoke(mert_compare, compare_arguments(task, tmp_path / "w"))
    assert again.stdout == result.stdout
    more = invoke(mert_compare, compare_arguments(task, tmp_path / "w", "--seeds", 1))
    assert "(*) The p-value covers the choice of sentences" in more.stdout


@pytest.mark.usefixtures("other_system")
def test_a_table_of_another_text_is_mentioned(task, tmp_path):
    table = str(shutil.copy(task / "grown", tmp_path / "kept"))
    write_features(table, {"new": 2}, {"texts": {"news": "0" * 64}})
    ini = (task / "other.ini").read_text().replace(f"{task / 'grown'}", table)
    (tmp_path / "kept.ini").write_text(ini)
    words = compare_arguments(task, tmp_path / "w", "--seeds", 1)
    said = invoke(mert_compare, [words[0], f"kept={tmp_path / 'kept.ini'}", *words[2:]]).stderr
    for text in ("11.in", "12.in"):
        assert f"it has the phrases of news alone, and {task / text} is none of them" in said


@pytest.mark.usefixtures("other_system")
def test_plans(task, tmp_path):
    """They are printed alone, and nothing is written."""
    one = invoke(mert_tune, arguments(task, tmp_path / "w", "--plan", "--max-iterations", 7)).stdout
    assert re.search(r"an iteration decodes for \d+ s; 1 run of 7 iterations: \d+ s at most", one)
    both = invoke(mert_compare, compare_arguments(task, tmp_path / "w", "--plan")).stdout
    assert re.search(r"for \d+ s or \d+ s, a test set for \d+ s or \d+ s; 6 runs of 3 iter", both)
    assert not (tmp_path / "w").exists()
    assert TuningPlan([10.0, 20.0], 5, 3, [2.0, 4.0]).total == 3 * (5 * 30 + 6)
    corpus = Corpus.read(task / "11.in", [task / "11.ref"])
    assert seconds_of(corpus, 0.1, DecoderSettings(jobs=5)) == pytest.approx(0.1 * 25 / 5)
    by_moses = DecoderSettings("moses", moses=MosesSettings(threads=2))
    assert seconds_of(corpus, 0.1, by_moses) == pytest.approx(0.1 * 25 / 2)


@pytest.mark.usefixtures("other_system")
def test_a_new_feature_never_loses_on_dev(task, tmp_path):
    """The baseline's weights come first, and are kept if nothing better is found."""
    short = "--max-iterations", 1, "--seeds", 2
    result = invoke(mert_compare, compare_arguments(task, tmp_path / "w", *short))
    names = FeatureSet.of_ini(MosesIni.read(task / "other.ini")).names
    for seed in (1, 2):
        tuned, other = (tmp_path / "w" / name / f"seed-{seed}" for name in ("baseline", "other"))
        before, state = read_run(tuned).best, read_run(other)
        first = dict(zip(names, state.iterations[0].weights, strict=True))
        assert first.pop("TM0_2") == 0
        np.testing.assert_allclose([*first.values()], before.weights, rtol=1e-5)
        assert state.iterations[0].quality == pytest.approx(before.quality, abs=1e-3)
        assert state.best.quality >= before.quality - 1e-3
        assert len(state.iterations) == 2
        second = dict(zip(names, state.iterations[1].weights, strict=True))
        own = FeatureSet.of_ini(MosesIni.read(task / "other.ini"))
        of_ini = dict(zip(names, own.weights[own.tuneable], strict=True))
        new = of_ini.pop("TM0_2") / np.abs([*of_ini.values()]).sum()
        assert second.pop("TM0_2") == pytest.approx(new * np.abs([*first.values()]).sum())
        np.testing.assert_allclose([*second.values()], before.weights, rtol=1e-5)
    one = arguments(task, tmp_path / "one", "--start", tuned / "moses.ini", *short[:2])
    one = [str(task / "other.ini"), *one[1:]]
    invoke(mert_tune, one)
    state = read_run(tmp_path / "one")
    assert state.began_known
    assert state.iterations[0].weights == read_run(other).iterations[0].weights
    refused = invoke(mert_tune, [*one[:-4], "--max-iterations", "1"], exit_code=2)
    assert "holds a run with other before" in refused.output
    ini = MosesIni.read(task / "bad.ini")
    ini.with_feature("Distortion name=D9", "D9", [0.1]).write(tmp_path / "more.ini")
    one[-3] = str(tmp_path / "more.ini")
    one[one.index("--work-dir") + 1] = str(tmp_path / "new")
    assert "found those of others: D9" in invoke(mert_tune, one, exit_code=2).output
    assert "kept" in result.stdout or state.best is not state.iterations[0]
    one[one.index("--start") + 1] = str(tmp_path / "empty.ini")
    (tmp_path / "empty.ini").write_text("[feature]\n")
    assert "expected some that are not 0" in invoke(mert_tune, one, exit_code=2).output


@pytest.mark.usefixtures("other_system")
def test_a_run_that_began_with_other_weights_begins_anew(task, tmp_path):
    """In a comparison, if the baseline has other weights now; one of version 0.2 continues."""
    words = compare_arguments(task, tmp_path / "w", "--max-iterations", 2, "--seeds", 2)
    whole = invoke(mert_compare, words).stdout
    first, second = (tmp_path / "w" / "other" / f"seed-{seed}" / "state.json" for seed in (1, 2))
    content = json.loads(first.read_text())
    content["identity"]["before"][0] += 0.1
    first.write_text(json.dumps(content))
    content = json.loads(second.read_text())
    del content["identity"]["before"], content["began_known"]
    second.write_text(json.dumps(content))
    again = invoke(mert_compare, words)
    assert again.stderr.count("begins anew: the weights that it began with are others now") == 1
    assert json.loads(second.read_text()) == content
    scores, expected = (
        [line.split("|")[3:6] for line in said.splitlines() if line.startswith("| ")]
        for said in (again.stdout, whole)
    )
    assert [[cell.strip() for cell in row] for row in scores[1:]] == [
        [cell.strip() for cell in row] for row in expected[1:]
    ]


@pytest.mark.usefixtures("other_system")
@pytest.mark.parametrize("name", ["wer", "ter", "chrf", "accuracy"])
def test_other_metrics(task, tmp_path, name):
    """Tuned, compared and shown; the numbers are those of the translations that were written."""
    of = metric_of(name)
    result = invoke(
        mert_compare, compare_arguments(task, tmp_path / "w", "--metric", name, "--seeds", 1)
    )
    assert f"dev {of.label} " in result.stdout
    assert f"{of.label}: nrefs:1|" in result.stdout
    content = json.loads((tmp_path / "w" / "comparison.json").read_text())
    assert content["metric"] == name
    references = split_lines(task / "12.ref")
    for system in content["systems"]:
        written = split_lines(tmp_path / "w" / system["name"] / "seed-1" / "test.out")
        rows = [
            of.references([reference]).statistics([words])[0]
            for words, reference in zip(written, references, strict=True)
        ]
        shown = of.shown(of.quality(np.sum(rows, axis=0)))
        assert system["runs"][0]["test_score"] == pytest.approx(shown)
    scores = gzip.decompress((tmp_path / "w/other/seed-1/scores.dat.gz").read_bytes())
    assert scores.split(b"\n")[0].endswith(f" {of.width} {of.label}".encode())
    assert of.label in (tmp_path / "w" / "comparison.html").read_text()
    state = state_of(tmp_path / "w" / "other" / "seed-1")
    best = max(iteration["quality"] for iteration in state["iterations"])
    assert best >= state["iterations"][0]["quality"]
    assert state["identity"]["settings"]["metric"] == name


def split_lines(path: Path) -> list[list[bytes]]:
    return [line.split() for line in path.read_bytes().splitlines()]


@pytest.mark.slow
@pytest.mark.usefixtures("other_system")
def test_finished_outputs_are_rows(task, tmp_path):
    """The baseline's own translations as outputs: the same BLEU, no difference."""
    tuned = invoke(mert_compare, compare_arguments(task, tmp_path / "w"))
    copies = [tmp_path / f"copy-{seed}" for seed in (1, 2, 3)]
    for seed, copy in enumerate(copies, 1):
        shutil.copy(tmp_path / f"w/baseline/seed-{seed}/test.out", copy)
    named = [argument for copy in copies for argument in ("--translations", f"copy={copy}")]
    one = "--translations", f"one={task / '12.ref'}"
    result = invoke(mert_compare, compare_arguments(task, tmp_path / "w", *named, *one))
    rows = [[c.strip() for c in line.split("|")] for line in result.stdout.splitlines()[:6]]
    before = [[c.strip() for c in line.split("|")] for line in tuned.stdout.splitlines()[:4]]
    assert [row[:3] for row in rows[2:4]] == [row[:3] for row in before[2:4]]
    assert (rows[4][1], *rows[4][3:5]) == ("copy", "", rows[2][4])
    assert rows[4][5:7] == ["+0.00", "1.0000"]
    assert rows[5][1:5] == ["one", "1", "", "100.00"]
    assert "runs: baseline 3, other 3, copy 3, one 1; mean" in result.stdout
    alone = invoke(
        mert_compare,
        [
            *(*named, *one, "--test", task / "12.in", "--test-reference", task / "12.ref"),
            *("--work-dir", tmp_path / "outputs"),
        ],
    )
    assert alone.stdout.splitlines()[2].split("|")[3].strip() == rows[2][4]
    assert "dev BLEU" not in alone.stdout
    content = json.loads((tmp_path / "outputs" / "comparison.json").read_text())
    assert content["systems"][0]["dev_mean"] is None
    assert "NaN" not in (tmp_path / "outputs" / "comparison.json").read_text()
    page = (tmp_path / "outputs" / "comparison.html").read_text()
    assert "What one changes" in page
    assert "Learning curves" not in page


def test_finished_outputs_alone(tmp_path):
    text = ["a b c d e", "b c d e f", "c d e f g"]
    for name, lines in (("in", text), ("ref", text), ("good", text), ("bad", text[::-1])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    named = [f"--translations={name}={tmp_path / name}" for name in ("good", "bad")]
    texts = "--test", tmp_path / "in", "--test-reference", tmp_path / "ref"
    result = invoke(mert_compare, [*named, *texts, "--work-dir", tmp_path / "w"])
    rows = [[c.strip() for c in line.split("|")[1:4]] for line in result.stdout.splitlines()[2:4]]
    assert rows[0] == ["good", "1", "100.00"]
    assert rows[1][:2] == ["bad", "1"]
    assert "not tuned to the" not in result.output
    assert "start weights" not in result.output
    assert "-0.0" not in (tmp_path / "w" / "comparison.html").read_text()  # minutes of tuning


@pytest.mark.parametrize(
    ("options", "exit_code", "said"),
    [
        (["--translations", "a=short"], 1, "short: expected 25 lines as in"),
        (["--translations", "a=empty"], 1, "empty: expected translations, found no word"),
        (["--translations", "a=missing"], 1, "missing: No such file"),
        (["--translations", "a=listed"], 1, "listed at line 1: expected a translation alone"),
        (["--translations", "short"], 2, "expected NAME=FILE"),
        (["--translations", "../a=short"], 2, "system name '../a'"),
        (["--translations", "a=short", "--dev", "short"], 2, "are for systems to tune"),
        ([], 2, "nothing to compare: expected NAME=INI"),
        (["a=moses.ini"], 2, "systems are tuned: expected --dev"),
    ],
)
def test_outputs_that_cannot_be_compared(task, tmp_path, monkeypatch, options, exit_code, said):
    monkeypatch.chdir(tmp_path)
    Path("short").write_text("a\n")
    Path("empty").write_text("\n" * 25)
    Path("listed").write_text("A ||| F= 0 ||| 0\n" * 25)
    texts = ["--test", task / "12.in", "--test-reference", task / "12.ref"]
    refused = invoke(mert_compare, [*options, *texts, "--work-dir", "w"], exit_code=exit_code)
    assert said in refused.stderr
    assert not Path("w").exists()


def test_first_translations(tmp_path):
    """The first line of each sentence; the others are not read."""
    lists = tmp_path / "lists"
    lists.write_text("1 ||| a b  ||| T0= 1 ||| 1\n1 ||| damaged\n3 ||| c ||| T0= 1 ||| 1\n")
    assert first_translations(lists, 4) == [(), (b"a", b"b"), (), (b"c",)]
    with pytest.raises(FormatError, match="line 3: expected a sentence from 0 to 2, found 3"):
        first_translations(lists, 3)
    lists.write_text("-1 ||| a ||| T0= 1 ||| 1\n")
    with pytest.raises(FormatError, match="line 1: expected sentence"):
        first_translations(lists, 3)
    lists.write_text("0 ||| a ||| T0= 1 ||| 1\n1 ||| damaged\n")
    with pytest.raises(FormatError, match="line 2: expected sentence"):
        first_translations(lists, 3)


def test_scores_are_those_of_sacrebleu(tmp_path):
    """A token with U+00A0 is one token for Moses, and two for sacreBLEU."""
    words = ["a\u00a0b", "c", "d", "e", "f"]
    (tmp_path / "source").write_text("x\n")
    (tmp_path / "reference").write_text(" ".join(words) + "\n")
    corpus = Corpus.read(tmp_path / "source", [tmp_path / "reference"])
    line = f"0 ||| {' '.join(words[:4])} g ||| T0= 1 ||| 1\n"
    (tmp_path / "lists").write_text(line)
    bleu, statistics = CorpusScorer(corpus, BLEU).score(tmp_path / "lists")
    assert statistics.tolist() == [[5, 6, 4, 5, 3, 4, 2, 3, 6]]
    plain = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    found = " ".join([*words[:4], "g"])
    assert bleu == pytest.approx(plain.corpus_score([found], [[" ".join(words)]]).score)
    assert CorpusScorer(corpus, BLEU).signature() == str(plain.get_signature())


def test_a_bleu_of_next_to_nothing_is_refused(task, tmp_path):
    """A reference of which four words in a row are right, in one line of 25."""
    decoder = EmbeddedDecoder(
        System.of_ini(MosesIni.read(task / "bad.ini")),
        list(Corpus.read(task / "11.in", []).sentences),
    )
    lines = len((task / "11.in").read_text().splitlines())
    longest = max((decoder.translate(n)[0].words for n in range(lines)), key=len)
    place = [decoder.translate(n)[0].words for n in range(lines)].index(longest)
    texts = ["q r s t u v w x"] * lines
    texts[place] = b" ".join(longest[:4]).decode() + " q r s t"
    (tmp_path / "reference").write_text("\n".join(texts) + "\n")
    changed = arguments(task, tmp_path / "w", "--max-iterations", 1)
    changed[4] = str(tmp_path / "reference")
    refused = invoke(mert_tune, changed, 1)
    assert "BLEU of the first translations is" in refused.output
    assert "(--force tunes all the same)" in refused.output
    assert not (tmp_path / "w").exists()  # another reference may be tried there
    invoke(mert_tune, [*changed, "--force"])
    assert (tmp_path / "w" / "moses.ini").exists()


@pytest.mark.usefixtures("other_system")
def test_equal_runs_count_once_and_a_comparison_goes_on(task, tmp_path):
    """One iteration keeps the start weights, so that all runs are copies of each other."""
    few = compare_arguments(task, tmp_path / "grown", "--max-iterations", 1)
    result = invoke(mert_compare, few)
    said = "3: 1 different, 3 not tuned to the end, 3 start weights kept"
    assert result.stdout.count(said) == 2
    assert "(*) The p-value covers the choice of sentences, and not the luck" in result.stdout
    assert "Runs that are equal count once" in result.stdout
    assert "continues them" in result.stdout
    page = (tmp_path / "grown" / "comparison.html").read_text()
    assert page.count(f"<td>{said}</td>") == 2
    results = [
        invoke(mert_compare, compare_arguments(task, tmp_path / name))
        for name in ("grown", "whole")
    ]
    assert results[0].stdout == results[1].stdout
    for path in (tmp_path / "whole").glob("*/seed-*/test.out"):
        grown = tmp_path / "grown" / path.relative_to(tmp_path / "whole")
        assert grown.read_bytes() == path.read_bytes()


def test_notes_on_the_weights_of_new_features():
    def run(
        known: float, new: float, constants: tuple[str, ...] = (), effect: float = 0.1
    ) -> TuningRun:
        weights, effects = {"LM_0": known, "N_0": new}, {"LM_0": 1 - effect, "N_0": effect}
        given = 1, 0.0, 0.0, 1, "", True, False, weights, constants, np.zeros((1, 9)), Path("lists")
        return TuningRun(*given, effects=effects)

    for runs, note in (
        ((run(0.9, 0.1), run(0.8, 0.2)), "N: weights 0.1000, 0.2000"),
        ((run(0.9, 0.1, (), 0.001), run(0.8, 0.2, (), 0.004)), "near zero for its values"),
        ((run(0.999, 0.001), run(0.998, 0.002)), "N: weights 0.0010, 0.0020"),
        ((run(0.9, 0.1), run(0.8, -0.2)), "of both signs"),
        ((run(0.9, 0.1, ("N_0",)), run(0.8, 0.2, ("N_0",))), "its weight does nothing"),
    ):
        (text,) = notes_on_weights(runs, {"LM_0"})
        assert note in text


@pytest.mark.usefixtures("other_system")
def test_comparisons_that_make_no_sense(task, tmp_path):
    words = compare_arguments(task, tmp_path / "w")
    same = [words[0], f"baseline={task / 'other.ini'}", *words[2:]]
    assert "system names: expected different ones" in invoke(mert_compare, same, 2).output
    bad = ["bad", *words[1:]]
    assert "expected NAME=INI" in invoke(mert_compare, bad, 2).output
    slash = [f"a/b={task / 'bad.ini'}", *words[1:]]
    assert "expected letters, digits" in invoke(mert_compare, slash, 2).output
    (tmp_path / "wrong").write_text("nothing of this occurs\n" * 25)
    words[words.index("--test-reference") + 1] = tmp_path / "wrong"
    assert "no two words in a row" in invoke(mert_compare, words, 1).output
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "file").write_text("")
    refused = invoke(mert_compare, compare_arguments(task, tmp_path / "x"), 2)
    assert "expected a new or empty directory" in refused.output


@pytest.mark.parametrize("name", ["mert", "mira"])
def test_planted_weights_are_recovered_by(name):
    weights = normalised(np.array([0.5, -0.3, 0.8, 0.1, 0.4]))
    candidates = planted(weights)
    space = SearchSpace.around(np.ones(5))
    found = optimizer(name)(candidates, space, 1)
    assert found.quality > (0.999 if name == "mert" else 0.9)
    assert found.quality >= found.start_quality
    again = optimizer(name)(candidates, space, 1)
    assert np.array_equal(found.weights, again.weights)


def test_mira_leaves_its_start():
    """Weights that are the best on the lists at hand may be bad for all others."""
    candidates = random_candidates()
    start = optimizer("mert")(candidates, SearchSpace.around(np.ones(5)), 1).weights
    found = optimizer("mira")(candidates, SearchSpace.around(start), 1)
    assert found.start_quality > found.quality
    assert not np.allclose(normalised(found.weights), start)


def test_an_unknown_algorithm():
    with pytest.raises(UsageError, match="'sgd': expected one of mert, mira"):
        TuningSettings(algorithm="sgd")


def test_sentence_bleu():
    """Against the formula, written out for one hypothesis."""
    statistics = np.array([[5, 6, 2, 5, 1, 4, 0, 3, 7]])
    expected = (5 / 6 * 3 / 6 * 2 / 5 * 1 / 4) ** 0.25 * np.exp(1 - 7 / 6)
    assert sentence_bleu(statistics)[0] == pytest.approx(expected)


def random_runs(generator, sentences: int, runs: int, quality: float) -> np.ndarray:
    """Return statistics (runs, sentences, 9) of translations that match with a probability."""
    statistics = np.zeros((runs, sentences, 9), dtype=np.int64)
    for n in range(4):
        statistics[:, :, 2 * n + 1] = 12 - n
        statistics[:, :, 2 * n] = generator.binomial(12 - n, quality ** (n + 1), (runs, sentences))
    statistics[:, :, 8] = 12
    return statistics


def test_p_values():
    """Small for a clear difference; the same again; of one run each, of the sentences alone."""
    generator = np.random.default_rng(7)
    good, bad = (random_runs(generator, 150, 3, quality) for quality in (0.75, 0.65))
    found = compared(good, bad)
    assert found.quality == mean_quality(good) - mean_quality(bad) > 0
    assert found.p < 0.01
    assert found.covers_tuning
    assert found == compared(good, bad)
    assert compared(good, good).p == 1
    assert not compared(good[:1], bad[:1]).covers_tuning
    assert compared(good[:1], bad).covers_tuning
    assert compared(bad, good).p == pytest.approx(found.p, rel=1e-6)


@pytest.mark.parametrize(("runs", "luck"), [((3, 3), 0.0), ((2, 3), 0.01), ((1, 3), 0.01)])
def test_equal_systems_are_seldom_found_to_differ(runs, luck):
    """Where runs share 90% of their sentences, and each has a quality of its own."""
    generator = np.random.default_rng(11)
    p_values = []
    for _ in range(200):
        systems = []
        for count in runs:
            own = random_runs(generator, 120, 1, 0.7)
            others = random_runs(generator, 120, count, 0.7)
            kept = generator.random((count, 120)) < 0.9
            of_runs = np.where(kept[:, :, None], own, others).astype(np.float64)
            gains = 1 + generator.normal(0, luck, count) / mean_quality(own)
            of_runs[:, :, 0:8:2] *= gains[:, None, None]
            systems.append(of_runs)
        p_values.append(compared(*systems).p)
    assert 0.01 <= np.mean(np.array(p_values) <= 0.05) <= 0.1
    assert 0.3 < np.mean(p_values) < 0.65


@pytest.mark.parametrize("runs", [(2, 2), (3, 1)])
def test_the_bootstrap_against_a_plain_twin(runs):
    """Draw sentences one by one, with sacreBLEU's sums for each run and each text."""
    generator = np.random.default_rng(5)
    one = random_runs(generator, 40, runs[0], 0.72)
    other = random_runs(generator, 40, runs[1], 0.69)

    def bleu(of_run: np.ndarray, drawn: list[int]) -> float:
        total = [sum(int(of_run[n, column]) for n in drawn) for column in range(9)]
        lengths = {"sys_len": total[1], "ref_len": total[8], "smooth_method": "none"}
        return float(sacrebleu.BLEU.compute_bleu(total[0:8:2], total[1:8:2], **lengths).score) / 100

    choose = random.Random(6)
    texts = [choose.choices(range(40), k=40) for _ in range(400)]
    resampled = [
        np.array([[bleu(run, text) for text in texts] for run in of]) for of in (one, other)
    ]
    found = compared(one, other)
    of_sentences = np.std(resampled[0].mean(axis=0) - resampled[1].mean(axis=0), ddof=1)
    assert found.of_sentences == pytest.approx(of_sentences, rel=0.2)
    between = noise = 0.0
    for of, qualities in zip((one, other), resampled, strict=True):
        whole = np.array([bleu(run, list(range(40))) for run in of])
        between += ((whole - whole.mean()) ** 2).sum()
        noise += np.var(qualities - qualities.mean(axis=0), axis=1, ddof=1).sum()
    share = (1 / runs[0] + 1 / runs[1]) / (sum(runs) - 2)
    variance = of_sentences**2 + share * max(between - noise, 0)
    assert found.error == pytest.approx(math.sqrt(variance), rel=0.2)


def test_the_t_distribution():
    """Against values of printed tables, and the normal distribution."""
    for t, degrees, p in (
        (12.7062, 1, 0.05),
        (2.77645, 4, 0.05),
        (3.74695, 4, 0.02),
        (63.6567, 1, 0.01),
    ):
        assert t_test(t, degrees) == pytest.approx(p, rel=1e-5)
        assert t_test(-t, degrees) == t_test(t, degrees)
    assert t_test(1.959964, math.inf) == pytest.approx(0.05, rel=1e-5)
    assert t_test(1.959964, 1e5) == pytest.approx(0.05, rel=1e-4)
    assert t_test(0, 3.3) == 1
