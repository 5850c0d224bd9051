"""Binary tables, which Moses' programs make: what `system add` checks of one."""

from __future__ import annotations

import gzip
from pathlib import Path

from moses_feature.moses.ini import MosesIni

TABLE = b"""a b ||| A ||| 1 1 1 1 0.1 1 ||| 0-0
a ||| B C ||| 0 1e-60 0.5 1 0.2 0.367879 ||| 0-0
"""
INI = """[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TM0 num-features=6 path=table.gz table-limit=20
[weight]
UnknownWordPenalty0= 1
TM0= 1 2 3 4 5 6
"""


def test_a_binary_table_is_named_in_an_ini(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.gz").write_bytes(gzip.compress(TABLE))
    Path("moses.ini").write_text(INI)
    Path("out").mkdir()
    Path("binary.ini").write_text(
        Path("moses.ini")
        .read_text()
        .replace("PhraseDictionaryMemory", "ProbingPT")
        .replace("num-features=6", "num-features=4")
        .replace("TM0= 1 2 3 4 5 6", "TM0= 1 2 3 4")
    )
    refused = run("system", "add", "binary.ini", "new.ini", "--table", "table.gz", exit_code=1)
    assert "and give --binary-path, too" in refused.stderr
    fit = ("system", "add", "binary.ini", "new.ini", "--table", "table.gz", "--binary-path", "out")
    nothing = run(*fit, exit_code=1)
    assert "out: expected a table for ProbingPT, with a file config in it, found none" in (
        nothing.stderr
    )
    Path("out/config").write_text("num_scores\t4\n")
    assert "out: expected 6 scores as in table.gz, found 4" in run(*fit, exit_code=1).stderr
    Path("out/config").write_text("num_scores\t6\n")
    assert "--decoder moses" in run(*fit).stderr
    lone = run(
        "system", "add", "binary.ini", "x", "--same-table", "--binary-path", "out", exit_code=2
    )
    assert "--binary-path needs --table" in lone.stderr
    table = MosesIni.read("new.ini").table()
    assert (table.kind, table.score_count) == ("ProbingPT", 6)
    assert table.arguments["path"] == str(tmp_path / "out")
    missing = run(
        *("system", "add", "binary.ini", "x.ini", "--table", "table.gz", "--binary-path", "no"),
        exit_code=1,
    )
    assert "no: expected a binary table, found none" in missing.stderr
    text = run(
        *("system", "add", "moses.ini", "x.ini", "--table", "table.gz", "--binary-path", "out"),
        exit_code=1,
    )
    assert "expected more than the 6 scores" in text.stderr
