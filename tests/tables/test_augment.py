"""`augment-phrase-table`: whole output files, interrupted runs, bad input."""

from __future__ import annotations

import gzip
import json
import re
import resource
import signal
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.equations import reference_log_probs
from helpers.files import SHARED, needs_shared, read_gz, write_gz
from helpers.models import random_model
from helpers.tables import (
    LONG_TABLE,
    TABLES,
    has_written,
    new_columns,
    start,
    waited_for,
    without_new_columns,
)

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import WordOptions, unescape
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.model import PhraseModel, load_model, save_model
from moses_feature.tables import augment as augment_module
from moses_feature.tables import pipeline
from moses_feature.tables.columns import ColumnsOfModel, NewColumns
from moses_feature.tables.parts import PartOfTable, PartReader
from moses_feature.tables.settings import PROBABILITY_COLUMN, UNKNOWN_TARGET_COLUMN


def expected_columns(model: PhraseModel, content: bytes) -> list[tuple[float, float]]:
    """Compute the new scores one pair at a time, in float64."""
    expected = []
    for line in content.split(b"\n"):
        if line:
            source, target = (tokens(field) for field in line.split(b"|||")[:2])
            ids = model.source.ids(source), model.target.ids(target)
            log_prob = max(reference_log_probs(model, *ids).sum(), -100)
            unknown = sum(word not in model.target.index for word in target)
            expected.append((np.exp(log_prob), np.exp(-unknown)))
    return expected


@pytest.mark.parametrize("name", TABLES)
def test_whole_tables(run, tmp_path, model_directory, name, monkeypatch):
    content = TABLES[name]
    write_gz(tmp_path / "in.gz", content)
    outputs = []
    for lines_per_part in (2, 1 << 14):
        monkeypatch.setattr(augment_module, "LINES_PER_PART", lines_per_part)
        run("augment-phrase-table", "in.gz", "out.gz", "--model", model_directory)
        outputs.append(read_gz(tmp_path / "out.gz"))
    assert outputs[0] == outputs[1]
    output = outputs[0]
    assert without_new_columns(output) == content
    np.testing.assert_allclose(
        np.array(new_columns(output)).reshape(-1, 2),
        np.array(expected_columns(load_model(model_directory), content)).reshape(-1, 2),
        rtol=1e-4,
    )
    described = json.loads((tmp_path / "out.features.json").read_text())
    lines = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    assert described["lines_read"] == described["lines_written"] == lines
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.gz",
        "out.features.json",
        "out.gz",
    ]


def test_gzip_of_many_members(run, tmp_path, model_directory):
    lines = TABLES["CRLF"].splitlines(keepends=True)
    (tmp_path / "in.gz").write_bytes(b"".join(gzip.compress(line, mtime=0) for line in lines))
    run("augment-phrase-table", "in.gz", "out", "--model", model_directory)
    score = rb"[0-9.e-]+ 1"
    expected = rb"a \|\|\| A \|\|\| 0.5 1 %b\r\nb \|\|\| B \|\|\| 0.5 1 %b \|\|\| 0-0\r\n"
    assert re.fullmatch(expected % (score, score), (tmp_path / "out").read_bytes())


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_compressions(run, tmp_path, model_directory, suffix):
    (tmp_path / "in").write_bytes(TABLES["shared prefixes"])
    run("augment-phrase-table", "in", f"out{suffix}", "--model", model_directory)
    run("augment-phrase-table", f"out{suffix}", "again", "--model", model_directory)
    twice = (tmp_path / "again").read_bytes()
    assert without_new_columns(without_new_columns(twice)) == TABLES["shared prefixes"]


def test_standard_streams(run, tmp_path, model_directory):
    content = TABLES["shared prefixes"]
    (tmp_path / "in").write_bytes(content)
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    result = run("augment-phrase-table", "-", "-", "--model", model_directory, stdin=content)
    assert result.stdout_bytes == (tmp_path / "out").read_bytes()
    gzipped = gzip.compress(content)
    result = run("augment-phrase-table", "-", "-", "--model", model_directory, stdin=gzipped)
    assert result.stdout_bytes == (tmp_path / "out").read_bytes()


def test_features_json(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(b"a ||| A ? ||| 0.1 0.2 0.3\n? ||| A ||| 1 1 1\n")
    run("augment-phrase-table", "in", "out.gz", "--model", model_directory, "--source-unknown")
    described = json.loads((tmp_path / "out.features.json").read_text())
    assert [(column["name"], column["index"]) for column in described["columns"]] == [
        ("p(target|source)", 3),
        ("exp(-unknown target words)", 4),
        ("exp(-unknown source words)", 5),
    ]
    assert described["unknown_source_words"] == described["unknown_target_words"] == 1
    assert described["model_sha256"] == load_model(model_directory).digest
    assert described["seed"] == 1
    last = [line.split()[-2:] for line in read_gz(tmp_path / "out.gz").splitlines()]
    assert last == [[b"0.367879", b"1"], [b"1", b"0.367879"]]


def test_clipped_scores(run, tmp_path):
    model = random_model(scale=9.0)
    save_model(tmp_path / "wild.model", model)
    (tmp_path / "in").write_bytes(b"a ||| " + b"C noir " * 40 + b"||| 1\n")
    done = run("augment-phrase-table", "in", "out", "--model", "wild.model")
    assert "warning: 1 of the new scores" in done.stderr
    assert b"||| 1 3.72008e-44 1\n" in (tmp_path / "out").read_bytes()
    assert json.loads((tmp_path / "out.features.json").read_text())["clipped_scores"] == 1


def test_only_what_the_input_needs(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLES["shared prefixes"])
    (tmp_path / "dev").write_bytes(b"x a  b\td a\n\xe9 b d\n")
    run("augment-phrase-table", "in", "all", "--model", model_directory)
    run("augment-phrase-table", "in", "some", "--model", model_directory, "--phrases-of", "dev")
    kept = [b"a", b"a b", b"a b d"]
    everything = (tmp_path / "all").read_bytes().splitlines(True)
    expected = [line for line in everything if line.split(b" |||")[0] in kept]
    assert (tmp_path / "some").read_bytes() == b"".join(expected)
    described = json.loads((tmp_path / "some.features.json").read_text())
    assert (described["lines_read"], described["lines_written"]) == (30, 18)


def test_phrases_of_up_to_ten_tokens_are_kept(run, tmp_path, model_directory):
    words = [b"w%d" % n for n in range(12)]
    (tmp_path / "in").write_bytes(
        b"".join(b"%b ||| A ||| 1\n" % b" ".join(words[:n]) for n in (9, 10, 11))
    )
    (tmp_path / "dev").write_bytes(b" ".join(words))
    run("augment-phrase-table", "in", "out", "--model", model_directory, "--phrases-of", "dev")
    assert [
        len(tokens(line.split(b"|||")[0])) for line in (tmp_path / "out").read_bytes().splitlines()
    ] == [9, 10]


def probabilities(path: Path) -> list[float]:
    return [probability for probability, _ in new_columns(path.read_bytes())]


def test_factors(run, tmp_path, model_directory):
    (tmp_path / "plain").write_bytes(b"a b ||| A B ||| 1\n")
    (tmp_path / "factored").write_bytes(b"a|X b|Y ||| x|A y|B ||| 1\n")
    run("augment-phrase-table", "plain", "p", "--model", model_directory)
    run(
        "augment-phrase-table",
        "factored",
        "f",
        "--model",
        model_directory,
        "--source-factor",
        0,
        "--target-factor",
        1,
    )
    assert probabilities(tmp_path / "f") == probabilities(tmp_path / "p")
    result = run(
        "augment-phrase-table",
        "plain",
        "q",
        "--model",
        model_directory,
        "--source-factor",
        1,
        exit_code=1,
    )
    assert "plain at line 1: expected factor 1" in result.stderr


def test_escapes(run, tmp_path):
    """The same model, trained on plain or on escaped text, gives an escaped table its scores."""
    escaped = random_model()
    plain = PhraseModel(
        escaped.network,
        *(
            Vocabulary(tuple(map(unescape, side.shortlist)))
            for side in (escaped.source, escaped.target)
        ),
        WordOptions(),
        {},
        escaped=False,
    )
    save_model(tmp_path / "escaped.model", escaped)
    save_model(tmp_path / "plain.model", plain)
    (tmp_path / "escaped").write_bytes(b"&apos; dog ||| &apos; chien ||| 1\n")
    (tmp_path / "plain").write_bytes(b"' dog ||| ' chien ||| 1\n")
    for table, model, flags in (
        ("escaped", "escaped.model", []),
        ("escaped", "plain.model", []),
        ("plain", "escaped.model", ["--escaped", "no"]),
        ("plain", "plain.model", ["--escaped", "no"]),
    ):
        run("augment-phrase-table", table, f"{table}-{model}", "--model", model, *flags)
    outputs = [probabilities(path) for path in tmp_path.glob("*-*.model")]
    assert len(outputs) == 4
    assert all(output == outputs[0] for output in outputs)


def test_hierarchical_tables(run, tmp_path, model_directory):
    (tmp_path / "rules").write_bytes(b"[X][X] a [X] ||| [X][X] A [X] ||| 1 ||| 0-0\n")
    result = run("augment-phrase-table", "rules", "out", "--model", model_directory, exit_code=1)
    assert "rules at line 1: expected a phrase, found a hierarchical" in result.stderr
    assert not list(tmp_path.glob("out*"))
    run("augment-phrase-table", "rules", "out", "--model", model_directory, "--hierarchical")
    assert new_columns((tmp_path / "out").read_bytes())[0][1] == 1


def test_linked_non_terminals(run, tmp_path, model_directory):
    """A rule is scored as the phrase pair whose symbols have the numbers of its links."""
    rule = b"[X][X] [X][X] a [X] ||| [X][X] [X][X] A [X] ||| 1 ||| "
    (tmp_path / "rules").write_bytes(rule + b"0-0 1-1 2-2\n" + rule + b"0-1 1-0 2-2\n")
    (tmp_path / "pairs").write_bytes(
        b"[1] [2] a ||| [1] [2] A ||| 1\n[1] [2] a ||| [2] [1] A ||| 1\n"
    )
    run("augment-phrase-table", "rules", "of-rules", "--model", model_directory, "--hierarchical")
    run("augment-phrase-table", "pairs", "of-pairs", "--model", model_directory)
    straight, crossed = probabilities(tmp_path / "of-rules")
    assert straight != crossed
    assert (straight, crossed) == tuple(probabilities(tmp_path / "of-pairs"))


def test_without_a_model_one_is_trained(run, tmp_path):
    (tmp_path / "in").write_bytes(TABLES["shared prefixes"])
    (tmp_path / "moses.ini").write_text(
        "[feature]\nPhraseDictionaryMemory name=T num-features=2 path=in\n[weight]\nT= 1 1\n"
    )
    sizes = ["--sizes", "hidden=7 embedding=5 maxout=3 rank=2"]
    run(
        "augment-phrase-table",
        "in",
        "out.gz",
        *sizes,
        "--updates",
        3,
        "--seed",
        5,
        "--ini",
        "moses.ini",
        "--ini-out",
        "new.ini",
    )
    model = load_model(tmp_path / "out.model")
    assert model.network.sizes.hidden == 7
    assert model.training["settings"]["seed"] == 5
    assert without_new_columns(read_gz(tmp_path / "out.gz")) == TABLES["shared prefixes"]
    assert f"num-features=4 path={tmp_path}/out.gz" in (tmp_path / "new.ini").read_text()
    assert "T= 1 1 0.1 0.1" in (tmp_path / "new.ini").read_text()


def test_parts_are_finished_in_their_order_and_few_wait():
    """A pool that ends each part when the second one after it begins."""
    parts = [PartOfTable(number, b"", [], 1, 0, "", None) for number in range(20)]
    futures: list[Future[int]] = [Future() for _ in parts]
    finished: list[int] = []

    def submit(part: PartOfTable) -> Future[int]:
        assert part.number - len(finished) <= pool.room
        for future in futures[: max(part.number - 1, 0)]:
            if not future.done():
                future.set_result(0)
        if part.number == len(parts) - 1:
            futures[-2].set_result(0)
            futures[-1].set_result(0)
        return futures[part.number]

    pool = SimpleNamespace(room=3, submit=submit)
    augment_module._score(parts, pool, lambda part, _: finished.append(part.number))
    assert finished == [*range(len(parts))]


BAD_LINES = {
    "two fields": (b"b ||| B\n", "expected 3 to 7 fields separated by |||, found 2"),
    "missing separator": (b"b B ||| 0.5 ||| 0-0\n", "expected scores (finite numbers), found"),
    "words for scores": (b"b ||| B ||| half 1\n", "expected scores (finite numbers), found"),
    "other number of scores": (b"b ||| B ||| 1 1\n", "expected 1 scores as in the lines before"),
    "a rule": (b"[X][X] [X] ||| [X][X] [X] ||| 1\n", "expected a phrase, found a hierarchical"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_bad_lines(run, tmp_path, model_directory, case):
    line, message = BAD_LINES[case]
    write_gz(tmp_path / "in.gz", b"a ||| A ||| 1\n" * 6 + line)
    result = run("augment-phrase-table", "in.gz", "out.gz", "--model", model_directory, exit_code=1)
    assert f"Error: in.gz at line 7: {message}" in result.stderr
    assert not list(tmp_path.glob("out*"))


def test_bad_files(run, tmp_path, model_directory):
    content = gzip.compress(b"".join(b"a%d ||| A ||| 1\n" % n for n in range(99_999)))
    (tmp_path / "in.gz").write_bytes(content[: len(content) // 2])
    (tmp_path / "folder").mkdir()
    for table, model, exit_code, message in (
        ("in.gz", model_directory, 1, "truncated"),
        ("folder", model_directory, 1, "folder: expected a file, found a directory"),
        ("none", model_directory, 1, "none: No such file"),
        ("in.gz", "folder", 1, "config.json is missing"),
    ):
        result = run("augment-phrase-table", table, "out.gz", "--model", model, exit_code=exit_code)
        assert message in result.stderr
        assert not list(tmp_path.glob("out*"))


def test_wrong_usage(run, tmp_path, model_directory):
    (tmp_path / "in").write_bytes(TABLES["one line"])
    model = ("--model", model_directory)
    for arguments, message in (
        (("in", "-"), "needs --model"),
        (("-", "out"), "give a file name or --model"),
        (("in", "in", *model), "in would be overwritten"),
        (("in", ".", *model), "found a directory"),
        (("in", "no/where", *model), "there is no directory"),
        (("in", "out", *model, "--updates", 3), "--updates is for training"),
        (("in", "out", *model, "--ini", "x"), "--ini and --ini-out go together"),
        (("in", "out", *model, "--device", "warp"), "device 'warp' cannot be used"),
        (("in", "out", *model, "--escaped", "maybe"), "Invalid value"),
        (("in", "out", *model, "--hierarchical", "--phrases-of", "in"), "not with --hierarchical"),
    ):
        result = run("augment-phrase-table", *arguments, exit_code=2)
        assert message in result.stderr
    assert (tmp_path / "in").read_bytes() == TABLES["one line"]


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path, model_directory, monkeypatch, run):
    monkeypatch.setattr(augment_module, "LINES_PER_PART", 97)
    write_gz(tmp_path / "in.gz", LONG_TABLE)
    run("augment-phrase-table", "in.gz", "whole.gz", "--model", model_directory)

    arguments = ("in.gz", "out.gz", "--model", model_directory)
    process = start(tmp_path, *arguments)
    journal = tmp_path / "out.gz.journal"
    waited_for(lambda: has_written(journal, 300), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "out.gz").exists()
    with (tmp_path / "out.gz.partial").open("ab") as partial:
        partial.write(b"half a member, not in the journal")

    refused = run("augment-phrase-table", *arguments, exit_code=2)
    assert "--resume continues it" in refused.stderr
    other = tmp_path / "other.model"
    save_model(other, random_model(seed=9))
    refused = run(
        "augment-phrase-table", "in.gz", "out.gz", "--model", other, "--resume", exit_code=1
    )
    assert "out.gz.journal: expected a run with model" in refused.stderr
    write_gz(tmp_path / "changed.gz", LONG_TABLE.replace(b"w0", b"v0"))
    refused = run("augment-phrase-table", "changed.gz", *arguments[1:], "--resume", exit_code=1)
    assert "are not those that the unfinished run read" in refused.stderr

    partial = (tmp_path / "out.gz.partial").rename(tmp_path / "kept")
    (tmp_path / "out.gz").write_bytes(b"an older output")
    refused = run("augment-phrase-table", *arguments, "--resume", exit_code=1)
    assert "bytes that the unfinished run wrote" in refused.stderr
    assert (tmp_path / "out.gz").read_bytes() == b"an older output"
    partial.rename(tmp_path / "out.gz.partial")

    run("augment-phrase-table", *arguments, "--resume")
    assert (tmp_path / "out.gz").read_bytes() == (tmp_path / "whole.gz").read_bytes()
    described = [
        json.loads((tmp_path / f"{name}.features.json").read_text()) for name in ("out", "whole")
    ]
    for key in ("lines_read", "lines_written", "table_sha256", "unknown_target_words"):
        assert described[0][key] == described[1][key]
    assert not list(tmp_path.glob("*.journal")) + list(tmp_path.glob("*.partial"))


def test_helpers_give_the_bytes_of_one_process(tmp_path, model_directory, monkeypatch, run):
    """Three helpers, so that parts overtake each other."""
    monkeypatch.setattr(augment_module, "LINES_PER_PART", 97)
    write_gz(tmp_path / "in.gz", LONG_TABLE)
    run("augment-phrase-table", "in.gz", "many.gz", "--model", model_directory, "--threads", 12)
    monkeypatch.setattr(pipeline, "helper_process", pipeline.HelperHere)
    run("augment-phrase-table", "in.gz", "one.gz", "--model", model_directory)
    assert (tmp_path / "many.gz").read_bytes() == (tmp_path / "one.gz").read_bytes()


def test_helpers_do_not_import_what_lies_about(tmp_path, model_directory, monkeypatch, run):
    monkeypatch.setattr(augment_module, "LINES_PER_PART", 97)
    (tmp_path / "numpy.py").write_text("raise ImportError")
    (tmp_path / "in").write_bytes(LONG_TABLE)
    run("augment-phrase-table", "in", "out", "--model", model_directory)


def test_a_bad_line_in_a_later_part(tmp_path, model_directory, monkeypatch, run):
    monkeypatch.setattr(augment_module, "LINES_PER_PART", 97)
    lines = LONG_TABLE.splitlines(keepends=True)
    lines[1234] = b"a ||| A ||| 0.5\n"
    (tmp_path / "in").write_bytes(b"".join(lines))
    (tmp_path / "text").write_bytes(b"a w7\na w333\n")
    for options in ((), ("--phrases-of", "text")):
        result = run(
            "augment-phrase-table", "in", "out", "--model", model_directory, *options, exit_code=1
        )
        assert "in at line 1235: expected 2 scores as in the lines before, found 1" in result.stderr
        assert not list(tmp_path.glob("out*"))


def test_parts_from_many_threads(scorer, tmp_path):
    """Whoever comes first, each part gets its own scores."""
    (tmp_path / "table").write_bytes(LONG_TABLE)
    with LineReader(tmp_path / "table") as reader:
        parts = list(PartReader(reader, 29, None, None))
    of_model = ColumnsOfModel(
        (PROBABILITY_COLUMN, UNKNOWN_TARGET_COLUMN), scorer.packer, WordOptions()
    )
    columns = NewColumns([of_model], "table", "out")
    with closing(pipeline.Pipeline([scorer], columns, 2)) as alone:
        expected = [alone.submit(part).result() for part in parts]
    with (
        closing(pipeline.Pipeline([scorer], columns, 2)) as shared,
        ThreadPoolExecutor(8) as threads,
    ):
        found = list(threads.map(lambda part: shared.submit(part).result(), parts))
    assert found == expected
    assert len({part.content for part in expected}) == len(parts)


@pytest.mark.slow
def test_a_lost_helper(tmp_path, model_directory, monkeypatch, run):
    """What is done is kept, and the run goes on from there."""
    monkeypatch.setattr(augment_module, "LINES_PER_PART", 97)
    write_gz(tmp_path / "in.gz", LONG_TABLE)
    run("augment-phrase-table", "in.gz", "whole.gz", "--model", model_directory)

    class ShortLived:
        calls = 0

        def __init__(self, columns: NewColumns) -> None:
            self._process = started(columns)

        def call(self, method, *arguments):
            type(self).calls += 1
            if self.calls == 20:
                self._process._process.kill()
            return self._process.call(method, *arguments)

        def close(self):
            self._process.close()

    started = pipeline.helper_process
    monkeypatch.setattr(pipeline, "helper_process", ShortLived)
    arguments = ("augment-phrase-table", "in.gz", "out.gz", "--model", model_directory)
    result = run(*arguments, exit_code=1)
    assert "a helper process ended without a word, exit code -9" in result.stderr
    monkeypatch.setattr(pipeline, "helper_process", started)
    run(*arguments, "--resume")
    assert (tmp_path / "out.gz").read_bytes() == (tmp_path / "whole.gz").read_bytes()


def test_helpers_import_neither_torch_nor_commands():
    program = (
        "import sys, moses_feature.tables.columns as _; print({'torch', 'click'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.slow
def test_a_full_disk(tmp_path, model_directory, run):
    write_gz(tmp_path / "in.gz", LONG_TABLE)
    limit = 1 << 13
    process = start(
        tmp_path,
        "in.gz",
        "out",
        "--model",
        model_directory,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 1
    assert "Error: out: cannot be written: File too large" in errors
    assert "--resume continues it" in errors
    assert not (tmp_path / "out").exists()
    run("augment-phrase-table", "in.gz", "out", "--model", model_directory, "--resume")
    assert without_new_columns((tmp_path / "out").read_bytes()) == LONG_TABLE


@needs_shared
@pytest.mark.parametrize(
    "name",
    ["alignment-and-counts", "factored-sparse-12scores", "latin1-3fields-5scores", "sparse-tiny"],
)
def test_tables_in_the_wild(run, tmp_path, model_directory, name):
    path = SHARED / f"moses-regression/phrase-tables/{name}.gz"
    run("augment-phrase-table", path, "out.gz", "--model", model_directory)
    assert without_new_columns(read_gz(tmp_path / "out.gz")) == read_gz(path)


@needs_shared
@pytest.mark.parametrize("name", ["hierarchical-tiny", "target-syntax"])
def test_rules_in_the_wild(run, tmp_path, model_directory, name):
    path = SHARED / f"moses-regression/phrase-tables/{name}.gz"
    run("augment-phrase-table", path, "out.gz", "--model", model_directory, exit_code=1)
    run("augment-phrase-table", path, "out.gz", "--model", model_directory, "--hierarchical")
    assert without_new_columns(read_gz(tmp_path / "out.gz")) == read_gz(path)
