"""The text that a system was built of, for building another one of a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moses_feature.building.held_out import AlignedText
from moses_feature.building.settings import MOST_RATIO, BuildSettings
from moses_feature.building.system import MODEL_TEXT, PREPARED, SIDES, BuildData
from moses_feature.moses.ini import SYSTEM
from moses_feature.moses.lines import digest_of
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import member, read_json, record

WHAT = "a system of moses-feature system build"


@dataclass(frozen=True)
class BuiltText:
    """A text, and how systems are built of it.

    Attributes:
        files: the tokenised texts, their links and documents.
        settings: how systems are built.
        model: a finished language model to use; None to estimate one.
        model_texts: more text for the language model.
        ratio: pairs of sentences whose lengths differ so many times are left out; None for none.
    """

    files: AlignedText
    settings: BuildSettings
    model: str | None = None
    model_texts: Sequence[str] = ()
    ratio: int | None = None


def text_of_system(directory: Path, documents: str | None) -> BuiltText:
    """Return the text that a system was built of.

    Args:
        directory: a directory of `system build`.
        documents: the document of each line; None for what the system was built with.

    Raises:
        FormatError: the `system.json` is damaged.
        MosesFeatureError: it is no such system, or its text is not where it was, or another one.
    """
    path = directory / SYSTEM
    if not path.is_file():
        raise MosesFeatureError(f"{path}: expected {WHAT}, found no such file")
    content = read_json(path, WHAT)
    recorded, settings = (
        member(content, name, dict[str, Any], path, WHAT) for name in ("files", "settings")
    )
    data = record(BuildData, recorded, path, WHAT)
    texts = _in_place(data.source, directory), _in_place(data.target, directory)
    if data.languages:
        source, target = (str(directory / PREPARED.format(side)) for side in SIDES)
        texts = source, target
    model_texts = data.model_texts
    if data.languages:
        numbers = range(1, 1 + len(model_texts))
        prepared = [directory / MODEL_TEXT.format(number) for number in numbers]
        if all(path.exists() for path in prepared):  # older versions did not prepare them
            model_texts = [*map(str, prepared)]
    alignment = next(iter(sorted(directory.glob("aligned.*.gz"))), directory / "aligned.gz")
    checked = {} if data.languages else dict(zip(SIDES, texts, strict=True))
    if data.documents and not documents:
        checked["documents"] = data.documents
    for file in (*texts, *model_texts, str(alignment), *checked.values()):
        if not Path(file).is_file():
            raise MosesFeatureError(
                f"{file}: expected the text that {directory} was built of, found no such file: "
                "run it where it was built, or name the text with --source, --target, --alignment"
            )
    _check_digests(checked, member(content, "inputs", list[dict[str, Any]], path, WHAT))
    text = AlignedText(*texts, str(alignment), documents or data.documents)
    how = record(BuildSettings, settings, path, WHAT)
    ratio = MOST_RATIO if data.languages else None
    return BuiltText(text, how, data.model, model_texts, ratio)


def _in_place(text: str, directory: Path) -> str:
    """Return a text, or the one beside a system's directory that was moved together with it."""
    beside = directory.parent / Path(text).name
    return text if Path(text).is_file() or not beside.is_file() else str(beside)


def _check_digests(files: Mapping[str, str], inputs: Sequence[Json]) -> None:
    """Check that files are those that a system was built of, by their roles."""
    for of in inputs:
        file = files.get(of.get("role", ""))
        if file is not None and digest_of(file) != of.get("sha256"):
            raise MosesFeatureError(
                f"{file}: expected the text that the system was built of, found another one"
            )
