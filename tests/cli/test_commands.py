"""Commands for models, systems and tables: train, score, add, report, doctor, describe."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from helpers.commands import all_commands
from helpers.files import write_gz
from helpers.models import random_model
from helpers.tables import LONG_TABLE, TABLES, listen_to_ctrl_c, waited_for

from moses_feature.cli.common.gone import COMMANDS, OPTIONS, OPTIONS_OF
from moses_feature.cli.common.vocabulary import TYPES
from moses_feature.doctor.model_files import check_kept_phrases
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import read_text
from moses_feature.phrases.model import load_model, save_model

TINY = ("--sizes", "hidden=11 embedding=5 maxout=7 rank=3")


def test_score(run, model_directory, monkeypatch):
    on_cpu = "--device", "cpu"  # a GPU's last digit depends on what is scored together
    stdin = b"a b\tA B\nthe dog\tle chien\r\n\tA\n"
    lines = run("model", "score", model_directory, *on_cpu, stdin=stdin).stdout.splitlines()
    assert len(lines) == 3
    per_word = run(
        "model", "score", model_directory, *on_cpu, "--per-word", stdin=stdin
    ).stdout.splitlines()
    for line, words in zip(lines, per_word, strict=True):
        total, scores = words.split("\t")
        assert total == line
        assert sum(map(float, scores.split())) == pytest.approx(float(total), abs=1e-5)
    assert [len(line.split("\t")[1].split()) for line in per_word] == [3, 3, 2]
    monkeypatch.setattr("moses_feature.cli.models.score.PAIRS_TOGETHER", 1)
    one_by_one = run("model", "score", model_directory, *on_cpu, stdin=stdin).stdout.splitlines()
    assert one_by_one == lines


def test_score_of_bad_lines(run, model_directory):
    result = run("model", "score", model_directory, stdin=b"a\tA\na A\n", exit_code=1)
    assert "Error: standard input at line 2: expected a source and a target" in result.stderr
    result = run("model", "score", "nowhere", stdin=b"", exit_code=1)
    assert "nowhere: expected a model directory" in result.stderr
    assert run("model", "score", model_directory, stdin=b"").stdout == ""


def test_train_and_describe(run, tmp_path):
    write_gz(tmp_path / "t.gz", LONG_TABLE)
    (tmp_path / "pairs").write_text("a\tA\nb\tB\n")
    run("model", "train", "t.gz", "pairs", "my.model", *TINY, "--updates", 4, "--shortlist", 3)
    assert (tmp_path / "my.model" / "checkpoint.safetensors").exists()
    refused = run("model", "train", "t.gz", "my.model", *TINY, exit_code=2)
    assert "--resume continues it" in refused.stderr
    run(
        "model",
        "train",
        "t.gz",
        "pairs",
        "my.model",
        *TINY,
        "--updates",
        6,
        "--shortlist",
        3,
        "--resume",
    )
    output = run("describe", "my.model").output
    assert "source words           3" in output
    assert "trained on             t.gz (table, 3000 lines)" in output
    assert "trained on             pairs (table, 2 lines)" in output
    assert load_model(tmp_path / "my.model").training["history"][-1]["update"] == 6
    result = run("model", "train", "none", "other.model", exit_code=1)
    assert "Error: none: No such file" in result.stderr
    refused = run("describe", "pairs", exit_code=1).stderr
    assert "pairs: expected a model, a system or a moses.ini, found no [feature]" in refused
    refused = run("text", "prepare", "nowhere", stdin=b"", exit_code=1).stderr
    assert "nowhere: expected a system of moses-feature with a moses.ini, found none" in refused


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_update_and_says_how_to_go_on(tmp_path, number):
    write_gz(tmp_path / "t.gz", LONG_TABLE)
    program = "from moses_feature.cli.main import moses_feature; moses_feature()"
    command = [
        sys.executable,
        "-c",
        program,
        "model",
        "train",
        "t.gz",
        "m",
        *map(str, TINY),
        "--threads",
        "1",
        "--evaluate-every",
        "5",
        "--patience",
        "1000000",
    ]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listen_to_ctrl_c,
    )
    waited_for((tmp_path / "m" / "model.safetensors").exists, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 128 + number, errors
    assert "saved in m; the same command with --resume continues" in errors
    assert "Traceback" not in errors
    load_model(tmp_path / "m")


def test_ctrl_c_while_modules_are_loaded_ends_the_process():
    """Even where the import system would drop an exception."""
    program = (
        "import signal; from moses_feature.cli.common.start import loading\n"
        "with loading():\n"
        "    try: signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt: pass\n"
        "    print('not reached')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, preexec_fn=listen_to_ctrl_c
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_ini_add_and_check(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(b"a ||| A ||| 0.5\nb ||| B ? ||| 1\n")
    ini = "[feature]\nPhraseDictionaryMemory name=T num-features=1 path=in\n[weight]\nT= 0.2\n"
    (tmp_path / "moses.ini").write_text(ini)
    run("augment-phrase-table", "in", "out.gz", "--model", model_directory)
    run(
        "system",
        "add",
        "moses.ini",
        "new.ini",
        "--table",
        "out.gz",
        "--weight",
        0.1,
        "--weight",
        0.3,
    )
    assert "T= 0.2 0.1 0.3\n" in (tmp_path / "new.ini").read_text()
    assert "out.gz: nothing found" in run("doctor", "out.gz").output
    run("system", "add", "none.ini", "new.ini", "--table", "out.gz", exit_code=1)
    run("system", "add", "moses.ini", "new.ini", exit_code=2)


def test_an_option_given_twice_is_an_error(run, tmp_path):
    """The first value would otherwise be lost without a word."""
    (tmp_path / "moses.ini").write_text("[feature]\n")
    words = ("system", "add", "moses.ini", "new.ini", "--table", "a", "--table=b")
    assert "--table is given 2 times: expected once" in run(*words, exit_code=2).output


def test_the_texts_of_a_filtered_table_are_told(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(b"a ||| A ||| 0.5\nb ||| B ||| 1\n")
    (tmp_path / "dev").write_text("a a\n")
    (tmp_path / "moses.ini").write_text(
        "[feature]\nPhraseDictionaryMemory name=T num-features=1 path=in\n[weight]\nT= 0.2\n"
    )
    words = ("--model", model_directory, "--phrases-of", "dev")
    done = run("augment-phrase-table", "in", "out.gz", *words)
    assert "out.gz has the phrases of dev alone: it is for no other text" in done.output
    run("system", "add", "moses.ini", "new.ini", "--table", "out.gz")
    assert (tmp_path / "new.ini").read_text().startswith("# T has the phrases of dev alone\n")
    ini = MosesIni.read(tmp_path / "new.ini")
    digest = read_text(tmp_path / "dev")[1]
    assert not list(check_kept_phrases(ini, "dev", digest))
    (finding,) = check_kept_phrases(ini, "test", digest[::-1])
    assert finding.what == "it has the phrases of dev alone, and test is none of them"


def test_check_notes_do_not_change_the_exit_code(run, tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| A ||| 0.5 1\nb ||| B ||| 0.6 1\n")
    assert "note: t: column 1" in run("doctor", "t").output
    (tmp_path / "t").write_bytes(b"a ||| A ||| 0.5 1\nb ||| B ||| -0.6 1\n")
    assert "problem: t: negative score" in run("doctor", "t", exit_code=1).output


FAVOURITES = b"".join(
    b"%b ||| %b ||| 0.1 0.1 %b 0.1 ||| 0-0 ||| 9 %b 1 ||| |||\n" % row
    for row in (
        (b"a b c d", b"A", b"0.2", b"5"),
        (b"a b c d", b"B", b"0.5", b"5"),
        (b"a b c d", b"C", b"0.3", b"5"),
        (b"a b c the", b"A", b"0.2", b"3"),
        (b"a b c the", b"B", b"0.2", b"3"),
        (b"a b c the", b"C", b"0.6", b"3"),
        (b"a b d", b"A", b"1", b"9"),
        (b"the dog d d", b"A", b"1", b"9"),
    )
)


def test_long_phrases_as_text(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(FAVOURITES)
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    assert run("table", "report", "out", model_directory, "--output", "t.txt").stdout == "t.txt\n"
    frequent, rare = (tmp_path / "t.txt").read_text().split("Long phrases, ")[1:]
    assert [line for line in rare.splitlines() if "times" in line] == [
        "a b c the (3 times)",
        "a b c d (5 times)",
    ]
    start = frequent.splitlines().index("a b c d (5 times)")
    heading, *rows = (re.split("   +", line.strip()) for line in frequent.splitlines()[start + 1 :])
    assert heading == ["by the table", "by the network", "drawn"]
    assert [row[0] for row in rows[:2]] == ["0.5 B", "0.3 C"]
    network = [float(row[1].split()[0]) for row in rows[:2]]
    assert network == sorted(network, reverse=True)
    refused = run("table", "report", "in", model_directory, exit_code=1)
    assert "is missing: is in an aug" in refused.stderr
    (tmp_path / "out.features.json").write_text(json.dumps({"columns": []}))
    refused = run("table", "report", "out", model_directory, exit_code=1)
    assert "expected a description" in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("table", "check", "t"), "table check is gone: use moses-feature doctor TABLE"),
        (("system", "pack"), "system pack is gone: use tar"),
        (("model", "train", "t", "m", "--hidden=9"), "--hidden. It is gone: use --sizes hidden=N"),
        (("model", "train", "t", "m", "--longest", "9"), "--longest. It is gone: use --max-length"),
        (
            ("model", "score", "m", "--batch-size", "9"),
            "--batch-size. It is gone: its default stays",
        ),
        (("doctor", "t", "--batch-size", "9"), "No such option '--batch-size'"),
    ],
)
def test_what_is_gone_names_its_replacement(run, tmp_path, words, said):
    (tmp_path / "l").touch()
    (tmp_path / "t").touch()
    assert said in run(*words, exit_code=2).stderr


def test_what_is_gone_is_gone():
    """An option that a command has, or that no command had, is not said to be gone."""
    commands = all_commands()
    assert not OPTIONS.keys() & TYPES.keys()
    by_name = {name.split()[-1]: command for name, command in commands.items()}
    for name, options in OPTIONS_OF.items():
        known = {parameter.opts[0].removeprefix("--") for parameter in by_name[name].params}
        assert options.keys() <= TYPES.keys() - known, name
    assert not [name for name in COMMANDS if f"moses-feature {name}" in commands]


def test_debug_shows_the_traceback(tmp_path):
    program = "from moses_feature.cli.main import moses_feature; moses_feature()"
    for variables, expected in (({}, False), ({"MOSES_FEATURE_DEBUG": "1"}, True)):
        done = subprocess.run(
            [sys.executable, "-c", program, "doctor", "none"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"NO_COLOR": "1"} | variables,
        )
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) is expected


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error(tmp_path, model_directory):
    program = "from moses_feature.cli.main import moses_feature; moses_feature()"
    done = subprocess.run(
        f"yes 'a\tA' | head -20000 | {sys.executable} -c '{program}' model score {model_directory} "
        "--threads 1 | head -1",
        cwd=tmp_path,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_model_with_factors_keeps_them(run, tmp_path):
    (tmp_path / "t").write_bytes(b"a|N ||| A|x ||| 1\nb|N ||| B|y ||| 1\n")
    run(
        "model",
        "train",
        "t",
        "m",
        *TINY,
        "--updates",
        1,
        "--source-factor",
        0,
        "--target-factor",
        0,
    )
    model = load_model(tmp_path / "m")
    assert set(model.source.shortlist) == {b"a", b"b"}
    run("augment-phrase-table", "t", "out", "--model", "m")
    described = json.loads((tmp_path / "out.features.json").read_text())
    assert described["unknown_target_words"] == 0


def test_tables_of_the_wrong_kind_are_told_apart(run, tmp_path):
    save_model(tmp_path / "m", random_model())
    (tmp_path / "tabs").write_bytes(b"a\tA\n")
    result = run("augment-phrase-table", "tabs", "out", "--model", "m", exit_code=1)
    assert "tabs at line 1: expected 3 to 7 fields" in result.stderr
    (tmp_path / "t").write_bytes(TABLES["one line"])
    run("augment-phrase-table", "t", "out", "--model", "m")


def test_a_command_begins_without_heavy_modules():
    """Ctrl-C must be quiet from the first moment: nothing is imported before it is caught."""
    program = (
        "import sys; before = set(sys.modules); import moses_feature.cli.common.start; "
        "print(*sorted(name for name in set(sys.modules) - before if 'moses' not in name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not {"click", "numpy", "numba", "torch", "logging"} & set(done.stdout.split())
