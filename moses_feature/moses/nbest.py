"""The lines of n-best lists as Moses writes them (`moses/Manager.cpp`, `OutputNBest`).

A line is `sentence ||| words  ||| Name= value value Name= value ||| total`, two spaces after the
words, and may go on after that; sentences are counted from 0, values are natural logs or minus
counts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from moses_feature.moses.phrase_table import NUMBER, tokens

NAME = re.compile(r"[A-Za-z][0-9A-Za-z]*")
"""Of a feature, as Moses' tools can carry it."""
EXPECTED = "sentence ||| words ||| Name= value … ||| total"
"""What a line should look like, for error messages."""
SENTENCE, WORDS, VALUES, TOTAL = range(4)
_SEPARATOR = re.compile(rb"(?<= )\|\|\|(?= |$)")


@dataclass
class NbestLine:
    """A line of an n-best list.

    Attributes:
        sentence: its number, from 0.
        words: target words.
        total: the log-linear score.
        fields: what stands between the separators, with the spaces around.
    """

    sentence: int
    words: list[bytes]
    total: float
    fields: list[bytes]

    @property
    def links(self) -> bytes | None:
        """The word alignment (`-print-alignment-info-in-n-best`), source and target place.

        It stands behind the total, and behind the segmentation, whose parts have a `=`; None if
        there is none.
        """
        behind = [field.strip() for field in self.fields[TOTAL + 1 :]]
        return next((field for field in behind if b"=" not in field), None)

    @property
    def segmentation(self) -> bytes | None:
        """The phrases (`-include-segmentation-in-n-best`); see `moses_feature.moses.alignments`.

        They stand behind the total; None if the list has none.
        """
        behind = [field.strip() for field in self.fields[TOTAL + 1 :]]
        return next((field for field in behind if b"=" in field or not field), None)

    @classmethod
    def parse(cls, line: bytes) -> NbestLine:
        """Read a line, its line end left out.

        Raises:
            ValueError: it is not one of an n-best list.
        """
        fields = line.split(b"|||")
        if len(fields) != TOTAL + 1:  # a word that has bars in it, or more fields
            fields = _SEPARATOR.split(line)
        if len(fields) <= TOTAL:
            raise ValueError(line)
        total, sentence = float(fields[TOTAL]), fields[SENTENCE].strip()
        if not math.isfinite(total) or b"_" in fields[TOTAL] or not sentence.isdigit():
            raise ValueError(line)
        return cls(int(sentence), tokens(fields[WORDS]), total, fields)


def labelled_values(text: bytes) -> dict[str, list[float]]:
    """Return the values of features by name, from `Name= value value Name= value`.

    Raises:
        ValueError: a value that is not a finite number, or one without a name.
    """
    values: dict[str, list[float]] = {}
    current: list[float] | None = None
    for word in text.split():
        if word.endswith(b"="):
            current = values.setdefault(word[:-1].decode(errors="replace"), [])
        elif current is not None and NUMBER.fullmatch(word) and math.isfinite(float(word)):
            current.append(float(word))
        else:
            raise ValueError(word)
    return values
