"""Odd files, odd moments and odd command lines of the main job."""

from __future__ import annotations

import bz2
import fcntl
import io
import json
import lzma
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.models import random_model
from helpers.tables import (
    LONG_TABLE,
    TABLES,
    has_written,
    start,
    waited_for,
    without_new_columns,
)

from moses_feature.cli.main import moses_feature
from moses_feature.cli.tables.augment import augment_phrase_table
from moses_feature.cli.tuning.decode import mert_decode
from moses_feature.cli.tuning.optimise import mert_optimize
from moses_feature.phrases.model import save_model
from moses_feature.runtime.errors import MosesFeatureError, OutputError
from moses_feature.tables import augment as augment_module
from moses_feature.tables.writer import TableWriter

TABLE = TABLES["shared prefixes"]
TINY = ["--sizes", "hidden=7 embedding=5 maxout=3 rank=2", "--updates", 2]


def test_a_pipe_is_read_from_its_beginning(run, tmp_path, model_directory):
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(TABLE))
    thread.start()
    run("augment-phrase-table", "pipe", "out", "--model", model_directory)
    thread.join()
    assert without_new_columns((tmp_path / "out").read_bytes()) == TABLE
    result = run("augment-phrase-table", "pipe", "out", *TINY, exit_code=2)
    assert "can be read only once" in result.stderr


@pytest.mark.parametrize("module", [bz2, lzma])
@pytest.mark.parametrize("damage", ["garbage", "damaged member", "cut"])
def test_what_follows_a_member_must_be_one(run, tmp_path, model_directory, module, damage):
    first, second = module.compress(TABLE[:200]), module.compress(TABLE[200:])
    (tmp_path / "in").write_bytes(first + second)
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    assert without_new_columns((tmp_path / "out").read_bytes()) == TABLE
    second = {
        "garbage": second + b"garbage",
        "damaged member": second[:2] + b"\0" + second[3:],
        "cut": second[:-5],
    }[damage]
    (tmp_path / "in").write_bytes(first + second)
    result = run("augment-phrase-table", "in", "out2", "--model", model_directory, exit_code=1)
    assert "expected more data, found a damaged or truncated file" in result.stderr
    assert not list(tmp_path.glob("out2*"))


def test_an_empty_file_is_not_a_compressed_one(run, tmp_path, model_directory):
    (tmp_path / "in.gz").touch()
    result = run("augment-phrase-table", "in.gz", "out", "--model", model_directory, exit_code=1)
    assert "in.gz: expected a .gz file, found an empty file" in result.stderr


class Killed(BaseException):
    """Stands in for a signal that cannot be caught."""


@pytest.fixture
def killed(run, tmp_path, model_directory, monkeypatch):
    """Leave what a run leaves that was killed after three parts; return its command line."""
    monkeypatch.setattr(augment_module, "LINES_PER_PART", 97)
    (tmp_path / "in").write_bytes(b"".join(LONG_TABLE.splitlines(keepends=True)[:650]))
    (tmp_path / "text").write_text("".join(f"a w{number} x\n" for number in range(500)))
    shutil.copytree(model_directory, tmp_path / "m")
    arguments = ("augment-phrase-table", "in", "out.gz", "--model", "m", "--phrases-of", "text")
    written = []
    whole = TableWriter.write

    def write(self, *part):
        whole(self, *part)
        written.append(part)
        if len(written) == 3:
            raise Killed

    with monkeypatch.context() as context:
        context.setattr(TableWriter, "write", write)
        with pytest.raises(Killed):
            run(*arguments)
    assert (tmp_path / "out.gz.journal").exists()
    return arguments


def test_resume_sees_that_the_partial_file_was_changed(run, tmp_path, killed):
    partial = tmp_path / "out.gz.partial"
    content = partial.read_bytes()
    for damaged in (content[:10], b"x" + content[1:], b""):
        partial.write_bytes(damaged)
        assert "bytes that the unfinished run wrote" in run(*killed, "--resume", exit_code=1).stderr
        assert not (tmp_path / "out.gz").exists()


def test_resume_sees_that_the_journal_was_changed(run, tmp_path, killed):
    journal = tmp_path / "out.gz.journal"
    journal.write_text(journal.read_text().replace('"lines": ', '"lines": 1'))
    assert "its checksum is wrong" in run(*killed, "--resume", exit_code=1).stderr


def test_resume_sees_that_an_input_text_was_changed(run, tmp_path, killed):
    (tmp_path / "text").write_text("a b\n")
    assert "expected a run with inputs" in run(*killed, "--resume", exit_code=1).stderr


def test_resume_sees_that_a_vocabulary_was_changed(run, tmp_path, killed):
    vocabulary = tmp_path / "m" / "target.vocab"
    lines = vocabulary.read_bytes().splitlines(keepends=True)
    vocabulary.write_bytes(b"".join([*lines[:2], lines[3], lines[2], *lines[4:]]))
    said = "target.vocab: expected the words that the network was trained with, found others"
    assert said in run(*killed, "--resume", exit_code=1).stderr


def test_a_run_killed_between_its_last_two_steps(run, tmp_path, killed, monkeypatch):
    """After the last part, and after the rename but before the journal is removed."""
    run(*killed, "--resume")
    whole = (tmp_path / "out.gz").read_bytes()

    def killed_before_rename(_):
        raise Killed

    def killed_after_rename(self):
        self._partial.replace(self._path)
        raise Killed

    for finish in (killed_before_rename, killed_after_rename):
        with monkeypatch.context() as context:
            context.setattr(TableWriter, "finish", finish)
            with pytest.raises(Killed):
                run(*killed)
        run(*killed, "--resume")
        assert (tmp_path / "out.gz").read_bytes() == whole
        assert not list(tmp_path.glob("*.journal")) + list(tmp_path.glob("*.partial"))


def test_two_runs_do_not_write_the_same_file(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLE)
    with (tmp_path / "out.partial").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        result = run("augment-phrase-table", "in", "out", "--model", model_directory, exit_code=1)
        assert "out.partial: another run is writing it" in result.stderr
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    (tmp_path / "m").mkdir()
    descriptor = os.open(tmp_path / "m", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert (
        "another run is training there"
        in run("model", "train", "in", "m", *TINY, exit_code=1).stderr
    )
    os.close(descriptor)


def test_what_an_ini_names_is_not_overwritten(run, tmp_path, model_directory):
    """Nor are the standard streams; an ini itself may be changed in place."""
    ini = "[feature]\nPhraseDictionaryMemory name=T num-features=2 path=in\nKENLM name=L path=lm\n"
    (tmp_path / "moses.ini").write_text(f"{ini}[weight]\nT= 1 1\nL= 1\n")
    for name in ("in.gz", "lm"):
        (tmp_path / name).write_bytes(TABLE)
    shutil.copytree(model_directory, tmp_path / "networks")
    add = "system", "add", "moses.ini"
    for arguments, message in (
        ((*add, "lm", "--model", "x"), "lm would be overwritten: write to another file"),
        ((*add, "in.gz", "--model", "x"), "in.gz would be overwritten"),
        ((*add, "networks/new.ini", "--model", "x"), "a model directory: write to another one"),
        (
            ("list", "tune", "in.gz", "lm", "--reference", "x", "--start", "moses.ini"),
            "lm would be overwritten",
        ),
        (
            ("list", "rescore", "in.gz", "lm", "--weights", "moses.ini"),
            "lm would be overwritten",
        ),
    ):
        assert message in run(*arguments, exit_code=2).stderr
    arguments = "in.gz", "out", "--model", model_directory, "--ini", "moses.ini", "--ini-out", "lm"
    found = run("augment-phrase-table", *arguments, exit_code=2)
    assert "lm would be overwritten" in found.stderr
    program = Path(sys.executable).with_name("moses-feature")
    with (tmp_path / "lm").open("rb") as text:
        command = [program, "model", "translate", model_directory, "--alignment-out", "lm"]
        done = subprocess.run(command, stdin=text, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr.count(b"lm is the standard input")) == (2, 1)
    with (tmp_path / "lm").open("ab") as said:
        command = [program, "system", "add", "moses.ini", "/dev/stdout", "--model", "x"]
        done = subprocess.run(
            command, stdout=said, stderr=subprocess.PIPE, cwd=tmp_path, check=False
        )
    assert (done.returncode, done.stderr.count(b"is the standard output")) == (2, 1)
    assert (tmp_path / "lm").read_bytes() == TABLE


def test_the_files_of_a_system_are_not_overwritten(run, tmp_path):
    for name in ("s/moses.ini", "s/phrase-table.gz", "s/lm.arpa.gz", "s/aligned.given.gz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    for name in ("phrase-table.gz", "lm.arpa.gz", "aligned.given.gz"):
        words = "augment-phrase-table", "s/phrase-table.gz", f"s/{name}", "--system", "s"
        assert f"s/{name} would be overwritten" in run(*words, exit_code=2).stderr
    assert "s/new.gz" not in run(*words[:2], "s/new.gz", "--system", "s", exit_code=1).stderr


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("table", "filter", "x", "y", "--target", "z"), "--source"),
        (("list", "tune", "x", "y"), "--reference"),
    ],
)
def test_what_must_be_given(run, words, missing):
    assert f"Missing option '{missing}'" in run(*words, exit_code=2).stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("doctor", "x", "--dev", "y"), "--source"),
        (("list", "tune", "x", "y", "--target", "z"), "--reference"),
    ],
)
def test_options_that_have_another_name_here(run, words, meant):
    assert f"Did you mean {meant}?" in run(*words, exit_code=2).stderr


def test_nothing_of_the_user_is_overwritten(run, tmp_path, model_directory):
    for name in ("in", "x.partial", "t.gz"):
        (tmp_path / name).write_bytes(TABLE)
    ini = "[feature]\nPhraseDictionaryMemory name=T num-features=2 path=in\n[weight]\nT= 1 1\n"
    (tmp_path / "moses.ini").write_text(ini)
    shutil.copytree(model_directory, tmp_path / "m")
    os.mkfifo(tmp_path / "pipe")
    before = {path: path.read_bytes() for path in tmp_path.glob("*") if path.is_file()}
    model = ("--model", "m")
    inis = ("--ini", "moses.ini", "--ini-out")
    for arguments, message in (
        (("x.partial", "x", *model), "x.partial would be overwritten"),
        (("in", "pipe", *model), "found a special file"),
        (("in", "m/model.safetensors", *model), "a model directory: write to another one"),
        (("in", "new/", *model), "found a directory"),
        (("in", "out", *model, *inis, "in"), "in would be overwritten"),
        (("in", "out", *model, *inis, "out"), "out would overwrite what is written to out"),
        (("in", "out", *model, *inis, "no/where"), "there is no directory"),
        (("in", "out", *model, *inis, "new.ini", "--table-name", "X"), "no phrase table 'X'"),
        (("in", "out", *model, "--table-name", "T"), "--table-name goes with --ini"),
        (("in", "out", *model, "--phrases-of", "-"), "expected its name, found -"),
        (("in", "out", *TINY, "--seed", 1 << 64), "Invalid value"),
        (("in", "out", *TINY, "--minutes", "nan"), "not a finite number"),
        (("in", "out", *TINY, "--sizes", f"hidden={10**9}"), "hidden"),
        (("in", "out", *TINY, "--device", "meta"), "expected auto, cpu or cuda"),
    ):
        assert message in run("augment-phrase-table", *arguments, exit_code=2).stderr
    for arguments, message in (
        (("in", "out", *model, "--ini", "none", "--ini-out", "x.ini"), "none: No such file"),
        (("in", "out", *model, "--phrases-of", "none"), "none: No such file"),
        (("in", "out", "--model", "in"), "expected a model directory"),
    ):
        assert message in run("augment-phrase-table", *arguments, exit_code=1).stderr
    assert {path: path.read_bytes() for path in before} == before
    assert run("model", "train", "in", "t.gz", *TINY, exit_code=1).stderr.startswith(
        "Error: t.gz: expected"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("table", "filter", "in", "-", "--source", "in", "--target", "in"),
        ("model", "export", "in", "-", "--format", "nplm"),
        ("list", "rescore", "in", "-", "--model", "in", "--source", "in"),
    ],
)
def test_only_tables_are_written_to_the_standard_output(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").touch()
    result = run(*words, exit_code=2)
    assert "expected a file name, found -" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_no_command_writes_what_it_reads(tmp_path, monkeypatch, model_directory):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model_directory, "m")
    for name in ("a", "b", "c", "d"):
        Path(name).write_text(name)
    Path("link").symlink_to("a")
    os.link("b", "same")
    before = {name: Path(name).read_bytes() for name in "abcd"}
    for command, words in (
        (augment_phrase_table, "a link --model m"),
        (augment_phrase_table, "a out --model m --phrases-of b --ini-out same --ini c"),
        (augment_phrase_table, "a m/out --model m"),
        (moses_feature, "system add a b --table ./b --weight 1"),
        (moses_feature, "system add a link --table a --weight 1"),
        (moses_feature, "list rescore a link --model m"),
        (moses_feature, "list rescore a out --weights b --one-best same"),
        (moses_feature, "list rescore a out --weights b --one-best ./out"),
        (moses_feature, "list rescore a m/out --model R=m --source b"),
        (moses_feature, "text select a --in-domain b --general c --output-dir same"),
        (mert_decode, "a --lists link"),
        (mert_decode, "a --lists same --constraint b"),
        (mert_optimize, "a b --init c --output link"),
    ):
        result = CliRunner().invoke(command, words.split())
        assert isinstance(result.exception, SystemExit), (words, result.exception)
        assert result.exit_code == 2, (words, result.output)
        assert "overwrit" in result.output or "a model directory" in result.output, words
    assert {name: Path(name).read_bytes() for name in "abcd"} == before


def test_a_link_is_followed(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLE)
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "out")
    run("augment-phrase-table", "in", "link", "--model", model_directory)
    assert (tmp_path / "link").is_symlink()
    assert without_new_columns((tmp_path / "there" / "out").read_bytes()) == TABLE


def test_outputs_do_not_share_a_description(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLE)
    run("augment-phrase-table", "in", "out.gz", "--model", model_directory)
    result = run("augment-phrase-table", "in", "out.bz2", "--model", model_directory, exit_code=2)
    assert "out.features.json describes out.gz" in result.stderr
    run("augment-phrase-table", "in", "out.gz", "--model", model_directory)


@pytest.mark.parametrize("count", ["nan", "inf", "-5", "1e300", "1_0"])
def test_joint_counts_must_be_counts(run, tmp_path, count):
    (tmp_path / "in").write_text(f"a ||| A ||| 1 ||| ||| 1 1 {count}\n")
    result = run("model", "train", "in", "m", *TINY, exit_code=1)
    assert f"in at line 1: expected a joint count, found '{count}'" in result.stderr
    assert not (tmp_path / "m").exists()


def test_a_text_without_words_makes_no_shortlist(run, tmp_path):
    (tmp_path / "in").write_bytes(TABLE)
    (tmp_path / "text").write_text("\n")
    result = run("model", "train", "in", "m", *TINY, "--source-text", "text", exit_code=1)
    assert "text: expected words for a shortlist, found none" in result.stderr


def test_a_diverged_run_ends_with_an_error(run, tmp_path):
    (tmp_path / "in").write_bytes(TABLE)
    result = run("model", "train", "in", "m", *TINY, "--learning-rate", 1e30, exit_code=1)
    assert "a smaller --learning-rate may help" in result.stderr
    assert not (tmp_path / "m" / "model.safetensors").exists()


def test_resume_sees_that_texts_were_swapped(run, tmp_path):
    (tmp_path / "in").write_bytes(TABLE)
    (tmp_path / "text").write_text("a A\n")
    run("model", "train", "in", "m", *TINY, "--source-text", "text")
    result = run(
        "model", "train", "in", "m", *TINY, "--target-text", "text", "--resume", exit_code=1
    )
    assert "expected a run with inputs" in result.stderr


@pytest.mark.slow
def test_ctrl_c_while_scoring_says_how_to_go_on(tmp_path, model_directory):
    (tmp_path / "in").write_bytes(LONG_TABLE * 100)
    process = start(tmp_path, "in", "out", "--model", model_directory)
    journal = tmp_path / "out.journal"
    waited_for(lambda: has_written(journal), process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "interrupted; the same command with --resume continues" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_closed_streams(tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLE)
    program = f"{sys.executable} -m moses_feature"
    augment = (
        "from moses_feature.cli.tables.augment import augment_phrase_table; augment_phrase_table()"
    )
    for command in (
        f"{sys.executable} -c '{augment}' - out --model {model_directory} <&-",
        f"{sys.executable} -c '{augment}' in - --model {model_directory} >&-",
        f"echo a | {program} model sample {model_directory} >&-",
        f"{program} describe {model_directory} >&-",
    ):
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "Error: the standard" in done.stderr
        assert "Traceback" not in done.stderr


def test_file_names_that_are_not_utf_8(run, tmp_path, model_directory):
    name = os.fsdecode(b"t\xff")
    (tmp_path / name).write_bytes(TABLE)
    run("augment-phrase-table", name, "out", "--model", model_directory)
    assert json.loads((tmp_path / "out.features.json").read_text())["table"] == name
    run("model", "train", name, "m", *TINY)


def test_a_full_disk_in_finishing(tmp_path):
    writer = TableWriter(str(tmp_path / "no" / "out"))
    with pytest.raises(OutputError):
        writer.start()


def test_ini_output_may_not_be_the_table(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLE)
    ini = "[feature]\nPhraseDictionaryMemory name=T num-features=2 path=in\n[weight]\nT= 1 1\n"
    (tmp_path / "moses.ini").write_text(ini)
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    result = run("system", "add", "moses.ini", "out", "--table", "out", exit_code=2)
    assert "out would be overwritten" in result.stderr
    for weight in ("nan", "inf"):
        run(
            "system",
            "add",
            "moses.ini",
            "new.ini",
            "--table",
            "out",
            "--weight",
            1,
            "--weight",
            weight,
            exit_code=2,
        )
    assert (
        "expected a file name"
        in run("system", "add", "moses.ini", "", "--table", "out", exit_code=2).stderr
    )


@pytest.mark.parametrize(
    "sizes", [{"hidden": "8"}, {"hidden": -8}, {"hidden": 8.0}, {"hidden": None}, {"hidden": 10**9}]
)
def test_sizes_of_the_wrong_type(tmp_path, run, sizes):
    save_model(tmp_path / "m", random_model())
    path = tmp_path / "m" / "config.json"
    config = json.loads(path.read_text())
    config["sizes"] |= sizes
    del config["consistency"]  # which would tell first
    path.write_text(json.dumps(config))
    assert "expected sizes and words" in run("describe", "m", exit_code=1).stderr


def test_reader_of_a_stream_read_twice(monkeypatch):
    from moses_feature.moses.lines import LineReader

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a\n"))))
    with LineReader("-") as reader:
        assert list(reader) == [b"a\n"]
    with pytest.raises(MosesFeatureError, match="closed, or has been read already"):
        LineReader("-")


def test_a_whole_output_is_not_resumed(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLE)
    arguments = ("augment-phrase-table", "in", "out", "--model", model_directory)
    run(*arguments)
    before = (tmp_path / "out").read_bytes()
    assert "out is whole: nothing to resume" in run(*arguments, "--resume", exit_code=2).stderr
    assert (tmp_path / "out").read_bytes() == before


@pytest.mark.slow
def test_no_space_in_training(tmp_path):
    (tmp_path / "in").write_bytes(LONG_TABLE)
    program = "from moses_feature.cli.main import moses_feature; moses_feature()"
    command = [sys.executable, "-c", program, "model", "train", "in", "m", *map(str, TINY)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    assert done.returncode == 1
    assert re.search(
        r"^Error: m/checkpoint.safetensors: cannot be written", done.stderr, re.MULTILINE
    )
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "m").glob("*")) if (tmp_path / "m").exists() else True


@pytest.mark.parametrize(
    "words",
    [
        "system build pipe text s",
        "system build text text2 s --lm-text pipe",
        "model train-sentences pipe text m",
        "text select pipe --in-domain text --lines 5",
        "list rescore lists out --model m --source pipe",
    ],
)
def test_a_pipe_is_refused_where_an_input_is_read_again(run, tmp_path, words):
    """Nobody writes into it: to open it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("text", "text2", "lists", "moses.ini"):
        (tmp_path / name).write_text("a\n")
    refused = run(*words.split(), exit_code=2).stderr
    assert "pipe: expected a file, found a pipe, which can be read once only" in refused


def test_a_training_does_not_overwrite_its_input(run, tmp_path):
    (tmp_path / "m").mkdir()
    for name in ("source.vocab", "text"):
        (tmp_path / "m" / name).write_text("a b\n" * 30)
    words = "model", "train-sentences", "m/source.vocab", "m/text", "m", "--updates", 1
    refused = run(*words, exit_code=2).stderr
    assert "m/source.vocab would be overwritten: write to another file than m" in refused
    assert (tmp_path / "m/source.vocab").read_text() == "a b\n" * 30
