"""Lexical weights (Koehn et al. 2003) from the files that Moses' training leaves.

`PREFIX.f2e` has lines of target word, source word and p(target | source), `PREFIX.e2f` of source
word, target word and p(source | target); the word NULL stands for nothing
(`phrase-extract/score-main.cpp`, `LexicalTable::load` and `computeLexicalTranslation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from moses_feature.errors import DataError, FormatError, shown
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import NUMBER

NULL = b"NULL"
UNSEEN = 1e-7
"""Of two words that were never linked. Moses, which scores no such pair, would take 1 for it."""

Links = Sequence[tuple[int, int]]


class LexicalTable:
    """p(word | other word), from a file.

    Attributes:
        path: of the file.
        found: how often it had what was asked for.

    Raises:
        FormatError: a line that is not two words and a probability.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.found = 0
        self._probabilities: dict[tuple[bytes, bytes], float] = {}
        with LineReader(path) as reader:
            for line in reader:
                fields = line.split()
                if (
                    len(fields) != 3
                    or not NUMBER.fullmatch(fields[2])
                    or not 0 <= float(fields[2]) <= 1
                ):
                    expected = "word, word and probability"
                    raise FormatError(path, expected, shown(line), reader.line_number)
                self._probabilities[fields[0], fields[1]] = float(fields[2])

    def weight(self, words: Sequence[bytes], others: Sequence[bytes], links: Links) -> float:
        """Return the lexical weight of words, given others.

        Args:
            words: those of one side.
            others: those of the other side.
            links: places of linked words, of `words` first.
        """
        weight = 1.0
        for place, word in enumerate(words):
            linked = [others[other] for mine, other in links if mine == place] or [NULL]
            known = [self._probabilities.get((word, other)) for other in linked]
            self.found += sum(p is not None for p in known)
            weight *= math.fsum(UNSEEN if p is None else p for p in known) / len(known)
        return weight


class LexicalWeights:
    """Both lexical weights of a phrase pair.

    Args:
        prefix: of the two files.
    """

    def __init__(self, prefix: str) -> None:
        self._of_target = LexicalTable(f"{prefix}.f2e")
        self._of_source = LexicalTable(f"{prefix}.e2f")

    def check(self) -> None:
        """Check that both files had something of what was asked for.

        Raises:
            DataError: one had nothing: it is empty, of other words, or the other one.
        """
        for table in (self._of_target, self._of_source):
            if not table.found:
                raise DataError(
                    f"{table.path}: expected the words of new pairs, found none of their links"
                )

    def of_pair(
        self, source: Sequence[bytes], target: Sequence[bytes], links: Links
    ) -> tuple[float, float]:
        """Return lex(source | target) and lex(target | source); links have the source first."""
        turned = [(t, s) for s, t in links]
        return (
            self._of_source.weight(source, target, links),
            self._of_target.weight(target, source, turned),
        )
