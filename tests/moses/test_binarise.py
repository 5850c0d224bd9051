"""Binary tables by Moses' programs, or stand-ins for them: options, what comes back, failures."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from moses_feature.moses.binary_tables.asking import sample_table
from moses_feature.moses.binary_tables.kinds import KINDS
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.programs import find_program
from moses_feature.runtime.errors import UsageError

PROGRAMS = ("moses", "CreateProbingPT", "processPhraseTableMin", "CreateOnDiskPt")
LINES = [
    "a b ||| A ||| 1 1 1 1 0.1 1 ||| ",
    "a ||| A ||| 0.5 0.25 0.125 1 0.3 1 ||| 0-0 ||| 1 1 1 ||| |||",
    "a ||| B C ||| 0 1e-60 0.5 1 0.2 0.367879 ||| 0-0",
    "é &apos; ||| x ||| 0.123456 2.718 0.5 0.9 0.8 0.7 ||| 0-0",
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Programs that stand in for Moses', a table of six scores, and an ini."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOSES_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "bin"
    folder.mkdir(parents=True)
    text = (Path(__file__).parents[1] / "helpers" / "stand_in_binariser.py").read_text()
    for name in PROGRAMS:
        program = folder / name
        program.write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable}"))
        program.chmod(0o755)
    habits()
    Path("table.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in LINES).encode()))
    Path("moses.ini").write_text(
        "[feature]\nUnknownWordPenalty\n"
        "PhraseDictionaryMemory name=TM0 num-features=6 path=table.gz table-limit=20\n"
        "[weight]\nUnknownWordPenalty0= 1\nTM0= 1 2 3 4 5 6\n"
    )


def habits(**of_programs: object) -> None:
    Path("home/bin/habits.json").write_text(json.dumps(of_programs))


def left() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def calls(name: str) -> list[list[str]]:
    logged = Path("home/bin/calls.log").read_text().splitlines()
    return [call[1:] for call in map(json.loads, logged) if call[0] == name]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("kind", "output", "feature", "options"),
    [
        ("probing", "out", "ProbingPT", "--num-scores 6 --log-prob"),
        ("compact", "out.minphr", "PhraseDictionaryCompact", "-nscores 6 -rankscore 2"),
        ("ondisk", "out", "PhraseDictionaryOnDisk", "1 1 6 0 2"),
    ],
)
def test_each_kind(tmp_path, run, kind, output, feature, options):
    done = run(
        *("table", "binarise", "table.gz", "out", "--kind", kind, "--ini", "moses.ini"),
        *("--ini-out", "binary.ini"),
    )
    assert Path(output).exists()
    path = tmp_path / output
    line = f"{feature} name=TM0 num-features=6 path={path} input-factor=0 output-factor=0\n"
    assert done.stdout == line
    assert "3 source phrases (4 pairs) have the scores of the text" in done.stderr
    changed = f"{feature} name=TM0 num-features=6 path={path} table-limit=20"
    expected = Path("moses.ini").read_text().splitlines()
    expected[2] = changed
    assert Path("binary.ini").read_text().splitlines() == expected
    small, whole = calls(KINDS[kind].programs[0])
    assert options in " ".join(whole)
    assert str(tmp_path / "table.gz") in whole
    assert "small.txt" in " ".join(small)
    assert left() == sorted(["binary.ini", "home", "moses.ini", output, "table.gz"])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("of_programs", "said"),
    [
        ({"keeps": 4}, "found -0.693147 -1.38629 -2.07944 0 0 0"),
        ({"loses": "a b"}, "a b ||| A: not found"),
        ({"fails": "CreateProbingPT"}, "ended with exit code 9; it had said:\nout of memory"),
        ({"fails": "moses"}, "moses ended with exit code 9"),
        ({"unknown": ["ProbingPT"]}, "Feature name ProbingPT is not registered"),
    ],
)
def test_what_goes_wrong_is_said_and_nothing_is_kept(run, of_programs, said):
    habits(**of_programs)
    refused = run(
        *("table", "binarise", "table.gz", "out", "--kind", "probing", "--ini", "moses.ini"),
        *("--ini-out", "binary.ini"),
        exit_code=1,
    )
    assert said in refused.stderr
    assert len(calls("CreateProbingPT")) == 1
    assert left() == ["home", "moses.ini", "table.gz"]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("lines", "arguments", "exit_code", "said"),
    [
        (LINES[::-1], ["--kind", "compact"], 1, "line 2: expected lines in the order of LC_ALL=C"),
        (LINES[::-1], ["--kind", "probing"], 1, "line 2: expected lines in the order of LC_ALL=C"),
        (["b ||| B ||| nan"], ["--kind", "probing"], 1, "line 1: expected"),
        (["b ||| B ||| 1_0"], ["--kind", "probing"], 1, "line 1: expected"),
        (["b |||  ||| 1"], ["--kind", "ondisk"], 1, "line 1: expected phrases of a word and more"),
        (["b|N ||| B ||| 1"], ["--kind", "ondisk"], 1, "line 1: expected words without factors"),
        (["b ||| B ||| 1 ||| 0-1"], ["--kind", "ondisk"], 1, "expected alignment points inside"),
        ([f"{'b ' * 60}||| B ||| 1"], ["--kind", "ondisk"], 1, "of at most 50 words, found none"),
        (
            ["b ||| B ||| 1 2e-05 3 4 5 6"],
            ["--kind", "probing", "--ini", "moses.ini", "--ini-out", "x"],
            1,
            "moses.ini at line 3: expected a table table, found table.gz",
        ),
        (
            LINES,
            ["--kind", "probing", "--ini", "moses.ini", "--ini-out", "no/x"],
            2,
            "no/x: there is no directory",
        ),
        (
            [LINES[0], "b ||| B ||| 1 1"],
            ["--kind", "probing"],
            1,
            "line 2: expected 6 scores as in",
        ),
        (["b ||| B ||| 1 -1"], ["--kind", "probing"], 1, "line 1: expected scores of 0 or more"),
        (["b ||| B"], ["--kind", "probing"], 1, "expected 3 to 7 fields"),
        (["b [X] ||| B [X] ||| 1"], ["--kind", "probing"], 1, "rules with non-terminals"),
        ([], ["--kind", "probing"], 1, "found an empty file"),
        (
            ["b ||| B ||| 1"],
            ["--kind", "probing", "--ini", "moses.ini", "--ini-out", "x"],
            1,
            "moses.ini at line 3: expected num-features=1 as in table, found 6",
        ),
        (LINES, ["--kind", "probing", "--ini", "moses.ini"], 2, "go together"),
        (LINES, ["--kind", "probing", "--moses", "nowhere"], 2, "looked for nowhere"),
    ],
)
def test_bad_input(run, lines, arguments, exit_code, said):
    Path("table").write_text("".join(f"{line}\n" for line in lines))
    refused = run("table", "binarise", "table", "out", *arguments, exit_code=exit_code)
    assert said in refused.stderr
    assert not Path("home/bin/calls.log").exists()
    assert not Path("out").exists()


@pytest.mark.usefixtures("files")
def test_without_asking_back_no_moses_is_needed(run):
    Path("home/bin/moses").unlink()
    missing = run("table", "binarise", "table.gz", "out", "--kind", "ondisk", exit_code=2)
    assert "no Moses program moses" in missing.stderr
    done = run("table", "binarise", "table.gz", "out", "--kind", "ondisk", "--ask", "0")
    assert "out: not asked back" in done.stderr
    there = run(
        "table", "binarise", "table.gz", "out", "--kind", "ondisk", "--ask", "0", exit_code=2
    )
    assert "out: expected a new path" in there.stderr
    Path("home/bin/processPhraseTableMin").unlink()
    missing = run("table", "binarise", "table.gz", "x", "--kind", "compact", exit_code=2)
    assert "built with bjam --with-cmph" in missing.stderr


def test_a_sample_is_drawn_evenly(tmp_path):
    """Each source phrase with the same probability, with all its lines."""
    path = tmp_path / "table"
    with path.open("w") as table:
        for source in range(20):
            for target in range(1 + source % 3):
                table.write(f"{source:02} ||| {target} ||| 0.5 1\n")
    counts: Counter[bytes] = Counter()
    for seed in range(400):
        sample = sample_table(path, 5, seed)
        assert len(sample.targets) == 5
        for source, targets in sample.targets.items():
            assert len(targets) == 1 + int(source[0]) % 3
            counts[source[0]] += 1
        assert sample.drawn == sorted(sample.drawn)
    assert sample.scores == 2
    assert len(counts) == 20
    assert all(65 < count < 140 for count in counts.values())


@pytest.mark.parametrize("kind", list(KINDS))
def test_real_moses(tmp_path, run, kind):
    """A table with all that is odd, where a real Moses is at hand."""
    try:
        for programs in (["moses"], KINDS[kind].programs):
            find_program(programs)
    except UsageError:
        pytest.skip("needs a real Moses in MOSES_HOME or on the PATH")
    generator = random.Random(1)
    words = ["a", "b", "&apos;", "é", "c\u00a0d", "1.5"]
    pairs = {
        (" ".join(generator.choices(words, k=generator.randint(1, 3))), generator.choice("XYZ"))
        for _ in range(60)
    }
    lines = [
        f"{source} ||| {target} ||| {' '.join(f'{generator.random():.6g}' for _ in range(6))}"
        " ||| 0-0 ||| 1 1 1 ||| |||\n"
        for source, target in pairs
    ]
    (tmp_path / "table").write_bytes(b"".join(sorted(line.encode() for line in lines)))
    done = run("table", "binarise", "table", "out", "--kind", kind, "--ask", "1000")
    assert f"({len(pairs)} pairs) have the scores of the text" in done.stderr


@pytest.mark.usefixtures("files")
def test_ini_add_for_a_binary_table(tmp_path, run):
    Path("binary.ini").write_text(
        Path("moses.ini")
        .read_text()
        .replace("PhraseDictionaryMemory", "ProbingPT")
        .replace("num-features=6", "num-features=4")
        .replace("TM0= 1 2 3 4 5 6", "TM0= 1 2 3 4")
    )
    run("table", "binarise", "table.gz", "out", "--kind", "probing")
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
