"""N-best lists of Marian (`src/translator/output_printer.h`).

`sentence ||| words [||| alignment] [||| WordScores= …] ||| F0= value … ||| total`; with a single
scorer, Marian omits the space behind `F0=`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.translation import LENGTH, TOTAL, ListedTranslation
from moses_feature.moses.phrase_table import NUMBER
from moses_feature.runtime.errors import FormatError, shown

EXPECTED = "sentence ||| words ||| F0= value … ||| total"
_LEAST = 4
_FEATURE = re.compile(rb"([A-Za-z][0-9A-Za-z]*)= ?([^ =]+)(?: |$)")
_LINKS = re.compile(rb"(?:[0-9]+-[0-9]+ ?)*")
_SEPARATOR = re.compile(rb" \|\|\|(?: |$)")
_SOFT = re.compile(rb"[0-9.e-]+(?:,[0-9.e-]+)+(?: [0-9.e,-]+)*")
"""Soft alignments: the weights of the source words for each target word."""
_PER_WORD = b"WordScores="


def marian(reader: LineReader) -> Iterator[ListedTranslation]:
    """Yield the translations of Marian's lists, without word scores and soft alignments.

    Raises:
        FormatError: a line that is not as described above.
    """
    for line in reader:
        number = reader.line_number
        try:
            yield _parsed(line.rstrip(b"\r\n"), number)
        except ValueError:
            raise FormatError(reader.path, EXPECTED, shown(line), number) from None


def _parsed(line: bytes, number: int) -> ListedTranslation:
    fields = _SEPARATOR.split(line)
    if len(fields) < _LEAST:
        raise ValueError(line)
    sentence, text, *between, features, total = fields
    named = _FEATURE.findall(features)
    values = {name.decode(): _number(value) for name, value in named}
    if len(values) != len(named) or {TOTAL, LENGTH} & values.keys():
        raise ValueError(line)  # a repeated feature, or one with a name that is added here
    if not values or not sentence.isdigit() or _FEATURE.sub(b"", features).strip():
        raise ValueError(line)
    links = [f for f in between if not f.startswith(_PER_WORD) and not _SOFT.fullmatch(f)]
    if len(links) > 1 or not all(_LINKS.fullmatch(field) for field in links):
        raise ValueError(line)
    alignment = links[0] if links else None
    values[TOTAL] = _number(total)
    return ListedTranslation(number, int(sentence), text, values, values[TOTAL], alignment)


def _number(text: bytes) -> float:
    if not NUMBER.fullmatch(text.strip()):
        raise ValueError(text)
    return float(text)
