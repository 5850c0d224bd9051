"""Tables cut into parts, shards of them, and the whole made of shards."""

from __future__ import annotations

import json
import shutil

import pytest
from helpers.files import read_gz, write_gz
from helpers.tables import LONG_TABLE

from moses_feature.moses.lines import LineReader
from moses_feature.tables import augment as augment_module
from moses_feature.tables.shards import PartReader


def parts_of(path, size: int, kept: set[bytes] | None = None) -> list[list[bytes]]:
    with LineReader(path) as reader:
        return [part.lines for part in PartReader(reader, size, kept, None)]


def test_parts_end_where_a_source_phrase_ends(tmp_path):
    """But for a source phrase with more targets than two parts hold."""
    targets = {"a": 2, "b": 3, "c": 1, "d": 9, "e": 1}
    lines = [f"{s} ||| {t} ||| 1\n".encode() for s, count in targets.items() for t in range(count)]
    (tmp_path / "table").write_bytes(b"".join(lines))
    parts = parts_of(tmp_path / "table", 3)
    assert [b"".join(line[:1] for line in part) for part in parts] == [
        b"aabbb",
        b"cddddd",
        b"dddd",
        b"e",
    ]
    assert [line for part in parts for line in part] == lines
    kept = parts_of(tmp_path / "table", 3, {b"b", b"d"})
    assert [b"".join(line[:1] for line in part) for part in kept] == [b"bbb", b"dddddd", b"ddd"]
    assert [line for part in parts_of(tmp_path / "table", 1) for line in part] == lines


def test_peeking_changes_nothing(tmp_path):
    (tmp_path / "text").write_bytes(b"1\n2\n\n4")
    with LineReader(tmp_path / "text") as plain:
        lines = list(plain)
        digest = plain.digest()
    with LineReader(tmp_path / "text") as reader:
        assert reader.peek() == b"1\n"
        seen = [(line, reader.peek(), reader.peek(), reader.line_number) for line in reader]
        assert reader.digest() == digest
    assert [line for line, *_ in seen] == lines
    assert [ahead for _, ahead, *_ in seen] == [*lines[1:], b""]
    assert [again for _, _, again, _ in seen] == [*lines[1:], b""]
    assert [number for *_, number in seen] == [1, 2, 3, 4]


@pytest.fixture
def shards(tmp_path, model_directory, monkeypatch, run):
    """Return a function that augments a table in shards."""
    monkeypatch.setattr(augment_module, "LINES_PER_PART", 97)
    write_gz(tmp_path / "in.gz", LONG_TABLE)

    def augment(count: int, *options: object) -> list[str]:
        names = [f"out.{index}.gz" for index in range(1, count + 1)]
        for index, name in enumerate(names, 1):
            run(
                "augment-phrase-table",
                "in.gz",
                name,
                "--model",
                model_directory,
                "--shard",
                f"{index}/{count}",
                *options,
            )
        return names

    return augment


@pytest.mark.parametrize(
    ("count", "options"), [(1, ()), (3, ()), (7, ("--source-unknown", "--phrases-of", "text"))]
)
def test_merged_shards_have_the_bytes_of_one_run(
    run, tmp_path, model_directory, shards, count, options
):
    (tmp_path / "text").write_bytes(b"a w1 a b w3\na b w7\n")
    run("augment-phrase-table", "in.gz", "whole.gz", "--model", model_directory, *options)
    names = shards(count, *options)
    result = run("table", "merge", *reversed(names), "merged.gz")
    assert f"of {count} shards" in result.stderr
    assert (tmp_path / "merged.gz").read_bytes() == (tmp_path / "whole.gz").read_bytes()
    assert sorted(b"".join(read_gz(tmp_path / name) or b"" for name in names[:1])) != []
    whole, merged = (
        json.loads((tmp_path / f"{name}.features.json").read_text()) for name in ("whole", "merged")
    )
    for facts in (whole, merged):
        del facts["command"], facts["output"]
    assert len(merged.pop("commands_of_shards")) == count
    assert merged == whole


@pytest.mark.slow
def test_a_killed_shard_goes_on(run, tmp_path, model_directory, shards, monkeypatch):
    whole = shards(3)[1]
    shutil.copy(tmp_path / whole, tmp_path / "expected")
    described = (tmp_path / "out.2.features.json").read_text()

    class KilledError(Exception):
        pass

    class Mortal(augment_module.TableWriter):
        written = 0

        def write(self, *arguments):
            super().write(*arguments)
            type(self).written += 1
            if self.written == 4:
                raise KilledError

    (tmp_path / whole).unlink()
    command = (
        "augment-phrase-table",
        "in.gz",
        whole,
        "--model",
        model_directory,
        "--shard",
        "2/3",
    )
    with monkeypatch.context() as patch:
        patch.setattr(augment_module, "TableWriter", Mortal)
        with pytest.raises(AssertionError):
            run(*command)
    assert run(*command[:-1], "1/3", "--resume", exit_code=1).stderr.count("shard") == 1
    run(*command, "--resume")
    assert (tmp_path / whole).read_bytes() == (tmp_path / "expected").read_bytes()
    resumed = json.loads((tmp_path / "out.2.features.json").read_text())
    assert {**resumed, "command": ""} == {**json.loads(described), "command": ""}


def test_an_empty_table(run, tmp_path, shards):
    write_gz(tmp_path / "in.gz", b"")
    run("table", "merge", *shards(2), "merged.gz")
    assert read_gz(tmp_path / "merged.gz") == b""


def test_shards_that_do_not_fit(run, tmp_path, model_directory, shards):
    names = shards(3)
    other = ("out.3.gz", "--model", model_directory, "--shard", "3/3")

    def refused(*arguments: str, exit_code: int = 1) -> str:
        message = run("table", "merge", *arguments, exit_code=exit_code).stderr
        assert not (tmp_path / "merged.gz").exists()
        return message

    assert "shards 1 to 3 of 3, each once, found 1, 3" in refused(names[0], names[2], "merged.gz")
    assert "found 1, 1, 2, 3" in refused(names[0], *names, "merged.gz")
    assert "expected files with .gz" in refused(*names, "merged.xz", exit_code=2)
    assert "would be overwritten" in refused(*names, "out.3.gz", exit_code=2)
    (tmp_path / "link.gz").symlink_to("out.2.gz")
    for same in ("./out.2.gz", tmp_path / "out.2.gz", "link.gz"):
        assert "would be overwritten" in refused(*names, str(same), exit_code=2)
    assert "missing" in refused(*names, "in.gz", "merged.gz")
    run("augment-phrase-table", "in.gz", "whole.gz", "--model", model_directory)
    assert "expected a shard, found a whole table" in refused(*names, "whole.gz", "merged.gz")

    (tmp_path / "out.1.gz").write_bytes((tmp_path / "out.1.gz").read_bytes()[:-1] + b"x")
    assert "out.1.gz: expected the file that" in refused(*names, "merged.gz")
    shards(3)
    described = json.loads((tmp_path / "out.2.features.json").read_text())
    sizes = described["shard"]["parts"]
    for changed, message in (
        ({"shard": {"index": 1}}, "expected a description of a shard"),
        ({"shard": 3}, "expected a description of a shard"),
        ({"lines_written": True}, "expected counts and sizes"),
        ({"lines_written": -1}, "expected counts and sizes"),
        ({"shard": described["shard"] | {"count": 10**400}}, "expected one of 3 shards"),
        ({"shard": described["shard"] | {"parts": [0.5]}}, "expected counts and sizes"),
        ({"shard": described["shard"] | {"parts": sizes[:-1]}}, "parts, found"),
        ({"shard": described["shard"] | {"parts": [2**70, *sizes[1:]]}}, "bytes that"),
    ):
        (tmp_path / "out.2.features.json").write_text(json.dumps(described | changed))
        assert message in refused(*names, "merged.gz")
    shards(3)
    run("augment-phrase-table", "in.gz", *other, "--source-unknown")
    assert "out.3.features.json: expected" in refused(*names, "merged.gz")
    write_gz(tmp_path / "in.gz", LONG_TABLE + b"z ||| Z ||| 1 1\n")
    run("augment-phrase-table", "in.gz", *other)
    assert "out.3.features.json: expected table_sha256" in refused(*names, "merged.gz")


def test_wrong_usage_of_shards(run, tmp_path, model_directory):
    write_gz(tmp_path / "in.gz", LONG_TABLE)
    model = ("--model", model_directory)
    for arguments, message in (
        (("out.gz", *model, "--shard", "0/3"), "expected I/N"),
        (("out.gz", *model, "--shard", "4/3"), "expected I/N"),
        (("out.gz", *model, "--shard", "one"), "expected I/N"),
        (("out.gz", *model, "--shard", ""), "expected I/N"),
        (("out.gz", *model, "--ray", ""), "expected local, auto"),
        (("out.gz", "--shard", "1/3"), "then give --model"),
        (("out.gz", "--ray", "local"), "then give --model"),
        (("out.gz", *model, "--shard", "1/3", "--ray", "local"), "not with --ray"),
        (("-", *model, "--shard", "1/3"), "found -"),
    ):
        result = run("augment-phrase-table", "in.gz", *arguments, exit_code=2)
        assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.gz"]
