"""The Python API, and its examples in the documents."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.files import ROOT
from helpers.toy import make_toy, write_corpus

from moses_feature.api import load_model, read_table, rescore, train, translate
from moses_feature.cli.tuning.decode import mert_decode
from moses_feature.phrases.settings import Sizes, TrainingSettings
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError

PAGE = ROOT / "docs" / "reference" / "api.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
TABLE = b"the dog ||| le chien ||| 0.5 0.25\na ||| un ||| 1 1e-3 ||| 0-0\n"


@pytest.fixture
def here(tmp_path, monkeypatch, model_directory) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model_directory, "my.model")
    Path("phrase-table.gz").write_bytes(gzip.compress(TABLE))
    return tmp_path


@pytest.mark.usefixtures("here")
def test_the_example_of_scoring(capsys):
    exec(EXAMPLES[0], {})  # noqa: S102  # our own document
    assert "TableEntry(source='" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_of_a_comparison(here, capsys):
    toy = make_toy(here / "toy", seed=5, longest=2)
    for seed, name in ((11, "dev"), (12, "test")):
        write_corpus(toy, here, seed)
        (here / f"{seed}.in").rename(f"{name}.en")
        (here / f"{seed}.ref").rename(f"{name}.fr")
    toy.ini.write(here / "moses.ini")
    toy.ini.write(here / "rnn.ini")
    program = EXAMPLES[1].replace('"table1")', '"table1", runs=1)')
    exec(program, {})  # noqa: S102
    printed = capsys.readouterr().out
    exec(program, {})  # noqa: S102
    assert capsys.readouterr().out == printed
    assert printed.startswith("baseline [")
    assert printed.rstrip().endswith("1.0")
    assert (here / "table1" / "comparison.html").exists()
    with pytest.raises(UsageError, match="tuning runs: expected 1 or more, found 0"):
        exec(EXAMPLES[1].replace('"table1")', '"other", runs=0)'), {})  # noqa: S102


@pytest.mark.usefixtures("here")
def test_text_and_bytes_are_the_same():
    model = load_model("my.model", "cpu")
    text = [("the dog", "le chien"), ("\u00e9t\u00e9", "\u00e9t\u00e9"), ("", "un")] * 2000
    scores = model.log_probs(text)
    encoded = [(source.encode(), target.encode()) for source, target in text]
    np.testing.assert_array_equal(model.log_probs(iter(encoded)), scores)
    assert len(scores) == 6000
    assert scores[0] != scores[1]
    assert model.log_probs([]).shape == (0,)


@pytest.mark.usefixtures("here")
def test_bytes_that_are_not_utf_8_survive():
    Path("table").write_bytes(b"\xe9t\xe9 ||| le ||| 1\n")
    (entry,) = read_table("table")
    model = load_model("my.model", "cpu")
    expected = model.log_probs([(b"\xe9t\xe9", b"le")])
    assert model.log_probs([(entry.source, entry.target)]) == expected
    assert expected != model.log_probs([("\u00e9t\u00e9", "le")])


def test_words_of_text_are_refused_where_bytes_are_due(scorer):
    with pytest.raises(TypeError, match=r"moses_feature\.api takes text"):
        scorer.score([(["the"], ["le"])])


@pytest.mark.usefixtures("here")
def test_what_is_wrong():
    Path("table").write_bytes(b"a ||| b\n")
    with pytest.raises(FormatError, match="line 1: expected 3 to 7 fields"):
        list(read_table("table"))
    with pytest.raises(MosesFeatureError):
        load_model("phrase-table.gz")


@pytest.mark.usefixtures("here")
def test_a_network_is_trained():
    Path("table").write_bytes(b"".join(b"a%d ||| b%d ||| 1\n" % (n % 7, n % 5) for n in range(35)))
    sizes = Sizes(hidden=3, embedding=4, maxout=5, rank=2)
    updates = []
    settings = TrainingSettings(sizes=sizes, updates=3)
    report = {"report": lambda state: updates.append(state.update)}
    trained = train(["table"], "new.model", settings=settings, device="cpu", **report)
    assert updates == [1, 2, 3]
    again = load_model("new.model", "cpu")
    pairs = [("a1", "b2")]
    assert trained.log_probs(pairs).tolist() == again.log_probs(pairs).tolist()
    with pytest.raises(UsageError, match="holds a model already"):
        train(["table"], "new.model", settings=settings, device="cpu")


def test_a_translation_is_rescored(tmp_path, run):
    """The functions do what the commands do."""
    toy = make_toy(tmp_path / "toy", neural=1)
    toy.ini.write(tmp_path / "moses.ini")
    sentences = ["a b c", "", "d a"]
    text = "".join(f"{sentence}\n" for sentence in sentences).encode()
    words = [str(tmp_path / "moses.ini"), "--lists", str(tmp_path / "lists")]
    done = CliRunner().invoke(mert_decode, words, input=io.BufferedReader(io.BytesIO(text)))
    assert translate(tmp_path / "moses.ini", sentences) == done.stdout.splitlines()
    names = {"CSLM7": toy.folder / "neural0"}
    count = rescore(tmp_path / "lists", tmp_path / "one", names)
    run("list", "rescore", "lists", "two", "--model", f"CSLM7={toy.folder / 'neural0'}")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert count == (tmp_path / "one").read_bytes().count(b"\n")


def test_numeric_libraries_have_one_thread_where_the_package_is_imported():
    """OpenBLAS divides products that are too small for it, a hundred times slower."""
    program = "import {}, os; print(os.environ['OPENBLAS_NUM_THREADS'])"
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    for name in ("moses_feature.moses.lines", "mert.api"):
        command = [sys.executable, "-c", program.format(name)]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert done.stdout == b"1\n"
