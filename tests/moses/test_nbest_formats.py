"""Lists of other decoders as Moses' lines, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
import json

import pytest

from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import NbestLine, labelled_values
from moses_feature.runtime.errors import FormatError, UsageError

MARIAN = b"""0 ||| das ist gut ||| F0=-1.5 ||| -0.5
0 ||| das ist  ||| 0-0 1-1 ||| WordScores= -0.1 -0.2 ||| F0= -2 F1= -0.25 ||| -0.75
2 |||  ||| F0=-9.25e-1 ||| -1
3 ||| a ||| 0.75,0.25,1e-05 0.5,0.5,0 ||| F0= -1 Score= -2 ||| -1
"""
FAIRSEQ = b"""2020-12-08 | INFO | fairseq_cli.generate | loading model
S-7\tthe dog
T-7\tle chien
H-7\t-0.25\tle chien
D-7\t-0.25\tLe chien
P-7\t-0.25 -0.125 -0.375
H-7\t-1.5e-1\tun chien
P-7\t-0.5 -0.5 -0.5
S-2\t.
H-2\t-1\t
P-2\t-1.0
Generate test with beam=5: BLEU4 = 35.15, 66.1/41.6/29.1/20.8
"""
SOCKEYE = [
    {"sentence_id": "1", "translation": "a b", "score": 0.5, "translations": ["a b", "a"]},
    {"sentence_id": "2", "translation": "é", "score": 2},
]
SOCKEYE[0]["scores"] = [[0.5], [0.75]]
OPENNMT = [
    [[{"src": "x", "tgt": "a b", "pred_score": -0.5}], [{"src": "x", "tgt": "a", "pred_score": -1}]]
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


def test_fairseq_sums_log_probabilities_and_sorts_sentences(tmp_path):
    assert read(tmp_path, FAIRSEQ, "fairseq") == [
        b"2 |||  ||| LogProb0= -1 Total0= -1 WordPenalty0= 0 ||| -1\n",
        b"7 ||| le chien  ||| LogProb0= -0.75 Total0= -0.25 WordPenalty0= -2 ||| -0.25\n",
        b"7 ||| un chien  ||| LogProb0= -1.5 Total0= -0.15 WordPenalty0= -2 ||| -0.15\n",
    ]


def test_sockeye_has_costs_and_opennmt_log_probabilities(tmp_path):
    assert read(tmp_path, as_lines(SOCKEYE), "sockeye") == [
        b"0 ||| a b  ||| LogProb0= -0.5 WordPenalty0= -2 ||| -0.5\n",
        b"0 ||| a  ||| LogProb0= -0.75 WordPenalty0= -1 ||| -0.75\n",
        b"1 ||| \xc3\xa9  ||| LogProb0= -2 WordPenalty0= -1 ||| -2\n",
    ]
    assert read(tmp_path, as_lines(OPENNMT), "opennmt") == [
        b"0 ||| a b  ||| LogProb0= -0.5 WordPenalty0= -2 ||| -0.5\n",
        b"0 ||| a  ||| LogProb0= -1 WordPenalty0= -1 ||| -1\n",
    ]


@pytest.mark.parametrize("form", ["marian", "fairseq", "sockeye", "opennmt"])
def test_lines_are_those_of_moses(tmp_path, form):
    contents = {
        "marian": MARIAN,
        "fairseq": FAIRSEQ,
        "sockeye": as_lines(SOCKEYE),
        "opennmt": as_lines(OPENNMT),
    }
    for line in read(tmp_path, contents[form], form):
        parsed = NbestLine(line, "lists", 1)
        values = labelled_values(parsed.fields[2])
        assert values["WordPenalty0"] == [-len(parsed.words)]


def test_numbers_of_lines_are_those_of_the_file(tmp_path):
    (tmp_path / "lists").write_bytes(FAIRSEQ)
    with NbestReader(tmp_path / "lists", "fairseq") as reader:
        assert [reader.line_number for _ in reader] == [10, 4, 7]
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
        ("fairseq", b"H-0 -1 a\nP-0 -1\n", "line 1: expected H-sentence<TAB>score"),
        ("fairseq", b"H--1\t-1\ta\nP--1\t-1\n", "line 1: expected H-sentence<TAB>score"),
        ("sockeye", b'{"translation": "a", "score": 1' + b"1" * 400 + b"}\n", "of a usual size"),
        ("sockeye", b'{"translation": "\\ud800", "score": 1}\n', "of a usual size"),
        (
            "opennmt",
            b'[[{"tgt": "a", "pred_score": -1}], [{"tgt": "b", "pred_score": -1}]]\n',
            "translations of one sentence on a line",
        ),
        ("marian", b"", "expected translations in the format of marian, found none"),
        ("fairseq", b"H-0\t-1\ta\n", "line 1: expected a line P-0"),
        ("fairseq", b"H-0\t-1\ta\nH-0\t-1\tb\nP-0\t-1\n", "line 1: expected a line P-0"),
        ("fairseq", b"H-0\t-1\ta\nP-1\t-1\n", "line 2: expected a line H-1 before P-1"),
        ("fairseq", b"H-0\tx\ta\n", "line 1: expected H-sentence"),
        ("fairseq", b"H-0\t-1\ta\nP-0\t-1 nan\n", "line 2: expected P-sentence"),
        ("fairseq", b"S-0\ta\n", "found none"),
        ("fairseq", b"H-0\t-1\ta ||| b\nP-0\t-1\n", "without |||"),
        ("sockeye", b"{\n", "line 1: expected JSON"),
        ("sockeye", b"[]\n", "line 1: expected a JSON object"),
        ("sockeye", b'{"translation": "a"}\n', "a translation (text) with its score"),
        ("sockeye", b'{"translations": ["a"], "scores": []}\n', 'as many "scores"'),
        ("sockeye", b'{"translation": "a", "score": NaN}\n', "finite scores"),
        ("opennmt", b'[{"src": "a", "tgt": "b"}]\n', "its score (a number)"),
        ("opennmt", b"[1]\n", 'objects with "tgt"'),
        (
            "opennmt",
            b'[{"src": "a", "tgt": "b", "pred_score": 1}, {"src": "c", "tgt": "b"}]\n',
            "line 1: expected translations of one sentence",
        ),
    ],
)
def test_bad_lists(tmp_path, form, content, said):
    with pytest.raises(FormatError) as refused:
        read(tmp_path, content, form)
    assert said in str(refused.value)


def test_unknown_format(tmp_path):
    with pytest.raises(UsageError, match="expected one of moses, marian"):
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


@pytest.mark.parametrize("form", ["sockeye", "opennmt"])
def test_lists_on_one_line_are_counted_as_they_stood(tmp_path, run, form):
    """The decoder's first translation is right, the weights want the other one."""
    content = SOCKEYE[:1] if form == "sockeye" else OPENNMT
    (tmp_path / "lists").write_bytes(as_lines(content))
    (tmp_path / "weights").write_text("LogProb0= -1\nWordPenalty0= 0\n")
    (tmp_path / "reference").write_text("a b\n")
    done = run(
        *("list", "rescore", "lists", "out", "--format", form, "--weights", "weights"),
        *("--one-best", "best", "--reference", "reference"),
    )
    assert (tmp_path / "best").read_text() == "a\n"
    assert "1 of 1 first translations have changed" in done.stdout
