"""Tables that are named without their .gz, as EMS names them."""

from __future__ import annotations

import json
from pathlib import Path

from helpers.files import write_gz
from helpers.tables import LONG_TABLE


def test_tables_named_without_gz(run, tmp_path: Path, model_directory):
    """As `experiment.perl` calls what it is told to prune tables with: IN OUT, neither with .gz."""
    (tmp_path / "model").mkdir()
    write_gz(tmp_path / "model" / "phrase-table.1.gz", LONG_TABLE)
    run("augment-phrase-table", "model/phrase-table.1.gz", "model/a.gz", "--model", model_directory)
    run(
        "augment-phrase-table", "model/phrase-table.1", "model/pruned.1", "--model", model_directory
    )
    found = (tmp_path / "model" / "pruned.1.gz").read_bytes()
    assert found == (tmp_path / "model" / "a.gz").read_bytes()
    assert not (tmp_path / "model" / "pruned.1").exists()
    facts = json.loads((tmp_path / "model" / "pruned.1.features.json").read_text())
    assert facts["table"].endswith("phrase-table.1.gz")
    assert "column 0" in run("doctor", "model/pruned.1").output
    four = b"".join(b"%b ||| A ||| 0.5 0.5 0.5 0.5 ||| ||| 1 1 1\n" % s for s in (b"a", b"b"))
    write_gz(tmp_path / "model" / "four.gz", four)
    run("augment-phrase-table", "model/four", "model/with", "--model", model_directory)
    run("augment-phrase-table", "model/a", "model/b.bz2", "--model", model_directory)
    assert (tmp_path / "model" / "b.bz2").is_file()


def test_a_table_is_not_overwritten_by_any_of_its_names(run, tmp_path: Path, model_directory):
    write_gz(tmp_path / "t.gz", LONG_TABLE)
    for names in (("t", "t"), ("t", "t.gz"), ("t.gz", "t.gz")):
        refused = run("augment-phrase-table", *names, "--model", model_directory, exit_code=2)
        assert "t.gz would be overwritten" in refused.stderr
    missing = run("augment-phrase-table", "u", "v", "--model", model_directory, exit_code=1)
    assert "u" in missing.stderr


def test_a_table_with_this_very_name_is_taken(run, tmp_path: Path, model_directory):
    (tmp_path / "t").write_bytes(LONG_TABLE)
    write_gz(tmp_path / "t.gz", b"damaged")
    run("augment-phrase-table", "t", "out", "--model", model_directory)
    assert (tmp_path / "out").read_bytes().count(b"\n") == LONG_TABLE.count(b"\n")
