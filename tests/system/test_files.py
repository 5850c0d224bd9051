"""Whole files, locked directories, errors that cross processes."""

from __future__ import annotations

import os
import pickle

import pytest

from moses_feature.moses import lines as lines_module
from moses_feature.moses.lines import LineReader
from moses_feature.runtime.errors import DataError, FormatError, OutputError, printable
from moses_feature.runtime.files import locked_directory, open_output, whole_file, write_whole


def test_a_refused_run_leaves_the_lock_of_the_first_one(tmp_path):
    directory = tmp_path / "d"
    with locked_directory(directory, "training"):
        for _ in range(3):
            with (
                pytest.raises(OutputError, match="another run is training"),
                locked_directory(directory, "training"),
            ):
                pass
            assert directory.is_dir()
    assert not directory.exists()


def test_what_killed_runs_left_is_removed(tmp_path):
    (tmp_path / ".state.json.123.tmp").touch()
    (tmp_path / ".mine.tmp").touch()
    with locked_directory(tmp_path, "tuning"):
        assert {path.name for path in tmp_path.rglob("*")} == {".mine.tmp"}


def test_what_a_killed_writer_left_goes_with_a_later_one(tmp_path):
    """After a day; not what becomes another file, or a folder."""
    for name in (".[a].1.tmp", ".[a].2.tmp", ".[a].gz.1.tmp", ".b.1.tmp"):
        (tmp_path / name).touch()
    (tmp_path / ".[a].3.tmp").mkdir()
    for path in tmp_path.iterdir():
        if path.name != ".[a].2.tmp":
            os.utime(path, (1e9, 1e9))
    write_whole(tmp_path / "[a]", b"x")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"[a]", ".[a].2.tmp", ".[a].gz.1.tmp", ".b.1.tmp", ".[a].3.tmp"}


def test_special_files_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="found a special file"), open_output(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


def test_permissions_are_those_of_new_files(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", b"x")
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def test_a_link_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OutputError, match="leads nowhere"), whole_file(tmp_path / "a"):
        pass


def test_nothing_is_left_of_a_file_that_fails(tmp_path):
    with pytest.raises(OutputError), open_output(tmp_path / "a.gz"):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "o").touch()
    refused = pytest.raises(OutputError, match="o/x: cannot be written: Not a directory")
    with refused, whole_file(tmp_path / "o" / "x"):
        pass


def test_errors_keep_their_class_and_text():
    for error in (FormatError("t", "a", "b", 3), DataError("x")):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (type(again), str(again)) == (type(error), str(error))


def test_escape_sequences_stay_out_of_the_terminal():
    assert printable("a\x1b[31mé\n\t\x07") == "a\\x1b[31mé\n\t\\x07"


class Broken:
    """A file on a device that fails."""

    def readline(self, _: int) -> bytes:
        raise OSError(5, "Input/output error")

    def close(self) -> None:
        """Nothing to close."""


def test_a_failing_device_is_no_bad_data(tmp_path):
    (tmp_path / "t").write_bytes(b"a\nb\n")
    with LineReader(tmp_path / "t") as reader:
        reader._lines = Broken()
        with pytest.raises(Exception, match="cannot be read: Input/output error") as raised:
            list(reader)
    assert not isinstance(raised.value, DataError)


def test_lines_that_never_end(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 10)
    (tmp_path / "t").write_bytes(b"012345678\n0123456789\n")
    with LineReader(tmp_path / "t") as reader, pytest.raises(FormatError, match="at line 2"):
        list(reader)
