"""Models by name, as the command line gives them; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moses_feature.errors import UsageError
from moses_feature.moses.nbest import NAME


def named_models(given: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """Return names and directories of `NAME=DIRECTORY …`; those of one name stand together.

    Raises:
        UsageError: several without names, or a name that is none.
    """
    found: dict[str, list[Path]] = {}
    for text in given:
        name, equals, path = ("", "", text) if Path(text).is_dir() else text.rpartition("=")
        if (equals and not NAME.fullmatch(name)) or not path:
            raise UsageError(f"{text}: expected NAME=DIRECTORY, the name of letters and digits")
        found.setdefault(name, []).append(Path(path))
    if len(given) > 1 and "" in found:
        raise UsageError(
            f"{found[''][0]}: several models need names, such as forward={found[''][0]}; those of "
            "one name are averaged"
        )
    return list(found.items())
