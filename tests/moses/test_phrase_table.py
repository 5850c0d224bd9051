"""Lines of a phrase table: read, grown by columns, never changed otherwise."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import append_scores, count_scores, split_fields, tokens
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import without_compression_suffix

TEXT = st.binary(max_size=20).filter(lambda b: b"|" not in b and b"\n" not in b)
NUMBERS = st.lists(
    st.floats(0, 1, allow_nan=False).map(lambda value: b"%g" % value), min_size=1, max_size=6
)


@given(
    st.lists(TEXT, min_size=2, max_size=6),
    NUMBERS,
    st.sampled_from([b"", b" ", b"  ", b"\t"]),
    st.sampled_from([b"", b"\n", b"\r\n"]),
)
def test_taking_the_columns_away_gives_back_the_line(others, numbers, space, end):
    source, target, *rest = others
    line = b"|||".join([source, target, space + b" ".join(numbers) + space, *rest]) + end
    fields = split_fields(line, "t", 1)
    assert b"|||".join(fields) == line
    assert count_scores(fields[2], "t", 1) == len(numbers)
    grown = append_scores(fields, b"0.5 1")
    grown_fields = split_fields(grown, "t", 1)
    assert count_scores(grown_fields[2], "t", 1) == len(numbers) + 2
    assert grown_fields[2].split()[-2:] == [b"0.5", b"1"]
    head, tail = grown_fields[2].rsplit(b" 0.5 1", 1)
    assert b"|||".join([*grown_fields[:2], head + tail, *grown_fields[3:]]) == line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"a b ||| c\n", "3 to 7 fields"),
        (b"a b c 0.5\n", "3 to 7 fields"),
        (b"1|||2|||3|||4|||5|||6|||7|||8\n", "3 to 7 fields"),
    ],
)
def test_wrong_number_of_fields(line, expected):
    with pytest.raises(FormatError, match=r"t\.gz at line 17: expected " + expected):
        split_fields(line, "t.gz", 17)


@pytest.mark.parametrize(
    "field",
    [b" one ", b" 0.5 0-0 ", b" nan ", b" inf 1 ", b" ", b"", b" 0.5 \x0b ", b" 1_0 ", b" 0x1 "],
)
def test_scores_that_are_not_numbers(field):
    with pytest.raises(FormatError, match="at line 3: expected scores"):
        count_scores(field, "t", 3)


def test_a_bad_score_after_many_good_ones_is_found_at_once():
    """No form of the pattern may try all ways to cut the numbers before it."""
    with pytest.raises(FormatError, match="expected scores"):
        count_scores(b"100 " * 2500 + b"nan", "t", 1)
    with pytest.raises(FormatError, match="expected scores"):
        count_scores(b"1" * 200_000 + b"x", "t", 1)


@pytest.mark.parametrize("field", [b" 1e-300 ", b"0.5\t.5", b" 5. +1 -1E+2 ", b" 0.1 0.2\r\n"])
def test_scores_that_are_numbers(field):
    assert count_scores(field, "t", 3) == len(field.split())


def test_tokens_are_split_on_space_and_tab_alone():
    phrase = " a\u00a0b\tc\u2028d  \u0085e \x0b ".encode() + b"\xe9\r\n"
    assert tokens(phrase) == [
        "a\u00a0b".encode(),
        "c\u2028d".encode(),
        "\u0085e".encode(),
        b"\x0b",
        b"\xe9",
    ]


LINES = [b"one\n", b"two\r\n", "th\u2028ree\x85\n".encode("utf-8"), b"\xe9\x0cfour"]


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("t", bytes),
        ("t.gz", gzip.compress),
        ("t.bz2", bz2.compress),
        ("t.xz", lzma.compress),
        ("wrong-suffix", gzip.compress),
    ],
)
def test_reader_gives_lines_as_they_are(tmp_path, name, compress):
    path = tmp_path / name
    path.write_bytes(compress(b"".join(LINES[:2])) + compress(b"".join(LINES[2:])))
    with LineReader(path) as reader:
        assert list(reader) == LINES
        assert reader.line_number == 4
        assert reader.fraction() == 1


def test_reader_of_a_truncated_file(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"".join(b"line %d\n" % n for n in range(100_000)))[:-2000])
    with (
        LineReader(path) as reader,
        pytest.raises(MosesFeatureError, match=r"t\.gz after line \d+: .* truncated"),
    ):
        list(reader)


def test_reader_of_what_is_not_there(tmp_path):
    with pytest.raises(MosesFeatureError, match="directory"):
        LineReader(tmp_path)
    with pytest.raises(MosesFeatureError, match="No such file"):
        LineReader(tmp_path / "none")


def test_compression_suffixes():
    assert without_compression_suffix("a/b.c.gz").name == "b.c"
    assert without_compression_suffix("a/b.c").name == "b.c"
