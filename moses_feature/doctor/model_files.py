"""The files that a moses.ini names: whether they exist, are complete, and of the right kind.

For n-gram models also: whether KenLM reads them, their order, and the words that they know.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.texts import is_factored
from moses_feature.moses.binary_tables import PROBING_VERSION, probing_version, score_count
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import TABLE_CLASS, Feature
from moses_feature.moses.language_model import load_kenlm
from moses_feature.moses.lines import LineReader
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import with_or_without_gz
from moses_feature.tables.features_json import texts_of

MOST_UNKNOWN = 0.1
"""The largest usual share of reference words that a language model of this domain lacks."""


def check_language_models(
    ini: MosesIni, references: Sequence[list[bytes]], say: Callable[[str], None]
) -> Iterator[Finding]:
    """Yield the faults of KenLM models; finally KenLM itself must be able to read them.

    `say` is called with what was checked.
    """
    for feature in ini.features:
        path = file_read_by(feature)
        if feature.kind in OF_KENLM and path is not None and path.is_file():
            of_words = feature.kind == "KENLM" and feature.arguments.get("factor", "0") == "0"
            of_words = of_words and not is_factored(references)
            yield from _check_model(ini, feature, path, references if of_words else [], say)


def _check_model(
    ini: MosesIni,
    feature: Feature,
    path: Path,
    references: Sequence[list[bytes]],
    say: Callable[[str], None],
) -> Iterator[Finding]:
    try:
        model = load_kenlm(path, lazy=True)
    except MosesFeatureError as error:
        yield Finding(
            "problem",
            str(path),
            str(error).removeprefix(f"{path}: "),
            "Moses, which reads it by KenLM, stops",
            "make the model again, with lmplz; longer n-grams than KenLM was built for need "
            "another KenLM, here and in Moses (MAX_ORDER)",
        )
        return
    say(f"{path}: order {model.order}")
    said = feature.arguments.get("order")
    if said is not None and said != str(model.order):
        yield Finding(
            "warning",
            f"{ini.path} at line {feature.line_number}",
            f"order={said}, but {path} is of order {model.order}",
            "KenLM takes the order of the file; scripts that read the ini take the other",
            f"write order={model.order}",
        )
    yield from _unknown_words(path, model, references)


def _unknown_words(path: Path, model: Any, references: Sequence[list[bytes]]) -> Iterator[Finding]:
    words = [word for sentence in references for word in sentence]
    unknown = sum(word not in model for word in words)
    if words and unknown > MOST_UNKNOWN * len(words):
        yield Finding(
            "warning",
            str(path),
            f"{100 * unknown / len(words):.0f}% of the words of the references are unknown to it",
            "its scores hardly tell good translations from bad ones",
            "train it on text that is tokenised, cased and escaped like the table's target side",
        )


OF_KENLM = ("KENLM", "OpSequenceModel")
"""Classes that KenLM reads."""
OF_ONE_FILE = frozenset(("KENLM", "LexicalReordering", "OpSequenceModel"))
"""Classes that read a file, never a folder."""
WITH_FILES = frozenset(
    (
        TABLE_CLASS,
        "BilingualNPLM",
        "Generation",
        "KENLM",
        "LexicalReordering",
        "NeuralLM",
        "OpSequenceModel",
        "PhraseDictionaryCompact",
        "PhraseDictionaryOnDisk",
        "ProbingPT",
    )
)
"""Classes whose path is a file or folder; of other classes it may be a prefix of one."""


def file_of(path: str) -> Path | None:
    """Return the file or folder of a feature's path; None if there is none.

    Moses tries the path with .gz if there is no other.
    """
    if not path:
        return None
    place = with_or_without_gz(path)
    return place if _exists(place) else None


def file_read_by(feature: Feature) -> Path | None:
    """Return the file or folder that a feature reads; None if there is none.

    Compact tables may be named without their suffixes; KenLM reads exactly the file that is named.
    """
    ending = {"PhraseDictionaryCompact": ".minphr", "LexicalReordering": ".minlexr"}
    found = file_of(feature.path)
    if feature.kind == "KENLM" and found is not None and found.name != Path(feature.path).name:
        return None
    if found is None and feature.path and feature.kind in ending:
        return file_of(feature.path + ending[feature.kind])
    return found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the name is too long
        return False


def check_files(ini: MosesIni) -> Iterator[Finding]:
    """Yield the faults of the files of all features."""
    for feature in ini.features:
        path = feature.arguments.get("path")
        where = f"{ini.path} at line {feature.line_number}"
        if path is None and feature.kind in OF_KENLM:
            yield Finding(
                "problem", where, f"no path= of {feature.name}", "Moses stops", "write its path"
            )
        if path is None or feature.kind not in WITH_FILES:
            continue
        if "=" in path:
            yield Finding(
                "warning",
                where,
                f"a = in the path {path}",
                "filter-model-given-input.pl fails on it, and with it mert-moses.pl",
                "rename the folder or file",
            )
        file = file_read_by(feature)
        if file is None:
            yield Finding(
                "problem",
                where,
                f"{feature.name} reads {path}, which is not there",
                "Moses stops, or a script fails after its first full decoding",
                "correct the path; Moses takes relative ones from the directory it is started in",
            )
            continue
        if not Path(path).is_absolute():
            yield Finding(
                "note",
                where,
                f"the path {path} is relative",
                "mert-moses.pl, which works in another directory, does not find it",
                "write absolute paths (scripts/training/absolutize_moses_model.pl of Moses does)",
            )
        yield from _check_file(file, feature, where)


def _check_file(file: Path, feature: Feature, where: str) -> Iterator[Finding]:
    if not os.access(file, os.R_OK):
        yield Finding(
            "problem",
            str(file),
            "no permission to read it",
            "Moses stops",
            "chmod a+r, and a+x of the folders above",
        )
    elif feature.kind == TABLE_CLASS:
        yield from _check_text_table(file, where)
    elif file.is_file() and file.stat().st_size == 0:
        yield Finding("problem", str(file), "an empty file", "Moses stops", "make it again")
    elif feature.is_table:
        yield from _check_binary_table(file, feature, where)
    elif feature.kind in OF_ONE_FILE and file.is_dir():
        yield Finding(
            "problem",
            where,
            f"{file} is a folder, {feature.kind} reads a file",
            "Moses stops",
            "write the path of the file in it",
        )


def _check_text_table(file: Path, where: str) -> Iterator[Finding]:
    if file.is_dir():
        yield Finding(
            "problem",
            where,
            f"{file} is a folder, {TABLE_CLASS} reads text",
            "Moses stops",
            "a binary table has a class of its own: ProbingPT, PhraseDictionaryCompact or "
            "PhraseDictionaryOnDisk",
        )
        return
    try:
        with LineReader(file) as reader:
            line = next(iter(reader), b"")
    except MosesFeatureError:
        return  # reported when all of it is read
    if line and b"|||" not in line:
        yield Finding(
            "problem",
            str(file),
            "its first line is not one of a phrase table",
            "Moses stops, or reads garbage",
            f"see that {where} names a text table; binary ones have a class of their own",
        )


def _check_binary_table(file: Path, feature: Feature, where: str) -> Iterator[Finding]:
    try:
        count = score_count(feature.kind, file)
    except FormatError as error:
        yield Finding(
            "problem",
            where,
            str(error),
            "Moses stops",
            f"a text table has the class {TABLE_CLASS}; a binary one whose making was interrupted "
            "must be made again",
        )
        return
    if count is not None and count != feature.score_count:
        yield Finding(
            "problem",
            where,
            f"num-features={feature.score_count}, but {file} says that it has {count} scores",
            "scores of one phrase pair are taken for those of another, without an error: "
            "Moses' binarising programs assume 4 scores unless an option says otherwise",
            f"make the table again with {feature.score_count} scores, or "
            f" write num-features={count} and as many weights",
        )
    version = probing_version(file) if feature.kind == "ProbingPT" else PROBING_VERSION
    if version != PROBING_VERSION:
        yield Finding(
            "warning",
            str(file),
            f"API_VERSION {version}, this is known of {PROBING_VERSION}",
            "a Moses of another year may refuse the table, or misread it",
            "make the table with the CreateProbingPT of the Moses that reads it",
        )


def check_kept_phrases(ini: MosesIni, text: str, digest: str) -> Iterator[Finding]:
    """Yield the tables that were filtered for other texts when they were augmented.

    Args:
        ini: the system.
        text: the name of the text to translate.
        digest: its SHA-256.
    """
    for table in ini.tables():
        path = file_of(table.path)
        if path is None or not path.is_file():
            continue
        try:
            texts = texts_of(path)
        except MosesFeatureError:
            continue  # the examination of its columns reports it
        if texts and digest not in texts.values():
            yield Finding(
                "warning",
                str(path),
                f"it has the phrases of {', '.join(texts)} alone, and {text} is none of them",
                "phrases are missing: words that the whole table knows are not translated",
                "augment the table without --phrases-of, or give it this text, too",
            )
