"""Weights from lists alone: what is found, what is said of it, and bad input."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from click.testing import CliRunner

from moses_feature.cli.main import moses_feature
from moses_feature.cli.tuning.tune_lists import tune_lists_command

SENTENCES = 60
WORDS = [f"w{n}" for n in range(30)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Lists of another decoder whose log probability is noise and a hint; sentence 7 has none."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(5)
    lists, references = [], []
    for sentence in range(SENTENCES):
        reference = generator.choice(WORDS, 8).tolist()
        references.append(" ".join(reference) + "\n")
        for _ in range(0 if sentence == 7 else 10):
            damaged = [
                str(generator.choice(WORDS)) if generator.random() < rate else word
                for rate in [generator.random() * 0.6]
                for word in reference
            ]
            right = sum(a == b for a, b in zip(damaged, reference, strict=True))
            values = generator.normal(), right + 2 * generator.normal()
            features = " ".join(f"F{n}= {value:.6g}" for n, value in enumerate(values))
            lists.append(f"{sentence} ||| {' '.join(damaged)} ||| {features} ||| {values[0]:.6g}\n")
    Path("lists").write_text("".join(lists))
    Path("reference").write_text("".join(references))


def invoke(*arguments: str, command=tune_lists_command, exit_code: int = 0):
    result = CliRunner().invoke(command, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == exit_code, result.output
    return result


def bleu(path: str) -> float:
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    system = Path(path).read_text().splitlines()
    return metric.corpus_score(system, [Path("reference").read_text().splitlines()]).score


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("algorithm", ["mert", "mira"])
def test_what_is_said_is_what_rescoring_makes_of_it(algorithm):
    form = ("--format", "marian")
    told = invoke(
        *("lists", "weights", "--reference", "reference", "--algorithm", algorithm, *form)
    )
    first, tuned, unseen, best = map(float, re.findall(r"[0-9]+\.[0-9]{2}", told.stdout)[:4])
    assert "590 translations of 59 sentences" in told.stdout
    rescore = (
        "list",
        "rescore",
        "lists",
        "out",
        *form,
        "--weights",
        "weights",
        "--one-best",
        "best",
    )
    said = invoke(*rescore, "--reference", "reference", command=moses_feature).stdout
    assert f"BLEU {first:.2f} before, {tuned:.2f} after" in said
    assert bleu("best") == pytest.approx(tuned, abs=0.006)
    assert first < unseen <= tuned + 1 < best
    weights = dict(line.split("= ") for line in Path("weights").read_text().splitlines())
    assert list(weights) == ["F0", "F1", "Total0", "WordPenalty0"]
    assert abs(float(weights["F0"])) < float(weights["F1"])


@pytest.mark.usefixtures("files")
def test_word_errors():
    arguments = ("lists", "weights", "--format", "marian", "--reference", "reference")
    told = invoke(*arguments, "--metric", "wer").stdout
    first, tuned, unseen, best = map(float, re.findall(r"[0-9]+\.[0-9]{2}", told)[:4])
    assert told.startswith(f"WER {first:.2f} of the first")
    assert first > unseen >= tuned - 1 > best


@pytest.mark.usefixtures("files")
def test_start_weights_and_seeds():
    Path("start").write_text("WordPenalty0= 0.1\nF1= 0.8\nF0= 0.1\nTotal0= 0\nOther= 1\n")
    arguments = ("lists", "a", "--format", "marian", "--reference", "reference")
    started = invoke(*arguments, "--start", "start").stdout
    assert started == invoke(*arguments, "--start", "start").stdout
    Path("start").write_text("F0= 1\nF1= 1 2\n")
    refused = invoke(*arguments, "--start", "start", exit_code=1)
    Path("start").write_text("F0= 0\nF1= 0\nTotal0= 0\nWordPenalty0= 0\n")
    nothing = invoke(*arguments, "--start", "start", exit_code=1)
    assert "expected some that are not 0, found 0, 0, 0, 0" in nothing.stderr
    invoke("lists", "-", "--reference", "reference", exit_code=2)
    assert "lists: expected 1 start weights of F1, found 2" in refused.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("lists", "reference", "said"),
    [
        (None, "\n" * 60, "reference: expected sentences, found no word"),
        (None, "x\n" * 60, "BLEU of the best translations of all lists is 0.00"),
        (None, "w1\n" * 200, "expected lists of the 200 sentences of the references, found 59"),
        (None, "w1\n" * 59, "lists at line 581: expected a sentence from 58 to 58, found 59"),
        ("0 ||| a  ||| LM0= 1 ||| 0\n", None, "expected lists of 2 sentences and more"),
        ("0 ||| a  |||  ||| 0\n", None, "lists at line 1: expected features"),
        ("0 ||| a  ||| 1 ||| 0\n", None, "lists at line 1: expected Name= value"),
        ("0 ||| a  ||| LM0= 1 ||| 0\n1 ||| a ||| X0= 1 ||| 0\n", None, "lists at line 2"),
        ("", None, "lists: expected sentence"),
    ],
)
def test_bad_input(lists, reference, said):
    form = "marian" if lists is None else "moses"
    if lists is not None:
        Path("lists").write_text(lists)
    if reference is not None:
        Path("reference").write_text(reference)
    refused = invoke(
        *("lists", "weights", "--reference", "reference", "--format", form), exit_code=1
    )
    assert said in refused.stderr
    assert not Path("weights").exists()


@pytest.mark.usefixtures("files")
def test_sentences_without_a_list_are_mentioned():
    told = invoke("lists", "w", "--reference", "reference", "--format", "marian")
    assert f"1 of {SENTENCES} sentences of the references have no list" in told.stderr


@pytest.mark.usefixtures("files")
def test_references_of_another_length():
    Path("other").write_text("x\n")
    refused = invoke(
        *("lists", "weights", "--reference", "reference", "--reference", "other"),
        exit_code=1,
    )
    assert "other: expected 60 lines as in reference, found 1" in refused.stderr
