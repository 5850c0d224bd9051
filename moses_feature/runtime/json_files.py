"""JSON files of this program, which users may have changed: read, checked and compared."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json

T = TypeVar("T")
_DIGEST = re.compile(r'"([0-9a-f]{8})[0-9a-f]{56}"')


def read_json(path: Path, what: str) -> Json:
    """Read a file that contains an object.

    Args:
        path: the file.
        what: what it should be, for error messages.

    Raises:
        FormatError: it contains something else, or is damaged.
        OSError: it cannot be read.
    """
    return parse_json(path.read_bytes(), path, what)


def as_json(content: Any) -> str:
    """Return content as JSON in one line; bytes that are not UTF-8 become U+FFFD."""
    text = json.dumps(content, ensure_ascii=False)
    return text.encode(errors="surrogateescape").decode(errors="replace")


def parse_json(content: bytes | str, path: Path, what: str) -> Json:
    """Return the object that a text holds; the errors are those of `read_json`."""
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(path, what, f"a damaged file ({error})") from error
    if not isinstance(parsed, dict):
        raise FormatError(path, what, f"{type(parsed).__name__}: {str(parsed)[:60]}")
    return parsed


def member(content: Json, name: str, kind: Any, path: Path, what: str) -> Any:
    """Return a member of an object after checking its type.

    Args:
        content: the object.
        name: the name of the member.
        kind: its expected type, such as `dict[str, int]` or `list[float] | None`.
        path: the file, for error messages.
        what: what the file should be, for error messages.

    Raises:
        FormatError: the member is missing, or of another type.
    """
    if name not in content or not is_of_type(content[name], kind):
        found = repr(content[name])[:60] if name in content else "none"
        raise FormatError(path, f"{what}: a good {name!r}", found)
    return content[name]


def record(kind: type[T], content: Any, path: Path, what: str) -> T:
    """Make a dataclass from an object whose members have the names of its fields.

    Raises:
        FormatError: a member is missing, unknown, or of another type than the field.
    """
    if not isinstance(content, dict):
        raise FormatError(path, what, repr(content)[:60])
    types = get_type_hints(kind)
    names = {field.name for field in fields(kind) if field.init}  # type: ignore[arg-type]
    if unknown := sorted(set(content) - names):
        raise FormatError(path, what, f"an unknown {unknown[0]!r}")
    needed = [f.name for f in fields(kind) if f.init and _is_needed(f)]  # type: ignore[arg-type]
    for name in {*needed, *content}:
        member(content, name, types[name], path, what)
    return kind(**{name: _as(content[name], types[name]) for name in content})


def _is_needed(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _as(value: Any, kind: Any) -> Any:
    """Convert a JSON value to the type of a field: a list may stand for a tuple."""
    return tuple(value) if get_origin(kind) is tuple else value


def is_of_type(value: Any, kind: Any) -> bool:
    """Return whether a JSON value is of a type; an integer is a float, too; text has no NUL."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(is_of_type(value, one) for one in arguments)
    if kind in (None, NoneType):
        return value is None
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in arguments)
    if origin in (list, Sequence) or arguments[1:] == (...,):
        return isinstance(value, list | tuple) and all(is_of_type(v, arguments[0]) for v in value)
    if origin is tuple:
        return (
            isinstance(value, list | tuple)
            and len(value) == len(arguments)
            and all(map(is_of_type, value, arguments))
        )
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(is_of_type(v, arguments[1]) for v in value.values())
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return isinstance(value, kind) and not (kind is str and "\0" in value)


@dataclass(frozen=True)
class DifferentFact:
    """The first difference between two runs.

    Attributes:
        key: its name.
        expected: the value in the run that wants to resume; of objects only differing members.
        found: the value in the run that was begun.
    """

    key: str
    expected: str
    found: str


def difference(identity: Json, begun: Json) -> DifferentFact | None:
    """Compare the identity of a run with that of the run to resume; None if they are the same.

    Members that only the latter has do not count. A missing member counts as null, in objects too:
    a setting that is newer than the run is no difference if it is null.
    """
    for key, value in json.loads(json.dumps(identity)).items():
        if _without_nulls(begun.get(key)) != _without_nulls(value):
            return DifferentFact(key, *_shown(value, begun.get(key)))
    return None


def _shown(expected: Any, found: Any) -> tuple[str, str]:
    """Return two values as text, of objects only the members that differ."""
    if not (isinstance(expected, dict) and isinstance(found, dict)):
        return _text(expected), _text(found)
    names = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
    return _members(expected, names, "as it is now"), _members(found, names, "as it was then")


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(one) for name, one in value.items() if one is not None}


def _members(content: Json, names: list[str], when: str) -> str:
    """Return members as text; of a file, whose content is known by its SHA-256, when it was so."""

    def text(value: Any) -> str:
        return when if _DIGEST.fullmatch(json.dumps(value)) else _text(value)

    return ", ".join(
        f"{name} {text(content[name])}" if name in content else f"no {name}" for name in names
    )


def _text(value: Any) -> str:
    """Return a value as text; of the SHA-256 of a content, only the beginning."""
    return "not given" if value is None else _DIGEST.sub(r"(content \1…)", json.dumps(value))


def numbered(entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return an object of names and values; the second value of a name is that of `name 2`."""
    counts: Counter[str] = Counter()
    found = {}
    for name, value in entries:
        counts[name] += 1
        found[name if counts[name] == 1 else f"{name} {counts[name]}"] = value
    return found
