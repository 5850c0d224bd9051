"""`moses-feature translate`: the same as the steps one by one, as a stream, and what goes wrong."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.toy import make_toy, random_neural_lm

from moses_feature.building.settings import LONGEST_SENTENCE, BuildSettings
from moses_feature.building.system import BuildData, build
from moses_feature.cli.tuning.decode import mert_decode
from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.decoder.language_model import LanguageModels
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.system_directory import SystemDirectory, write_tuned
from moses_feature.networks.files import write_model_files
from moses_feature.rescoring.nbest import BadTranslationError, CslmScorer, all_of
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.translation.translator import Translator

LINES = ["a b c", "d", "", "b x a", "c c", "a b c d a"]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
TUNED = '{"format_version": 1, "tuned": {}, "built": %s, "rescoring": [], "list_size": %d}'
WEIGHTS = ["RNN= 0.3", "TM0= 0.1 0.2", "LM0= 0.4", "Distortion0= 0.1", "WordPenalty0= -0.5"]


@pytest.fixture
def ini(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_toy(tmp_path / "toy", options=3)
    return tmp_path / "toy" / "moses.ini"


def decoded(*words: object, text: bytes = TEXT) -> list[str]:
    Path("in").write_bytes(text)
    with Path("in").open("rb") as source:
        done = CliRunner().invoke(mert_decode, [str(word) for word in words], input=source)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_the_same_as_mert_decode(run, ini):
    expected = decoded(ini, "--lists", "lists", "--nbest-size", 3)
    found = run("translate", ini, "--tokens", "--jobs", 2, stdin=TEXT)
    assert found.stdout.splitlines() == expected
    as_json = run("translate", ini, "--tokens", "--json", "--nbest-size", 3, stdin=TEXT).stdout
    lists = [line.split(" ||| ") for line in Path("lists").read_text().splitlines()]
    objects = [json.loads(line) for line in as_json.splitlines()]
    assert [of["tokens"] for of in objects] == LINES
    flat = [(n, of) for n, line in enumerate(objects) for of in line["translations"]]
    assert len(flat) == len(lists)
    for (number, of), (sentence, words, values, total) in zip(flat, lists, strict=True):
        assert (number, of["tokens"]) == (int(sentence), words.strip())
        assert of["score"] == pytest.approx(float(total), rel=1e-4, abs=1e-5)
        shown = [float(word) for word in values.split() if not word.endswith("=")]
        flat_values = [value for of_one in of["features"].values() for value in of_one]
        assert flat_values == pytest.approx(shown, rel=1e-4, abs=1e-5)
        assert not number or of["phrases"] or not of["tokens"]


def test_given_translations(run, ini):
    marked = b'a <n translation="X Y">b c</n>\nd\na <n>b\n'
    found = run("translate", ini, "--tokens", "--xml-input", "exclusive", stdin=marked, exit_code=1)
    first, second, third = found.stdout.split("\n")[:3]
    assert "X Y" in first
    assert second == decoded(ini, text=b"d\n")[0]
    assert third == ""
    assert "line 3: <n> is never closed" in found.stderr
    ignored = run("translate", ini, "--tokens", "--xml-input", "ignore", stdin=marked[:33])
    assert ignored.stdout.splitlines()[0] == decoded(ini, text=b"a b c\n")[0]


def test_rescored_as_by_the_steps(run, ini, tmp_path):
    files = random_neural_lm(np.random.default_rng(1))
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, files)
    decoded(ini, "--lists", "lists", "--nbest-size", 100)
    names = {line.split("=")[0] for line in Path(ini).read_text().split("[weight]")[1].split("\n")}
    weights = [line.rstrip() for line in Path(ini).read_text().split("[weight]")[1].splitlines()]
    weights = [line for line in weights if "=" in line and "Unknown" not in line]
    Path("weights").write_text("\n".join([*weights, "CSLM9= 3"]) + "\n")
    assert names
    model = f"CSLM9={tmp_path / 'lm'}"
    words = ["--model", model, "--weights", "weights"]
    run("list", "rescore", "lists", "rescored", *words, "--one-best", "best")
    Path("tuned").mkdir()
    Path("tuned/moses.ini").write_bytes(ini.read_bytes())
    Path("tuned/rescoring.weights").write_bytes(Path("weights").read_bytes())
    rescoring = [("CSLM9", str(tmp_path / "lm"))]
    write_tuned(Path("tuned"), None, rescoring, "rescoring.weights", 100, {})
    found = run("translate", "tuned", "--tokens", stdin=TEXT).stdout
    assert found == Path("best").read_text()
    assert found.splitlines() != decoded(ini)
    check_what_is_told_of_it(run, model)


def check_what_is_told_of_it(run, model: str) -> None:
    """The directory `tuned`, described and examined, whole and damaged."""
    told = run("describe", "tuned").stdout.splitlines()
    assert f"rescoring              {model.replace('=', ': ')}" in told
    at = told.index("weights of its lists   tuned/rescoring.weights, lists of 100")
    assert "  CSLM9                3" in told[at:]
    assert told[1].startswith("UnknownWordPenalty0    1")
    assert "problem" not in run("doctor", "tuned").stdout
    weights = Path("tuned/rescoring.weights")
    whole = weights.read_text()
    weights.write_text(whole.replace("CSLM9= 3\n", ""))
    found = run("doctor", "tuned", exit_code=1).stdout
    assert "tuned/rescoring.weights: expected 1 weights of CSLM9, found 0" in found
    weights.write_text(whole + "LM9= 1\n")
    found = run("doctor", "tuned", exit_code=1).stdout
    assert "expected weights of the system's features, found those of LM9" in found
    weights.write_text(whole)
    Path(model.partition("=")[2]).rename("elsewhere")
    found = run("doctor", "tuned", exit_code=1).stdout
    assert "problem: tuned/system.json" in found
    Path("nothing").mkdir()
    found = run("doctor", "nothing", exit_code=1).stdout
    assert "problem: nothing: expected a system of moses-feature" in found


@pytest.mark.slow
def test_a_line_out_as_soon_as_it_is_done(ini):
    words = [sys.executable, "-m", "moses_feature", "translate", str(ini), "--tokens"]
    expected = decoded(ini)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for line, translation in zip(LINES, expected, strict=True):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{translation}\n"
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_lines_without_a_translation_stay_in_their_place(run, ini):
    text = b"a b\n" + b"a " * (LONGEST_SENTENCE + 1) + b"\na\0b\nd\n"
    done = run("translate", ini, "--tokens", stdin=text, exit_code=1)
    first, second, third, last = done.stdout.split("\n")[:4]
    assert first
    assert last
    assert (second, third) == ("", "")
    assert (
        f"line 2: expected {LONGEST_SENTENCE} words at most, found {LONGEST_SENTENCE + 1}"
        in done.stderr
    )
    assert "line 3: expected text, found a NUL" in done.stderr
    assert "2 lines have no translation" in done.stderr
    bar = run("translate", ini, "--tokens", stdin=b"a | b\n", exit_code=1).stderr
    assert "line 1: expected words without | (escaped: &#124;)" in bar
    assert "1 line has no translation" in bar
    as_json = run("translate", ini, "--tokens", "--json", stdin=text, exit_code=1).stdout
    assert [*json.loads(as_json.splitlines()[2])] == ["error"]
    bar = run("translate", ini, "--tokens", stdin=b"a\rb\n", exit_code=1).stderr
    assert "line 1: expected one sentence, found a line break" in bar
    other = "a\u2028b\x85 c\v\n".encode()  # the service takes them, too
    assert run("translate", ini, "--tokens", stdin=other).stdout.count("\n") == 1
    latin = run("translate", ini, "--tokens", stdin=b"caf\xe9\n")
    assert latin.stdout_bytes == b"caf\xe9\n"
    latin = run("translate", ini, "--tokens", "--json", stdin=b"caf\xe9\n")
    assert json.loads(latin.stdout)["tokens"] == "caf\ufffd"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_waits_for_a_line(ini, number, code):
    words = [sys.executable, "-m", "moses_feature", "translate", str(ini), "--tokens"]
    pipe = subprocess.PIPE
    # What a shell runs in the background ignores SIGINT.
    listen = partial(signal.signal, number, signal.SIG_DFL)
    given = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "preexec_fn": listen}
    with subprocess.Popen(words, **given) as process:
        process.stdin.write(b"a b\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=60) == code
        errors = process.stderr.read().decode()
    assert "Fatal" not in errors
    assert "Traceback" not in errors


def test_a_damaged_table_ends_the_run(run, ini, tmp_path):
    table = tmp_path / "toy" / "table0"
    table.write_bytes(table.read_bytes().replace(b"a |||", b"a ||| x ||| y\na |||", 1))
    done = run("translate", ini, "--tokens", stdin=TEXT, exit_code=1)
    assert "table0 at line 1: expected 2 scores" in done.stderr


def test_raw_text(run, tmp_path, monkeypatch):
    pytest.importorskip("sacremoses")
    monkeypatch.chdir(tmp_path)
    Path("en").write_text("The dog's here, isn't it?\nA cat & a dog.\nYes.\n" * 6)
    Path("fr").write_text("Le chien est là, non?\nUn chat & un chien.\nL'oui.\n" * 6)
    links = "0-0\n0-0 1-1 2-2 3-3 4-4 5-5\n0-1 1-2\n" * 6
    Path("links").write_text(links)
    data = BuildData("en", "fr", "links", languages=("en", "fr"))
    for case, yes in (("truecase", "Oui."), ("lower", "oui.")):
        system = Path(case)
        build(data, BuildSettings(order=2, case=case), system)
        found = run("translate", system, stdin=b"Yes.\n\nA cat & a dog.\n").stdout.splitlines()
        assert found[0].replace("L'", "").replace("l'", "") in (yes, yes.lower())
        assert found[1] == ""
        assert found[2].lower() == "un chat & un chien."
        tuned = tmp_path / f"tuned-{case}"
        tuned.mkdir()
        MosesIni.read(system / "moses.ini").write(tuned / "moses.ini")
        write_tuned(tuned, system.absolute(), [], None, 100, {})
        same = run("translate", tuned, stdin=b"Yes.\n\nA cat & a dog.\n")
        assert same.stdout.splitlines() == found
    bad = run("translate", system, stdin=b"caf\xe9\nYes.\n", exit_code=1)
    assert "line 1: expected UTF-8" in bad.stderr
    assert bad.stdout.splitlines()[1].endswith("oui.")


def test_systems_that_are_none(run, ini, tmp_path):
    run_of_one = tmp_path / "table2" / "rnn" / "seed-3"
    run_of_one.mkdir(parents=True)
    (run_of_one / "moses.ini").write_text("")
    hint = run("translate", "table2", exit_code=1).stderr
    assert "found none: is table2/rnn/seed-3 meant?" in hint
    refused = run("translate", ini, exit_code=1).stderr
    assert "found one of tokens: give --tokens" in refused
    Path("empty").mkdir()
    assert "expected a system" in run("translate", "empty", exit_code=1).stderr
    assert (
        "--nbest-size is for --json" in run("translate", ini, "--nbest-size", 3, exit_code=2).stderr
    )
    Path("half").mkdir()
    Path("half/moses.ini").write_bytes(ini.read_bytes())
    for content, message in (
        ("{", "a damaged file"),
        ('{"format_version": 99}', "is of a newer moses-feature"),
        ('{"format_version": 1, "tuned": {}}', "a good 'built'"),
        (TUNED % ('"\\u0000"', 100), "a good 'built'"),
        (TUNED % ("null", 10**12), "expected list_size: 1 to 10000"),
    ):
        Path("half/system.json").write_text(content)
        assert message in run("translate", "half", "--tokens", exit_code=1).stderr
    write_tuned(Path("half"), None, [("CSLM9", "nowhere")], "rescoring.weights", 100, {})
    with pytest.raises((MosesFeatureError, FormatError)):
        Translator(Path("half"), as_tokens=True)
    write_tuned(Path("half"), tmp_path / "gone", [], None, 100, {})
    assert (
        "gone: expected the system that half was tuned from"
        in run("translate", "half", exit_code=1).stderr
    )
    write_tuned(Path("half"), None, [("CSLM9", "nowhere")], "rescoring.weights", 100, {})
    assert SystemDirectory.read(Path("half")).rescoring[0][1] == str(tmp_path / "nowhere")


def test_a_translation_that_no_model_can_score(ini, tmp_path, monkeypatch):
    """It is an error of its sentence, which others do not share."""
    write_model_files(tmp_path / "lm", LM_ARCHITECTURE, random_neural_lm(np.random.default_rng(1)))
    names = [line for line in ini.read_text().split("[weight]")[1].split("\n") if "=" in line]
    Path("tuned").mkdir()
    Path("tuned/moses.ini").write_bytes(ini.read_bytes())
    Path("tuned/weights").write_text("\n".join([*names, "CSLM9= 3"]) + "\n")
    write_tuned(Path("tuned"), None, [("CSLM9", str(tmp_path / "lm"))], "weights", 100, {})
    translator = Translator(Path("tuned"), as_tokens=True)
    scores = CslmScorer.scores

    def some(self, lists):
        if any(len(of.words) > 2 for of in all_of(lists)):
            raise BadTranslationError(lists[0][1][0], "2 words at most", "3")
        return scores(self, lists)

    monkeypatch.setattr(CslmScorer, "scores", some)
    with pytest.raises(MosesFeatureError, match="expected 2 words at most, found 3"):
        translator.translate("a b c d a")
    assert translator.translate("d").translations


def test_a_sentence_leaves_nothing_behind(ini):
    """Also without garbage collection, which translating processes do not have."""
    translator = Translator(ini, as_tokens=True)
    seen = []
    make = LanguageModels.__init__

    def seeing(self, *arguments):
        seen.append(weakref.ref(self))
        make(self, *arguments)

    gc.collect()
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LanguageModels, "__init__", seeing)
            translator.translate("a b c")
        left = [of() for of in seen]
    finally:
        gc.enable()
    assert left
    assert not any(left)
