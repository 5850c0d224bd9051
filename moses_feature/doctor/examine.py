"""The doctor's complete examination of a system and the texts to tune it on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from moses_feature.decoder.system import System
from moses_feature.doctor.finding import MOST_LINES, Finding
from moses_feature.doctor.ini import check_factors, check_weights
from moses_feature.doctor.model_files import check_files, check_language_models, file_of
from moses_feature.doctor.neural_models import check_alignments, check_neural_models
from moses_feature.doctor.table_scan import TableScan, WordsOfTables
from moses_feature.doctor.texts import (
    Sentence,
    Side,
    check_known,
    check_line_count,
    check_order,
    check_text,
    is_factored,
    known_share,
    sample_words,
)
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import SYSTEM, MosesIni
from moses_feature.moses.ini_features import TABLE_CLASS, Feature
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import SEPARATOR
from moses_feature.moses.system_directory import WHAT, SystemDirectory, changed_files
from moses_feature.rescoring.features import scorers_of, with_rescoring
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import STANDARD_STREAM
from moses_feature.runtime.json_files import read_json
from moses_feature.tables.features_json import features_json, read_columns

Texts = dict[str, list[Sentence]]
"""Sentences by the path of their text."""
NOTHING_SEEN = "nothing can be looked at"
FAST_LINES = 5_000
"""Lines of a table that tuning itself checks: a fraction of a second."""


def is_table(path: str) -> bool:
    """Return whether a path is a text table, by its first line; the standard input is one.

    Raises:
        MosesFeatureError: a file cannot be read.
    """
    if path == STANDARD_STREAM:
        return True
    if Path(path).is_dir():
        return False
    with LineReader(path) as reader:
        return SEPARATOR.strip() in next(iter(reader), SEPARATOR)


def examine_table(path: str, say: Callable[[str], None] = lambda _: None) -> Iterator[Finding]:
    """Yield what is wrong with a text table, all of whose lines are read.

    Args:
        path: the table.
        say: called with what was checked.

    Raises:
        MosesFeatureError: the file cannot be read.
    """
    scan = TableScan(path)
    say(_size(scan))
    yield from scan.findings()
    yield from _check_description(scan)


def examine(
    system: str | Path,
    text: str | None = None,
    references: Sequence[str] = (),
    *,
    most_lines: int | None = MOST_LINES,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Finding]:
    """Yield the findings.

    Args:
        system: a moses.ini, or the directory of a system.
        text: the text to translate.
        references: reference translations of the text.
        most_lines: lines to read of each table; None for all. Texts are compared only with tables
            that were read completely.
        say: called with what was checked, and that it is well.
    """
    try:
        directory = SystemDirectory.read(Path(system))
    except MosesFeatureError as error:
        remedy = "give the path of a moses.ini, or of a system"
        yield Finding("problem", str(system), _told(system, error), NOTHING_SEEN, remedy)
        return
    ini = yield from _read(directory)
    if ini is None:
        return
    yield from _check_tuned(directory, ini)
    of_ini = [*check_factors(ini), *check_weights(ini), *check_files(ini)]
    yield from of_ini
    if all(finding.severity != "problem" for finding in of_ini):
        yield from _check_decoding(ini)
    of_input = yield from _read_texts([text] if text is not None else [])
    of_references = yield from _read_texts(references)
    for sentences in of_input.values():
        for path, translated in of_references.items():
            yield from check_line_count(path, sentences, translated)
    scans: list[TableScan] = []
    for table in ini.tables():
        scan = yield from _scan(ini, table, most_lines, _all(of_input))
        if scan is not None:
            scans.append(scan)
            say(_size(scan))
    if scans and len(scans) == len(ini.tables()) and all(scan.whole for scan in scans):
        words = WordsOfTables.of_tables(scans)
        yield from _compare(words, of_input, of_references, directory.built, say)
    elif text is not None:
        yield Finding(
            "note",
            str(ini.path),
            "not all of its tables are text that was read to the end",
            "the words of the texts were not compared with the tables",
            "give --most-lines 0 to read all of a text table"
            if scans and len(scans) == len(ini.tables())
            else "look at an ini that reads the text table",
        )
    yield from check_language_models(ini, _all(of_references), say)
    yield from check_neural_models(ini, _all(of_references), say)


def _read(system: SystemDirectory) -> Generator[Finding, None, MosesIni | None]:
    """Read an ini and yield its faults; return None if nothing else can be looked at."""
    faults: list[FormatError] = []
    path = system.ini
    try:
        ini = system.moses_ini(faults)
    except MosesFeatureError as error:
        what, remedy = _told(path, error), "give the path of a moses.ini"
        yield Finding("problem", str(path), what, NOTHING_SEEN, remedy)
        return None
    ini.check_names()
    for fault in faults:
        yield Finding(
            "problem",
            str(path),
            _told(path, fault),
            "Moses, or mert-moses.pl, stops",
            "write there what is expected",
        )
    if faults and not ini.tables():
        return None
    if not ini.tables():
        yield Finding(
            "problem",
            str(path),
            "no phrase table" if ini.features else "no [feature] section: this is no moses.ini",
            "Moses stops, or translates nothing",
            "give a moses.ini with a table; old formats are converted by "
            "convert-moses-ini-to-v2.perl of Moses",
        )
        return ini if ini.features else None
    return ini


def _check_decoding(ini: MosesIni) -> Iterator[Finding]:
    """Yield what the embedded decoder refuses, if it would refuse anything."""
    try:
        read = MosesIni.read(ini.path)
    except MosesFeatureError:
        return  # its faults are known
    try:
        System.of_ini(read)
    except MosesFeatureError as error:
        yield Finding(
            "warning",
            str(ini.path),
            _told(ini.path, error),
            "the embedded decoder stops",
            "decode with real Moses (mert-tune --decoder moses), or change the ini",
        )


def _size(scan: TableScan) -> str:
    return f"{scan.path}: {scan.lines:,} lines{'' if scan.whole else ', the first of more'}"


def _check_tuned(system: SystemDirectory, ini: MosesIni) -> Iterator[Finding]:
    """Yield what keeps a tuned system from translating: models that rescore, and their weights."""
    where = str(system.ini.parent / SYSTEM)
    if system.built is not None and not (system.built / SYSTEM).is_file():
        yield Finding(
            "warning",
            where,
            f"the system that it was tuned from, {system.built}, is not there",
            "raw text cannot be translated",
            "give --tokens, or bring it back",
        )
    built = system.built or system.ini.parent
    if (built / SYSTEM).is_file():
        for path, found in changed_files(built, read_json(built / SYSTEM, WHAT)):
            effect = "what needs it stops, or translates otherwise"
            remedy = "bring it back; or remove it, and build the system again"
            yield Finding("problem", str(path), f"not as it was built: {found}", effect, remedy)
    if not system.rescoring:
        return
    try:
        scorers = scorers_of(system.rescoring, SourceText([b""], "no text"))
        with_rescoring(FeatureSet.of_ini(ini), scorers, system.weights or Path())
    except MosesFeatureError as error:
        effect = "moses-feature translate and serve stop"
        remedy = "tune the system again, or bring back what it was tuned with"
        yield Finding("problem", where, f"{error}", effect, remedy)


def _told(path: str | Path, error: MosesFeatureError) -> str:
    return str(error).removeprefix(f"{path}: ").removeprefix(f"{path} ")


def _read_texts(paths: Sequence[str]) -> Generator[Finding, None, Texts]:
    """Read texts, and yield the faults of each; leave out unusable ones."""
    texts = {}
    for path in paths:
        sentences = yield from check_text(path)
        if sentences is not None:
            texts[path] = sentences
    return texts


def _all(texts: Texts) -> list[Sentence]:
    return [sentence for sentences in texts.values() for sentence in sentences]


def _scan(
    ini: MosesIni, table: Feature, most_lines: int | None, sentences: Sequence[Sentence]
) -> Generator[Finding, None, TableScan | None]:
    """Read a text table, and yield its faults."""
    path = file_of(table.path)
    if table.kind != TABLE_CLASS or path is None or not path.is_file():
        return None
    try:
        scan = TableScan(path, most_lines, sample_words(sentences))
    except MosesFeatureError as error:
        yield Finding("problem", str(path), str(error), "Moses stops", "make the file again")
        return None
    yield from scan.findings()
    yield from _check_columns(ini, table, scan)
    yield from check_alignments(ini, scan)
    return scan


def examine_fast(ini: MosesIni) -> tuple[list[Finding], list[Finding]]:
    """Check a system for a second or less.

    Returns:
        The faults that make runs fail (missing files, other numbers of scores), and the other
        findings, without notes.
    """
    fatal, others = list(check_files(ini)), list(check_weights(ini))
    for table in ini.tables():
        path = file_of(table.path)
        if table.kind == TABLE_CLASS and path is not None and path.is_file():
            try:
                scan = TableScan(path, FAST_LINES)
            except MosesFeatureError:
                continue  # the decoder reports it
            fatal += [*_check_columns(ini, table, scan), *check_alignments(ini, scan)]
            others += scan.findings()
    others += [finding for finding in fatal if finding.severity != "problem"]
    return (
        [finding for finding in fatal if finding.severity == "problem"],
        [finding for finding in others if finding.severity != "note"],
    )


def _check_columns(ini: MosesIni, table: Feature, scan: TableScan) -> Iterator[Finding]:
    where = f"{ini.path} at line {table.line_number}"
    if scan.columns is not None and scan.columns != table.score_count:
        remedy = f"write num-features={scan.columns} and as many weights of {table.name}"
        if scan.columns > table.score_count:
            remedy = (
                f"moses-feature system add --same-table, if the table was augmented; or {remedy}"
            )
        else:
            remedy = f"is the path that of the table before it was augmented? Otherwise {remedy}"
        yield Finding(
            "problem",
            where,
            f"num-features={table.score_count}, but {scan.path} has {scan.columns} scores",
            "Moses stops (`Size of scoreVector != number`); binary tables made of it are read "
            "wrongly, without an error",
            remedy,
        )
    yield from _check_description(scan)


def _check_description(scan: TableScan) -> Iterator[Finding]:
    """Yield the faults of the file that describes an augmented table."""
    description = features_json(scan.path)
    if not description.is_file() or scan.columns is None:
        return
    try:
        last = max(read_columns(scan.path).values())
    except MosesFeatureError as error:
        yield Finding(
            "warning", str(description), str(error), "new columns are not known", "augment again"
        )
        return
    if last >= scan.columns:
        yield Finding(
            "problem",
            str(description),
            f"it says that column {last} (counted from 0) is a new one, {scan.path} has "
            f"{scan.columns}",
            "the file describes another table: table report, system add and others read wrong "
            "columns",
            "augment the table again, or remove the file",
        )


def _compare(
    words: WordsOfTables,
    of_input: Texts,
    of_references: Texts,
    built: Path | None,
    say: Callable[[str], None],
) -> Iterator[Finding]:
    """Compare texts with completely read tables, unless only one of the two has factors."""
    of_tables = [list(words.source)], [list(words.target)]
    factored = any(map(is_factored, (*of_tables, *of_input.values(), *of_references.values())))
    findings: list[Finding] = []
    prepared_by = None
    if built is not None and (built / SYSTEM).is_file():
        prepared_by = built if read_json(built / SYSTEM, WHAT).get("preparation") else None
    sides: tuple[tuple[Texts, Side], ...] = ((of_input, "source"), (of_references, "target"))
    for texts, side in sides:
        for path, sentences in texts.items():
            share = known_share(sentences, words.source if side == "source" else words.target)
            say(f"{path}: {100 * share:.1f}% of its words are known")
            if not factored:
                findings += check_known(path, sentences, words, side, prepared_by)
    yield from findings
    if factored or findings:
        return
    for sentences in of_input.values():
        for path, translated in of_references.items():
            if len(translated) == len(sentences):
                yield from check_order(words, path, sentences, translated)
