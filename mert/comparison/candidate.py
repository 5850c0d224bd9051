"""What is compared: systems to tune, and finished outputs of others."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mert.decoders.choice import DecoderSettings
from moses_feature.errors import UsageError
from moses_feature.moses.ini import MosesIni

RESULTS = "comparison.json"
PAGE = "comparison.html"
IDENTITY = "identity.json"


@dataclass(frozen=True)
class Candidate:
    """A system to compare: what to call it, its ini, and what rescores its n-best lists."""

    name: str
    ini: MosesIni
    rescoring: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)

    def decoder(self, settings: DecoderSettings) -> DecoderSettings:
        """Return the settings of this system's decoder."""
        return replace(settings, rescoring=self.rescoring)


@dataclass(frozen=True)
class FinishedOutput:
    """What another system made of the test set: files with a translation on each line.

    Several files are several runs of the system, such as training or tuning with other seeds.
    """

    name: str
    paths: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_name(self.name)


def check_names(names: list[str]) -> None:
    """Check that there are systems, and that each has a name of its own.

    Raises:
        UsageError: not so.
    """
    if not names:
        raise UsageError("nothing to compare: expected NAME=INI, or --output NAME=FILE")
    if len(set(names)) != len(names):
        raise UsageError(f"system names: expected different ones, found {', '.join(names)}")


def _check_name(name: str) -> None:
    reserved = (RESULTS, PAGE, IDENTITY)
    if not re.fullmatch(r"[\w+.@-]+", name) or name.startswith("."):
        raise UsageError(f"system name {name!r}: expected letters, digits, + - . _ @")
    if name in reserved:
        raise UsageError(f"system name {name!r}: expected none of {', '.join(reserved)}")
