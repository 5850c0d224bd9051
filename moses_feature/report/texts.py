"""Phrases as text that is safe to show."""

from __future__ import annotations

from moses_feature.errors import printable


def shown_text(phrase: bytes) -> str:
    r"""Return a phrase as text: bytes that are not UTF-8, and control characters, as `\x…`."""
    return printable(phrase.decode("utf-8", errors="backslashreplace"))
