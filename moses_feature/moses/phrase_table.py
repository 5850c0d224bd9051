"""The lines of Moses phrase tables as bytes; only the score field is ever changed.

A line is `source ||| target ||| scores ||| alignment ||| counts ||| sparse ||| properties`, the
fields after the scores optional (Moses: `phrase-extract/consolidate-main.cpp`). Fields are split
on `|||`, tokens on space and tab only, as in Moses
(`moses/TranslationModel/RuleTable/LoaderStandard.cpp`). Other white space of Unicode, and bytes
that are not UTF-8, are thus parts of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from moses_feature.runtime.errors import FormatError, shown

SEPARATOR = b"|||"
SOURCE, TARGET, SCORES, ALIGNMENT, COUNTS, SPARSE, PROPERTIES = range(7)
LOWEST_LOG_SCORE = -100.0
"""Moses' floor of a feature value, a natural log (`moses/Util.h`)."""

NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LINK = re.compile(rb"([0-9]{1,9})-([0-9]{1,9})")
_SCORES = re.compile(rb"[ \t]*%b(?:[ \t]+%b)*[ \t\r\n]*" % (NUMBER.pattern, NUMBER.pattern))


def split_fields(line: bytes, path: str | Path, line_number: int | None) -> list[bytes]:
    """Split a line of a phrase table into its 3 to 7 fields; the last one keeps the line end.

    Raises:
        FormatError: another number of fields.
    """
    fields = line.split(SEPARATOR)
    if not 3 <= len(fields) <= 7:
        raise FormatError(
            path, "3 to 7 fields separated by |||", f"{len(fields)}: {shown(line)}", line_number
        )
    return fields


def link_outside(fields: Sequence[bytes]) -> bytes | None:
    """Return the first alignment point of a line that is outside its phrases, if any."""
    if len(fields) <= ALIGNMENT:
        return None
    source, target = len(tokens(fields[SOURCE])), len(tokens(fields[TARGET]))
    for link in tokens(fields[ALIGNMENT]):
        match = _LINK.fullmatch(link)
        if match is None or int(match[1]) >= source or int(match[2]) >= target:
            return link
    return None


def count_scores(score_field: bytes, path: str | Path, line_number: int) -> int:
    """Return the number of scores in a score field.

    Raises:
        FormatError: it is empty, or contains anything but finite decimal numbers.
    """
    if _SCORES.fullmatch(score_field) is None:
        raise FormatError(path, "scores (finite numbers)", shown(score_field), line_number)
    return len(score_field.split())


def append_scores(fields: list[bytes], columns: bytes) -> bytes:
    """Return the line of `fields` with `columns` added at the end of its score field.

    White space and a line end behind the last score are kept, behind the new columns.
    """
    scores = fields[SCORES]
    kept = scores.rstrip(b" \t\r\n")
    grown = kept + b" " + columns + scores[len(kept) :]
    return SEPARATOR.join([*fields[:SCORES], grown, *fields[SCORES + 1 :]])


def tokens(field: bytes) -> list[bytes]:
    """Split a field into its tokens, on space and tab only, without the line end."""
    text = field.rstrip(b"\r\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    return [token for token in text.split(b" ") if token]


def checked_fields(
    line: bytes, path: str | Path, number: int, scores: int | None = None
) -> list[bytes]:
    """Split a line into its fields.

    Args:
        line: a line of a phrase table.
        path: the table, for error messages.
        number: the number of the line.
        scores: the expected number of scores; None for any.

    Raises:
        FormatError: it is not a line of a phrase table, or has another number of scores.
    """
    fields = split_fields(line, path, number)
    found = count_scores(fields[SCORES], path, number)
    if scores is not None and found != scores:
        expected = f"{scores} scores as in the lines before"
        raise FormatError(path, expected, f"{found}", number)
    return fields
