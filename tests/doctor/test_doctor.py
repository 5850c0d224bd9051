"""A healthy system, and what users reported: each failure is named, and nothing else is."""

from __future__ import annotations

import gzip
import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moses_feature.doctor.examine import examine
from moses_feature.doctor.finding import Finding

WORDS = 40
SENTENCES = 60
INI = """[input-factors]
0
[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TM0 num-features=4 path={folder}/table.gz input-factor=0 output-factor=0
KENLM name=LM0 factor=0 path={folder}/lm.arpa order=2
[weight]
UnknownWordPenalty0= 1
TM0= 0.2 0.2 0.2 0.2
LM0= 0.5
"""


def word(number: int) -> str:
    """Return a source word: some have an apostrophe, some a capital."""
    return f"{'Mot' if number % 4 else 'd&apos;'}{chr(97 + number % 26)}{number}"


def translated(text: str) -> str:
    return " ".join(f"T{token[::-1]}" for token in text.split())


@pytest.fixture
def system(tmp_path, monkeypatch) -> Path:
    """Files in which nothing is wrong."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(2)
    source = [" ".join(word(n) for n in generator.integers(0, WORDS, 8)) for _ in range(SENTENCES)]
    Path("dev.en").write_text("".join(f"{line}\n" for line in source))
    Path("dev.fr").write_text("".join(f"{translated(line)}\n" for line in source))
    lines = []
    for number in range(WORDS):
        good, bad = (translated(word(n)) for n in (number, (number + 1) % WORDS))
        for target, p in ((good, generator.uniform(0.6, 0.9)), (bad, 0.1)):
            inverse = generator.uniform(0.5, 0.9)
            scores = f"{inverse:.4f} {p / 2:.4f} {p:.4f} {inverse / 2:.4f}"
            lines.append(f"{word(number)} ||| {target} ||| {scores} ||| 0-0 ||| 9 9 9 ||| |||")
    write_table(lines)
    words = sorted({token for line in source for token in translated(line).split()})
    unigrams = "".join(f"-1.5\t{token}\t0\n" for token in ["<unk>", "<s>", "</s>", *words])
    Path("lm.arpa").write_text(
        f"\\data\\\nngram 1={len(words) + 3}\nngram 2=1\n\n\\1-grams:\n{unigrams}\n"
        "\\2-grams:\n-0.5\t<s> </s>\n\n\\end\\\n"
    )
    Path("moses.ini").write_text(INI.format(folder=tmp_path))
    return tmp_path


def write_table(lines: list[str]) -> None:
    content = sorted(f"{line}\n".encode() for line in lines)
    Path("table.gz").write_bytes(gzip.compress(b"".join(content)))


def table_lines() -> list[str]:
    return gzip.decompress(Path("table.gz").read_bytes()).decode().splitlines()


def change_scores(change: Callable[[int, list[str]], list[str]]) -> None:
    lines = []
    for number, line in enumerate(table_lines()):
        fields = line.split(" ||| ")
        fields[2] = " ".join(change(number, fields[2].split()))
        lines.append(" ||| ".join(fields))
    write_table(lines)


def change(path: str, old: str, new: str) -> None:
    content = Path(path).read_text()
    assert old in content
    Path(path).write_text(content.replace(old, new))


def change_lines(path: str, of_line: Callable[[str], str]) -> None:
    lines = Path(path).read_text().splitlines()
    Path(path).write_text("".join(f"{of_line(line)}\n" for line in lines))


def found(*references: str, **options: object) -> list[Finding]:
    texts = references or ("dev.fr",)
    return list(examine("moses.ini", "dev.en", texts, **options))


@pytest.mark.usefixtures("system")
def test_nothing_is_found_in_a_healthy_system(run):
    assert found() == []
    said = run("doctor", "moses.ini", "--source", "dev.en", "--reference", "dev.fr").stdout
    *looked_at, last = said.splitlines()
    assert last == "moses.ini: nothing found"
    assert any(line.endswith("table.gz: 80 lines") for line in looked_at)
    assert "looked at dev.en: 100.0% of its words are known" in looked_at
    assert any(line.endswith("lm.arpa: order 2") for line in looked_at)


def nan_score() -> None:
    change_scores(lambda n, scores: ["nan", *scores[1:]] if n == 7 else scores)


def log_scores() -> None:
    change_scores(lambda _, scores: [f"{np.log(float(score)):.4f}" for score in scores])


def zero_weights() -> None:
    change("moses.ini", "TM0= 0.2 0.2 0.2 0.2\nLM0= 0.5", "TM0= 0 0 0 0\nLM0= 0")


def no_weights() -> None:
    change("moses.ini", "TM0= 0.2 0.2 0.2 0.2\n", "")


def large_weight() -> None:
    change("moses.ini", "LM0= 0.5", "LM0= 50")


def swapped_columns() -> None:
    def more_targets(n: int, scores: list[str]) -> list[str]:
        return [f"{float(scores[2]):.4f}", scores[1], f"{0.5 + n % 5 / 10:.4f}", scores[3]]

    change_scores(more_targets)


def count_of_the_ini() -> None:
    change("moses.ini", "num-features=4", "num-features=6")
    change("moses.ini", "TM0= 0.2 0.2 0.2 0.2", "TM0= 0.2 0.2 0.2 0.2 0.2 0.2")


def count_of_the_weights() -> None:
    change("moses.ini", "TM0= 0.2 0.2 0.2 0.2", "TM0= 0.2 0.2 0.2")


def count_of_a_line() -> None:
    change_scores(lambda n, scores: scores[:3] if n == 11 else scores)


def constant_column() -> None:
    change_scores(lambda _, scores: [*scores[:3], "0.5"])


def truncated() -> None:
    Path("table.gz").write_bytes(Path("table.gz").read_bytes()[:-40])


def missing() -> None:
    Path("lm.arpa").unlink()


def empty_table() -> None:
    write_table([])


def unsorted() -> None:
    lines = table_lines()
    content = "".join(f"{line}\n" for line in lines[::-1]).encode()
    Path("table.gz").write_bytes(gzip.compress(content))


def lower_cased() -> None:
    change_lines("dev.en", str.lower)


def unescaped() -> None:
    write_table([line.replace("Mot", "d&apos;") for line in table_lines()])
    change_lines("dev.en", lambda line: line.replace("Mot", "d'").replace("&apos;", "'"))


def not_tokenised() -> None:
    change_lines("dev.en", lambda line: " ".join(f"{token}," for token in line.split()))


def raw() -> None:
    """Neither lower-cased nor tokenised, as the table is."""
    lines = [line.replace("Mot", "mot").replace("d&apos;", "mot") for line in table_lines()]
    write_table(lines)
    change_lines("dev.en", lambda line: line.replace("d&apos;", "Mot"))
    change_lines("dev.en", lambda line: " ".join(f"({token})" for token in line.split()))


def accents(text: str) -> str:
    return text.replace("T", "é")


def accented_system() -> None:
    write_table([accents(line) for line in table_lines()])
    change_lines("dev.fr", accents)


def decomposed() -> None:
    accented_system()
    change_lines("dev.fr", lambda line: unicodedata.normalize("NFD", line))


def mojibake() -> None:
    accented_system()
    change_lines("dev.fr", lambda line: line.encode().decode("cp1252"))


def byte_order_mark_in_a_table() -> None:
    content = gzip.decompress(Path("table.gz").read_bytes())
    Path("table.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + content))


def a_plain_model_named_gz() -> None:
    Path("lm.arpa").rename("lm.arpa.gz")
    change("moses.ini", "lm.arpa", "lm.arpa.gz")


def count_of_the_weights_and_a_missing_model() -> None:
    count_of_the_weights()
    missing()


def other_language() -> None:
    Path("dev.en").write_text(Path("dev.fr").read_text())


def reference_of_the_source() -> None:
    Path("dev.fr").write_text(Path("dev.en").read_text())


def moved_reference() -> None:
    lines = Path("dev.fr").read_text().splitlines(keepends=True)
    Path("dev.fr").write_text("".join([lines[-1], *lines[:-1]]))


def shuffled_reference() -> None:
    lines = Path("dev.fr").read_text().splitlines(keepends=True)
    Path("dev.fr").write_text("".join(lines[20:] + lines[:20]))


def shorter_reference() -> None:
    lines = Path("dev.fr").read_text().splitlines(keepends=True)
    Path("dev.fr").write_text("".join(lines[1:]))


def windows_lines() -> None:
    Path("dev.en").write_bytes(Path("dev.en").read_bytes().replace(b"\n", b"\r\n"))


def byte_order_mark() -> None:
    Path("dev.fr").write_bytes(b"\xef\xbb\xbf" + Path("dev.fr").read_bytes())


def latin_1() -> None:
    Path("dev.en").write_bytes(Path("dev.en").read_bytes().replace(b"a", b"\xe9", 1))


def long_sentences() -> None:
    change_lines("dev.en", lambda line: " ".join([line] * 15))


def empty_text() -> None:
    Path("dev.en").write_text("\n" * SENTENCES)


def order_of_the_model() -> None:
    change("moses.ini", "order=2", "order=5")


def language_model_of_other_text() -> None:
    change("lm.arpa", "\tT", "\tt")


def no_language_model() -> None:
    Path("lm.arpa").write_text("what\n")


def description_of_another_table() -> None:
    columns = [{"name": "p", "index": 4}]
    Path("table.features.json").write_text(json.dumps({"columns": columns}))


def two_tables_of_one_name() -> None:
    change("moses.ini", "KENLM name=LM0", "KENLM name=TM0")


def old_format() -> None:
    change("moses.ini", "[feature]", "[ttable-file]")


def equals_in_a_path() -> None:
    Path("a=b").mkdir()
    Path("a=b/lm.arpa").write_text(Path("lm.arpa").read_text())
    change("moses.ini", "/lm.arpa", "/a=b/lm.arpa")


def text_for_a_binary_table() -> None:
    change("moses.ini", "PhraseDictionaryMemory", "ProbingPT")


def binary_table_for_text() -> None:
    Path("folder").mkdir()
    change("moses.ini", "/table.gz", "/folder")


def probing(scores: int = 4, version: int = 15) -> None:
    Path("pt").mkdir()
    config = f"API_VERSION\t{version}\nuniq_entries\t9\nnum_scores\t{scores}\n"
    Path("pt/config").write_text(config)
    change("moses.ini", "PhraseDictionaryMemory", "ProbingPT")
    change("moses.ini", "/table.gz", "/pt")


def probing_of_six() -> None:
    probing(6)


def probing_of_another_moses() -> None:
    probing(version=4)


def on_disk_of_six() -> None:
    Path("pt").mkdir()
    Path("pt/Misc.dat").write_text("Version 7\nNumScores 6\n")
    change("moses.ini", "PhraseDictionaryMemory", "PhraseDictionaryOnDisk")
    change("moses.ini", "/table.gz", "/pt")


def no_factors():
    change("moses.ini", " output-factor=0", "")


def no_operations():
    Path("osm").write_text("what\n")
    change(
        "moses.ini", "UnknownWordPenalty\n", "UnknownWordPenalty\nOpSequenceModel name=O path=osm\n"
    )
    change("moses.ini", "\nLM0=", "\nO= 1\nLM0=")


def full_stops() -> None:
    write_table([*table_lines(), ". ||| . ||| 0.9 0.9 0.9 0.8 ||| 0-0 ||| 9 9 9 ||| |||"])
    change_lines("dev.en", lambda line: f"{line}.")


def cut_model() -> None:
    text = Path("lm.arpa").read_text()
    Path("lm.arpa").write_text(text[: text.index("\\2-grams")])


def a_section_that_is_not_promised() -> None:
    change("lm.arpa", "\\end\\", "\\3-grams:\n\n\\end\\")


def a_promise_of_nothing() -> None:
    change("lm.arpa", "ngram 2=1", "ngram 2=1\nngram 3=0")


def a_promise_without_bounds() -> None:
    change("lm.arpa", "ngram 2=1", f"ngram 2={'9' * 5000}")


def a_head_alone() -> None:
    text = Path("lm.arpa").read_text()
    Path("lm.arpa").write_text(text[: text.index("\\1-grams")])


def an_end_is_missing() -> None:
    change("lm.arpa", "\\end\\\n", "")


def a_likely_word() -> None:
    change("lm.arpa", "-0.5\t<s>", "0.5\t<s>")


def no_sentence_begins() -> None:
    change("lm.arpa", "<s>", "<b>")


def a_model_named_without_gz() -> None:
    Path("lm.arpa.gz").write_bytes(gzip.compress(Path("lm.arpa").read_bytes()))
    Path("lm.arpa").unlink()


def a_folder_for_a_model() -> None:
    Path("models").mkdir()
    change("moses.ini", "/lm.arpa", "/models")


def an_empty_compact_table() -> None:
    Path("pt.minphr").touch()
    change("moses.ini", "PhraseDictionaryMemory", "PhraseDictionaryCompact")
    change("moses.ini", "/table.gz", "/pt")


def a_name_that_is_too_long() -> None:
    change("moses.ini", "/lm.arpa", f"/{'l' * 300}")


def unequal_lengths_of_unknown_words() -> None:
    shorter_reference()
    lower_cased()


def an_infinite_weight() -> None:
    change("moses.ini", "LM0= 0.5", "LM0= 1e999")


def a_weight_of_another_space() -> None:
    change("moses.ini", "LM0= 0.5", "LM0=\N{NO-BREAK SPACE}0.5")


def no_weights_that_are_tuned() -> None:
    change("moses.ini", "order=2", "order=2 tuneable=No")
    change("moses.ini", "LM0= 0.5\n", "")


def description_of_no_column() -> None:
    columns = [{"name": "p", "index": -1}]
    Path("table.features.json").write_text(json.dumps({"columns": columns}))


def a_text_that_is_not_there() -> None:
    Path("dev.en").unlink()


def no_weight_of_the_model() -> None:
    change("moses.ini", "LM0= 0.5\n", "")


def a_weight_of_zero() -> None:
    change("moses.ini", "LM0= 0.5\n", "LM0= 0\n")


def a_tiny_weight() -> None:
    change("moses.ini", "LM0= 0.5\n", "LM0= 1e-39\n")


def a_long_sentence() -> None:
    lines = Path("dev.en").read_text().splitlines()
    other = Path("dev.fr").read_text().splitlines()
    Path("dev.en").write_text("\n".join([*lines[:-1], " ".join([lines[-1]] * 40)]) + "\n")
    Path("dev.fr").write_text("\n".join([*other[:-1], " ".join([other[-1]] * 40)]) + "\n")


def no_path() -> None:
    Path("moses.ini").write_text(Path("moses.ini").read_text().replace("path=", "", 2))
    change(
        "moses.ini",
        "PhraseDictionaryMemory name=TM0 num-features=4 ",
        "PhraseDictionaryMemory name=TM0 num-features=4 path=",
    )
    lines = Path("moses.ini").read_text().splitlines()
    lines[5] = "KENLM name=LM0 factor=0 order=2"
    Path("moses.ini").write_text("\n".join(lines) + "\n")


def no_table() -> None:
    Path("moses.ini").write_text("[feature]\nWordPenalty\n[weight]\nWordPenalty0= 1\n")


def no_ini() -> None:
    Path("moses.ini").write_text("what is this\n")


def text_for_a_compact_table() -> None:
    change("moses.ini", "PhraseDictionaryMemory", "PhraseDictionaryCompact")


def weights_of_nearly_zero() -> None:
    change("moses.ini", "TM0= 0.2 0.2 0.2 0.2", "TM0= 1e-39 1e-39 1e-39 1e-39")
    change("moses.ini", "LM0= 0.5", "LM0= 1e-39")


def a_section_of_moses_alone() -> None:
    change("moses.ini", "[feature]", "[beam-threshold]\n0.1\n[feature]")


def two_ways_to_back_off() -> None:
    change("moses.ini", "[feature]", "[decoding-graph-backoff]\n0\n1\n[feature]")


def a_feature_of_moses_alone() -> None:
    change("moses.ini", "UnknownWordPenalty\n", "UnknownWordPenalty\nSourceGHKM name=G\n")
    change("moses.ini", "LM0= 0.5", "LM0= 0.5\nG= 1")


FAILURES = [
    (weights_of_nearly_zero, "problem", "all weights are nearly 0"),
    (a_section_of_moses_alone, "warning", "[beam-threshold] cannot be followed by the embedded"),
    (two_ways_to_back_off, "warning", "[decoding-graph-backoff] cannot be followed"),
    (a_feature_of_moses_alone, "warning", "expected a feature function that can be decoded"),
    (full_stops, "warning", "would be known without punctuation at their ends"),
    (cut_model, "problem", "Cannot read model"),
    (a_section_that_is_not_promised, "problem", "Expected \\end\\ but the ARPA file has"),
    (a_promise_of_nothing, "problem", "Was expecting n-gram header"),
    (
        a_promise_without_bounds,
        "problem",
        "Bad count",
    ),
    (a_head_alone, "problem", "Cannot read model"),
    (an_end_is_missing, "problem", "Cannot read model"),
    (a_likely_word, "problem", "Positive log prob"),
    (no_sentence_begins, "problem", "The ARPA file is missing <s>"),
    (a_model_named_without_gz, "problem", "lm.arpa, which is not there"),
    (a_folder_for_a_model, "problem", "models is a folder, KENLM reads a file"),
    (an_empty_compact_table, "problem", "pt.minphr: an empty file"),
    (a_name_that_is_too_long, "problem", "which is not there"),
    (unequal_lengths_of_unknown_words, "problem", "59 lines, the input has 60"),
    (an_infinite_weight, "problem", "line 10: expected weights (finite numbers), found '1e999'"),
    (a_weight_of_another_space, "problem", "line 10: expected a line like Name= 0.2 0.2"),
    (no_weights_that_are_tuned, "warning", "no weights for LM0"),
    (description_of_no_column, "warning", "expected a description of columns, found index -1"),
    (a_text_that_is_not_there, "problem", "dev.en: No such file or directory"),
    (no_weight_of_the_model, "problem", "no weights for LM0"),
    (a_weight_of_zero, "warning", "all weights of LM0 are 0"),
    (a_tiny_weight, "warning", "all weights of LM0 are nearly 0"),
    (a_long_sentence, "warning", "dev.en at line 60: 1 sentence of more than 100 words"),
    (no_path, "problem", "no path= of LM0"),
    (no_table, "problem", "no phrase table"),
    (no_ini, "problem", "this is no moses.ini"),
    (
        text_for_a_compact_table,
        "problem",
        "expected a table for PhraseDictionaryCompact, found a text table",
    ),
    (nan_score, "problem", "table.gz: score that is not a number: 1 line (8: 'nan')"),
    (log_scores, "problem", "negative score: 80 lines"),
    (zero_weights, "problem", "all weights are 0"),
    (no_weights, "problem", "no weights for TM0"),
    (large_weight, "warning", "a weight of LM0 is 50"),
    (swapped_columns, "warning", "column 2 (counted from 0) sums to more than 1"),
    (count_of_the_ini, "problem", "num-features=6, but"),
    (count_of_the_weights, "problem", "line 9: expected 4 weights for TM0 of line 5, found 3"),
    (count_of_a_line, "problem", "not as many scores as line 1: 1 line (12: 3)"),
    (constant_column, "warning", "column 3 (counted from 0) is 0.5 in every line"),
    (truncated, "problem", "expected more data, found a damaged or truncated file"),
    (missing, "problem", "lm.arpa, which is not there"),
    (empty_table, "problem", "no lines"),
    (unsorted, "note", "not in the order of LC_ALL=C sort from here"),
    (lower_cased, "problem", "would be known with a capital"),
    (unescaped, "problem", "would be known escaped (&apos; for ')"),
    (not_tokenised, "problem", "would be known without punctuation at their ends"),
    (raw, "problem", "known in lower case and without punctuation at their ends"),
    (decomposed, "problem", "would be known with composed letters (NFC)"),
    (mojibake, "problem", "would be known if it were not UTF-8 read as Latin-1 (mojibake)"),
    (byte_order_mark_in_a_table, "warning", "byte order mark (U+FEFF): 1 line (1)"),
    (a_plain_model_named_gz, "problem", "lm.arpa.gz: expected a .gz file, by its name, found one"),
    (count_of_the_weights_and_a_missing_model, "problem", "line 9: expected 4 weights"),
    (count_of_the_weights_and_a_missing_model, "problem", "lm.arpa, which is not there"),
    (other_language, "problem", "its target side 100%"),
    (reference_of_the_source, "problem", "its source side 100%"),
    (moved_reference, "problem", "do not belong to those of the input; moved by 1, they do"),
    (shuffled_reference, "problem", "its lines do not belong to those of the input"),
    (shorter_reference, "problem", "59 lines, the input has 60"),
    (windows_lines, "warning", "CR LF, as on Windows, at the end of 60 lines"),
    (byte_order_mark, "warning", "a byte order mark"),
    (latin_1, "warning", "bytes that are not UTF-8"),
    (long_sentences, "warning", "60 sentences of more than 100 words, the longest of 120"),
    (empty_text, "problem", "dev.en: no word"),
    (order_of_the_model, "warning", "order=5, but"),
    (language_model_of_other_text, "warning", "100% of the words of the references are unknown"),
    (no_language_model, "problem", 'first non-empty line was "what" not \\data\\'),
    (description_of_another_table, "problem", "it says that column 4 (counted from 0) is a new"),
    (two_tables_of_one_name, "problem", "expected each feature name once, found TM0 twice"),
    (old_format, "problem", "convert-moses-ini-to-v2.perl"),
    (equals_in_a_path, "warning", "a = in the path"),
    (text_for_a_binary_table, "problem", "expected a table for ProbingPT, with a file config"),
    (binary_table_for_text, "problem", "is a folder, PhraseDictionaryMemory reads text"),
    (probing_of_six, "problem", "pt says that it has 6 scores"),
    (probing_of_another_moses, "warning", "API_VERSION 4, this is known of 15"),
    (on_disk_of_six, "problem", "pt says that it has 6 scores"),
    (no_factors, "problem", "no output-factor= of TM0"),
    (no_operations, "problem", "osm: expected a language model for KenLM"),
]


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(("spoil", "severity", "said"), FAILURES)
def test_failures_are_named(run, spoil, severity, said):
    spoil()
    findings = found()
    named = [finding for finding in findings if said in f"{finding.where}: {finding.what}"]
    assert [finding.severity for finding in named] == [severity], [str(f) for f in findings]
    assert named[0].effect
    assert named[0].remedy
    problems = any(finding.severity == "problem" for finding in findings)
    texts = ("--source", "dev.en", "--reference", "dev.fr")
    done = run("doctor", "moses.ini", *texts, exit_code=1 if problems else 0)
    assert said in done.stdout
    assert done.stdout.count("\n  mend:   ") == len(findings)


@pytest.mark.usefixtures("system")
def test_a_table_alone(run):
    assert run("doctor", "table.gz").stdout.splitlines() == [
        "looked at table.gz: 80 lines",
        "table.gz: nothing found",
    ]
    lines = gzip.decompress(Path("table.gz").read_bytes())
    assert "-: nothing found" in run("doctor", "-", stdin=lines).stdout
    refused = run("doctor", "table.gz", "--source", "dev.en", exit_code=2).stderr
    assert "--source is for a system: table.gz is a phrase table" in refused
    description_of_another_table()
    assert "it says that column 4" in run("doctor", "table.gz", exit_code=1).stdout
    nan_score()
    assert "(8: 'nan')" in run("doctor", "table.gz", exit_code=1).stdout
    assert "No such file" in run("doctor", "nothing", exit_code=1).stderr


@pytest.mark.usefixtures("system")
def test_lines_that_were_not_read(run):
    said = run("doctor", "moses.ini", "--source", "dev.en", "--most-lines", "10").stdout
    assert "not all of its tables are text that was read to the end" in said
    run("doctor", "moses.ini", "--reference", "dev.fr", exit_code=2)
    assert "moses.ini: nothing found" in run("doctor", "moses.ini", "--most-lines", "0").stdout


@pytest.mark.usefixtures("system")
def test_two_references_and_two_tables(system):
    Path("other.fr").write_text(Path("dev.en").read_text())
    lines = table_lines()
    Path("more").write_text("".join(f"{line}\n" for line in lines[:40]))
    write_table(lines[40:])
    change(
        "moses.ini",
        "KENLM",
        f"PhraseDictionaryMemory name=TM1 num-features=4 path={system}"
        "/more input-factor=0 output-factor=0\nKENLM",
    )
    change("moses.ini", "LM0= 0.5", "LM0= 0.5\nTM1= 1 1 1 1")
    assert found() == []
    assert {finding.where for finding in found("dev.fr", "other.fr")} == {
        "other.fr",
        f"{system}/lm.arpa",
    }


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("times", [1, 7])
def test_texts_that_repeat_themselves_are_no_problem(times):
    for side in ("en", "fr"):
        lines = Path(f"dev.{side}").read_text().splitlines(keepends=True)
        Path(f"dev.{side}").write_text("".join(lines[:times] * 20))
    assert found() == []


@pytest.mark.usefixtures("system")
def test_a_table_without_single_words_is_no_problem():
    """The order of references cannot be judged by it."""
    write_table([line.replace(" ||| T", " x ||| T", 1) for line in table_lines()])
    assert found() == []


@pytest.mark.usefixtures("system")
def test_factors_are_not_compared():
    for side in ("en", "fr"):
        change_lines(f"dev.{side}", lambda line: " ".join(f"{w}|N" for w in line.split()))
    assert found() == []


@pytest.mark.usefixtures("system")
def test_a_table_that_combines_others_has_no_file():
    change(
        "moses.ini",
        "KENLM",
        "PhraseDictionaryMultiModel name=MM0 num-features=4 components=TM0 mode=interpolate\nKENLM",
    )
    change("moses.ini", "LM0= 0.5", "LM0= 0.5\nMM0= 1 1 1 1")
    warning, note = found()
    assert "found PhraseDictionaryMultiModel" in warning.what
    assert (warning.severity, note.severity) == ("warning", "note")


@pytest.mark.usefixtures("system")
def test_texts_are_read_once_so_that_they_may_be_pipes():
    read, write = os.pipe()
    os.write(write, Path("dev.en").read_bytes())
    os.close(write)
    assert list(examine("moses.ini", f"/dev/fd/{read}", ["dev.fr"])) == []
    os.close(read)


@pytest.mark.usefixtures("system")
def test_a_text_of_no_use_does_not_hide_what_is_wrong_elsewhere():
    empty_text()
    cut_model()
    shorter_reference()
    assert [finding.where.rpartition("/")[2] for finding in found()] == ["dev.en", "lm.arpa"]


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("weight", ["0", "100"])
def test_unknown_words_may_have_any_weight_whatever_their_feature_is_called(weight):
    change("moses.ini", "UnknownWordPenalty\n", "UnknownWordPenalty name=U\n")
    change("moses.ini", "UnknownWordPenalty0= 1", f"U= {weight}")
    assert found() == []
