"""The faults that the doctor finds in a phrase table, and the effects in Moses that it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.files import SHARED, needs_shared

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import TableScan

GOOD = b"a ||| A ||| 0.1 0.2 1 ||| 0-0 ||| 1 1 1 ||| |||\nb ||| B ||| 0.3 0.4 1e-40 ||| 0-0\n"


def check(tmp_path: Path, content: bytes) -> list[Finding]:
    (tmp_path / "t").write_bytes(content)
    return list(TableScan(tmp_path / "t").findings())


def test_a_good_table(tmp_path):
    assert check(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("line", "expected", "effect"),
    [
        (b"c ||| C\n", "not 3 to 7 fields: 1 line (3: 2)", "Moses stops or misreads the line"),
        (b"c ||| C ||| 0.1 -0.2 1\n", "negative score: 1 line", "Moses silently drops"),
        (b"c ||| C ||| 0.1 nan 1\n", "not a number: 1 line (3: 'nan')", "'Bad score'"),
        (b"c ||| C ||| 0.1 0,5 1\n", "not a number", "Moses stops"),
        (b"c ||| C ||| 0.1 inf 1\n", "32-bit float: 1 line (3: 'inf')", "infinite in Moses"),
        (b"c ||| C ||| 0.1 1e39 1\n", "32-bit float", "infinite in Moses"),
        (b"c ||| C ||| 0.1 0.2\n", "not as many scores as line 1: 1 line (3: 2)", "Moses stops"),
        (b" ||| C ||| 0.1 0.2 1\n", "empty source phrase: 1 line (3)", "Moses skips the line"),
        (b"c ||| C |||\n", "no scores: 1 line (3)", "Moses stops"),
        (b"c ||| C ||| 1 1 .5 ||| 0-1\n", "outside the phrases: 1 line (3: '0-1')", "wrong words"),
        (b"c ||| C ||| 1 1 .5 ||| x-0\n", "alignment point outside", "wrong words"),
        (b"c ||| C ||| 1 1 .5 ||| ||| ||| a nan\n", "that is not a finite number", "Moses stops"),
        (b"c ||| C ||| 1 1 .5 ||| ||| ||| a 1 b\n", "sparse scores not in pairs", "Moses stops"),
    ],
)
def test_bad_lines(tmp_path, line, expected, effect):
    (finding,) = (found for found in check(tmp_path, GOOD + line) if "order" not in found.what)
    assert expected in finding.what
    assert effect in finding.effect
    assert finding.severity == "problem"


@pytest.mark.parametrize(
    ("line", "expected", "effect"),
    [
        (b"c ||| C ||| 0.1 0 1\n", "score of zero or below 3.7e-44: 1 line", "its log as -100"),
        (b"c ||| C ||| 0.1 1e-300 1\n", "1 line (3: '1e-300')", "its log as -100"),
        (b"c ||| C ||| 1 1 .5 ||| ||| ||| ||| {{Mine 1}}\n", "1 line (3: 'Mine')", "know it stops"),
    ],
)
def test_what_may_be_meant_is_a_warning(tmp_path, line, expected, effect):
    (finding,) = check(tmp_path, GOOD + line)
    assert expected in finding.what
    assert effect in finding.effect
    assert finding.severity == "warning"


def test_registered_properties_are_fine(tmp_path):
    line = b"c ||| C ||| 1 1 .5 ||| ||| ||| s 1 ||| {{Tree [NP]}} {{Counts 1 2}}\n"
    assert check(tmp_path, GOOD + line) == []


def test_many_lines_are_counted_and_few_shown(tmp_path):
    (finding,) = check(tmp_path, GOOD + b"c ||| C ||| 0.1 -1 1\n" * 7)
    assert "7 lines (3: '-1', 4: '-1', 5: '-1', 6: '-1', 7: '-1', …)" in str(finding)


@pytest.mark.parametrize(
    ("scores", "severity", "expected"),
    [
        (("0.5 1", "0.4 1"), "note", "column 1 (counted from 0) is 1 in every line"),
        (("0.5 2.718", "0.4 2.718"), "note", "is 2.718 in every line"),
        (("0.5 0.3", "0.4 0.3"), "warning", "is 0.3 in every line"),
        (("0.5 0", "0.4 1e-50"), "problem", "column 1 (counted from 0): every score is at Moses'"),
    ],
)
def test_columns_that_say_nothing(tmp_path, scores, severity, expected):
    content = "".join(f"{s} ||| T ||| {v}\n" for s, v in zip("ab", scores, strict=True)).encode()
    finding = check(tmp_path, content)[-1]
    assert expected in finding.what
    assert finding.severity == severity


def test_order(tmp_path):
    assert check(tmp_path, b"a b ||| T ||| 1\na ||| T ||| .5\n") == []  # as LC_ALL=C sort does
    (finding,) = check(tmp_path, b"b ||| T ||| 1\na ||| T ||| .5\nc ||| T ||| .5\n")
    assert "processPhraseTableMin" in finding.effect
    assert "(2: " in finding.what
    assert finding.severity == "note"


def test_an_empty_table(tmp_path):
    assert [finding.what for finding in check(tmp_path, b"")] == ["no lines"]


@needs_shared
@pytest.mark.parametrize(
    "name", ["alignment-and-counts", "factored-sparse-12scores", "latin1-3fields-5scores"]
)
def test_tables_in_the_wild(name):
    scan = TableScan(SHARED / f"moses-regression/phrase-tables/{name}.gz")
    texts = [finding.what for finding in scan.findings() if finding.severity != "note"]
    assert all("column" in text or "order" in text for text in texts), texts
