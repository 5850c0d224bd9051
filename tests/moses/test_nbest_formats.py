"""Lists of other decoders as Moses' lines, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from moses_feature.moses.features import FeatureFunction, FeatureSet
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import NbestLine, labelled_values
from moses_feature.runtime.errors import FormatError, UsageError

MARIAN = b"""0 ||| das ist gut ||| F0=-1.5 ||| -0.5
0 ||| das ist  ||| 0-0 1-1 ||| WordScores= -0.1 -0.2 ||| F0= -2 F1= -0.25 ||| -0.75
2 |||  ||| F0=-9.25e-1 ||| -1
3 ||| a ||| 0.75,0.25,1e-05 0.5,0.5,0 ||| F0= -1 Score= -2 ||| -1
"""
JSON = [
    {"id": "1", "translations": ["a b", "a"], "scores": [-0.5, -0.75]},
    {"translations": ["é"], "scores": [-2]},
]


def as_lines(contents: list[object]) -> bytes:
    return b"".join(json.dumps(content).encode() + b"\n" for content in contents)


def read(tmp_path, content: bytes, form: str) -> list[bytes]:
    (tmp_path / "lists").write_bytes(content)
    with NbestReader(tmp_path / "lists", form) as reader:
        return list(reader)


def test_marian(tmp_path):
    assert read(tmp_path, MARIAN, "marian") == [
        b"0 ||| das ist gut  ||| F0= -1.5 Total0= -0.5 WordPenalty0= -3 ||| -0.5\n",
        b"0 ||| das ist  ||| F0= -2 F1= -0.25 Total0= -0.75 WordPenalty0= -2"
        b" ||| -0.75 ||| 0-0 1-1 \n",
        b"2 |||  ||| F0= -0.925 Total0= -1 WordPenalty0= 0 ||| -1\n",
        b"3 ||| a  ||| F0= -1 Score= -2 Total0= -1 WordPenalty0= -1 ||| -1\n",
    ]


def test_json(tmp_path):
    assert read(tmp_path, as_lines(JSON), "json") == [
        b"0 ||| a b  ||| LogProb0= -0.5 WordPenalty0= -2 ||| -0.5\n",
        b"0 ||| a  ||| LogProb0= -0.75 WordPenalty0= -1 ||| -0.75\n",
        b"1 ||| \xc3\xa9  ||| LogProb0= -2 WordPenalty0= -1 ||| -2\n",
    ]


@pytest.mark.parametrize("form", ["marian", "json"])
def test_lines_are_those_of_moses(tmp_path, form):
    contents = {"marian": MARIAN, "json": as_lines(JSON)}
    for line in read(tmp_path, contents[form], form):
        parsed = NbestLine(line, "lists", 1)
        values = labelled_values(parsed.fields[2])
        assert values["WordPenalty0"] == [-len(parsed.words)]


def test_numbers_of_lines_are_those_of_the_file(tmp_path):
    (tmp_path / "lists").write_bytes(as_lines(JSON))
    with NbestReader(tmp_path / "lists", "json") as reader:
        assert [reader.line_number for _ in reader] == [1, 1, 2]
        assert reader.fraction() == 1.0


def test_compressed(tmp_path):
    assert len(read(tmp_path, gzip.compress(MARIAN), "marian")) == 4


@pytest.mark.parametrize(
    ("form", "content", "said"),
    [
        ("marian", b"0 ||| a ||| -1\n", "line 1: expected sentence ||| words ||| F0= value"),
        ("marian", b"x ||| a ||| F0= -1 ||| -1\n", "line 1"),
        ("marian", b"0 ||| a ||| F0= nan ||| -1\n", "line 1"),
        ("marian", b"0 ||| a ||| F0= -1 F1 ||| -1\n", "line 1"),
        ("marian", b"0 ||| a ||| what ||| F0= -1 ||| -1\n", "line 1"),
        ("marian", b"0 ||| a ||| F0= 1e999 ||| -1\n", "expected finite scores, found inf"),
        ("marian", b"1_0 ||| a ||| F0= -1 ||| -1\n", "line 1"),
        ("marian", b"0 ||| a ||| F0= -1 F0= -2 ||| -1\n", "line 1"),
        ("marian", b"0 ||| a ||| WordPenalty0= -1 ||| -1\n", "line 1"),
        (
            "json",
            b'{"translations": ["a"], "scores": [1' + b"1" * 400 + b"]}\n",
            "of a usual size",
        ),
        ("json", b'{"translations": ["\\ud800"], "scores": [1]}\n', "of a usual size"),
        ("marian", b"", "expected translations in the format of marian, found none"),
        ("json", b"{\n", "line 1: expected JSON"),
        ("json", b"[]\n", "line 1: expected a JSON object"),
        ("json", b'{"translations": ["a"], "scores": [null]}\n', "a translation (text) with its"),
        ("json", b'{"translations": ["a"], "scores": []}\n', 'as many "scores"'),
        ("json", b'{"translations": ["a"], "scores": [NaN]}\n', "finite scores"),
    ],
)
def test_bad_lists(tmp_path, form, content, said):
    with pytest.raises(FormatError) as refused:
        read(tmp_path, content, form)
    assert said in str(refused.value)


def test_unknown_format(tmp_path):
    with pytest.raises(UsageError, match="expected one of moses, marian, json"):
        read(tmp_path, b"", "joshua")


def test_a_command_reads_them(tmp_path, run):
    (tmp_path / "lists").write_bytes(MARIAN)
    (tmp_path / "weights").write_text("F0= 0\nTotal0= 0\nWordPenalty0= 1\n")
    (tmp_path / "reference").write_text("das ist\nx\n\n")
    (tmp_path / "lists").write_bytes(MARIAN.partition(b"3 ||| a")[0].replace(b" F1= -0.25", b""))
    done = run(
        *("list", "rescore", "lists", "out", "--format", "marian", "--weights", "weights"),
        *("--one-best", "best", "--reference", "reference"),
    )
    assert (tmp_path / "best").read_bytes() == b"das ist\n\n\n"
    assert "1 of 2 first translations have changed" in done.stdout
    (tmp_path / "reference").write_text("das ist\nx\n\n\n\n")
    run(
        *("list", "rescore", "lists", "out", "--format", "marian", "--weights", "weights"),
        *("--one-best", "best", "--reference", "reference"),
    )
    assert (tmp_path / "best").read_bytes() == b"das ist\n\n\n\n\n"
    run("list", "rescore", "lists", "moses", "--format", "marian")
    with NbestReader(tmp_path / "lists", "marian") as reader:
        assert (tmp_path / "moses").read_bytes() == b"".join(reader)
    (tmp_path / "reference").write_text("das ist\n")
    refused = run(
        *("list", "rescore", "lists", "no", "--format", "marian", "--reference", "reference"),
        exit_code=1,
    )
    assert "reference: expected a sentence 1 (from 0) as in the lists, found 1" in refused.stderr
    assert not (tmp_path / "no").exists()


def test_lists_on_one_line_are_counted_as_they_stood(tmp_path, run):
    """The decoder's first translation is right, the weights want the other one."""
    (tmp_path / "lists").write_bytes(as_lines(JSON[:1]))
    (tmp_path / "weights").write_text("LogProb0= -1\nWordPenalty0= 0\n")
    (tmp_path / "reference").write_text("a b\n")
    done = run(
        *("list", "rescore", "lists", "out", "--format", "json", "--weights", "weights"),
        *("--one-best", "best", "--reference", "reference"),
    )
    assert (tmp_path / "best").read_text() == "a\n"
    assert "1 of 1 first translations have changed" in done.stdout


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "1_0", "0x1"])
def test_values_that_are_no_finite_numbers_are_refused(tmp_path, value):
    """Among good ones, in the usual order of features or another one."""
    features = FeatureSet(
        (
            FeatureFunction("T", (0.1, 0.2), (True, True)),
            FeatureFunction("LM0", (0.5,), (True,)),
        )
    )
    for text in (f"T= -1 {value} LM0= -2", f"LM0= {value} T= -1 -2"):
        line = NbestLine(f"0 ||| a  ||| {text} ||| -1\n".encode(), tmp_path / "lists", 1)
        with pytest.raises(
            FormatError, match=f"lists at line 1: expected Name= .* found {re.escape(repr(value))}"
        ):
            line.values(features)
