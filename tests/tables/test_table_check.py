"""What `check` finds, and what it says that Moses would do."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.files import SHARED, needs_shared

from moses_feature.tables.check import TableFault, check_table

GOOD = b"a ||| A ||| 0.1 0.2 1 ||| 0-0 ||| 1 1 1 ||| |||\nb ||| B ||| 0.3 0.4 1e-40 ||| 0-0\n"


def check(tmp_path: Path, content: bytes) -> list[TableFault]:
    (tmp_path / "t").write_bytes(content)
    return check_table(tmp_path / "t")


def test_a_good_table(tmp_path):
    assert check(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"c ||| C\n", "not 3 to 7 fields: Moses stops or misreads the line: 1 line (3: 2)"),
        (b"c ||| C ||| 0.1 -0.2 1\n", "negative score: its log is nan and Moses silently drops"),
        (b"c ||| C ||| 0.1 0 1\n", "score of zero or below 3.7e-44: Moses takes its log as -100"),
        (b"c ||| C ||| 0.1 1e-300 1\n", "1 line (3: '1e-300')"),
        (
            b"c ||| C ||| 0.1 nan 1\n",
            "not a number: Moses stops with 'Bad score': 1 line (3: 'nan')",
        ),
        (b"c ||| C ||| 0.1 0,5 1\n", "not a number"),
        (b"c ||| C ||| 0.1 inf 1\n", "infinite in Moses: 1 line (3: 'inf')"),
        (b"c ||| C ||| 0.1 1e39 1\n", "infinite in Moses"),
        (b"c ||| C ||| 0.1 0.2\n", "not 3 scores as in line 1: Moses stops: 1 line (3: 2)"),
        (b" ||| C ||| 0.1 0.2 1\n", "empty source phrase: Moses skips the line: 1 line (3)"),
        (b"c ||| C |||\n", "no scores: Moses stops: 1 line (3)"),
        (b"c ||| C ||| 1 1 .5 ||| 0-1\n", "alignment point outside the phrases: 1 line (3: '0-1')"),
        (b"c ||| C ||| 1 1 .5 ||| x-0\n", "alignment point outside"),
        (b"c ||| C ||| 1 1 .5 ||| ||| ||| a nan\n", "sparse score that is not a finite number"),
        (b"c ||| C ||| 1 1 .5 ||| ||| ||| a 1 b\n", "sparse scores not in pairs"),
        (
            b"c ||| C ||| 1 1 .5 ||| ||| ||| ||| {{Mine 1}}\n",
            "does not know: it stops: 1 line (3: 'Mine')",
        ),
    ],
)
def test_bad_lines(tmp_path, line, expected):
    findings = [finding for finding in check(tmp_path, GOOD + line) if "order" not in str(finding)]
    assert len(findings) == 1
    assert expected in str(findings[0])
    assert not findings[0].harmless


def test_registered_properties_are_fine(tmp_path):
    line = b"c ||| C ||| 1 1 .5 ||| ||| ||| s 1 ||| {{Tree [NP]}} {{Counts 1 2}}\n"
    assert check(tmp_path, GOOD + line) == []


def test_many_lines_are_counted_and_few_shown(tmp_path):
    (finding,) = check(tmp_path, GOOD + b"c ||| C ||| 0.1 -1 1\n" * 7)
    assert "7 lines (3: '-1', 4: '-1', 5: '-1', 6: '-1', 7: '-1', …)" in str(finding)


@pytest.mark.parametrize(
    ("scores", "expected", "harmless"),
    [
        (("0.5 1", "0.4 1"), "column 1 (counted from 0) is 1 in every line", True),
        (("0.5 2.718", "0.4 2.718"), "acts as a phrase penalty", False),
        (("0.5 0", "0.4 1e-50"), "column 1: every score is at Moses' floor", False),
    ],
)
def test_columns_that_say_nothing(tmp_path, scores, expected, harmless):
    content = "".join(f"{s} ||| T ||| {v}\n" for s, v in zip("ab", scores, strict=True)).encode()
    finding = check(tmp_path, content)[-1]
    assert expected in str(finding)
    assert finding.harmless is harmless


def test_order(tmp_path):
    assert check(tmp_path, b"a b ||| T ||| 1\na ||| T ||| .5\n") == []  # as LC_ALL=C sort does
    (finding,) = check(tmp_path, b"b ||| T ||| 1\na ||| T ||| .5\nc ||| T ||| .5\n")
    assert "processPhraseTableMin" in str(finding)
    assert "(2: " in str(finding)


def test_an_empty_table(tmp_path):
    assert [str(finding) for finding in check(tmp_path, b"")] == [
        "no lines: Moses would know no phrase"
    ]


@needs_shared
@pytest.mark.parametrize(
    "name", ["alignment-and-counts", "factored-sparse-12scores", "latin1-3fields-5scores"]
)
def test_tables_in_the_wild(name):
    findings = check_table(SHARED / f"moses-regression/phrase-tables/{name}.gz")
    texts = [str(finding) for finding in findings]
    assert all("column" in text or "order" in text for text in texts), texts
