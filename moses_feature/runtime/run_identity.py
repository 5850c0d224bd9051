"""Whether a run that goes on is the one that was begun: the same data, settings and models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from moses_feature.runtime.files import Json


@dataclass(frozen=True)
class Difference:
    """The first thing in which two runs differ.

    Attributes:
        key: its name.
        expected: what the run that wants to go on has; of objects only the members that differ.
        found: what the run that was begun had.
    """

    key: str
    expected: str
    found: str


def difference(identity: Json, begun: Json) -> Difference | None:
    """Compare the identity of a run with that of the run that was begun; None if it is the same.

    Members that only the latter has do not count; one that either lacks is taken for null, in
    objects too: a setting that is newer than the run is no difference if it is null.
    """
    for key, value in json.loads(json.dumps(identity)).items():
        if _without_nulls(begun.get(key)) != _without_nulls(value):
            return Difference(key, *_shown(value, begun.get(key)))
    return None


def _shown(expected: Any, found: Any) -> tuple[str, str]:
    """Return two values as text, of two objects only the members that differ."""
    if not (isinstance(expected, dict) and isinstance(found, dict)):
        return json.dumps(expected), json.dumps(found)
    names = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
    return _members(expected, names), _members(found, names)


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(one) for name, one in value.items() if one is not None}


def _members(content: Json, names: list[str]) -> str:
    return ", ".join(
        f"{name} {json.dumps(content[name])}" if name in content else f"no {name}" for name in names
    )
