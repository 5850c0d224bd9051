"""Phrases as text that is safe to show."""

from __future__ import annotations

from moses_feature.errors import printable
from moses_feature.moses.words import unescape

NOTHING = "∅"
"""A target without words."""


def shown_text(phrase: bytes, escaped: bool = True) -> str:
    r"""Return a phrase as text, without Moses' escapes if it is escaped.

    Bytes that are not UTF-8, and control characters, are shown as `\x…`.
    """
    plain = unescape(phrase) if escaped else phrase
    return printable(plain.decode("utf-8", errors="backslashreplace")) or NOTHING
