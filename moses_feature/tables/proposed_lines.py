"""The lines of pairs that no corpus has counted: a stated rule fills their scores.

Lexical weights (Koehn et al. 2003) come from the files that Moses' training leaves. `PREFIX.f2e`
has lines of target word, source word and p(target | source), `PREFIX.e2f` of source word, target
word and p(source | target); the word NULL stands for nothing (`phrase-extract/score-main.cpp`,
`LexicalTable::load` and `computeLexicalTranslation`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import NUMBER
from moses_feature.runtime.errors import DataError, FormatError, shown
from moses_feature.tables.settings import is_probability

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


PROPOSED_COLUMN = "exp(proposed)"
FLAG, NO_FLAG = f"{math.e:.6g}".encode(), b"1"
LEXICAL_COLUMNS = 1, 3
"""Of a table that Moses' training made: lex(source | target) and lex(target | source)."""


class ProposedLines:
    """Makes the lines.

    The network's p(target | source) stands in all columns of probabilities, lexical weights in
    theirs if they are known, e^0 for counts of unknown words, and the flag in the last one.

    Args:
        scores: of the lines of the table, without the flag.
        augmented: the columns that a network has added to it, by name.
        lexical: for the lexical weights; None if they are not known.
    """

    def __init__(
        self, scores: int, augmented: Mapping[str, int], lexical: LexicalWeights | None
    ) -> None:
        others = {place for name, place in augmented.items() if not is_probability(name)}
        self._is_probability = [place not in others for place in range(scores)]
        self._lexical = lexical

    def line(self, source: bytes, target: bytes, log_prob: float, links: Links) -> bytes:
        """Return the line of a pair.

        Args:
            source: one space between words.
            target: one space between words.
            log_prob: natural log of the network's p(target | source).
            links: places of linked words, of the source first.
        """
        probability = math.exp(log_prob)
        values = [probability if is_one else 1.0 for is_one in self._is_probability]
        if self._lexical is not None:
            weights = self._lexical.of_pair(source.split(b" "), target.split(b" "), links)
            for column, weight in zip(LEXICAL_COLUMNS, weights, strict=True):
                values[column] = weight
        scores = b" ".join(b"%.6g" % value for value in values)
        alignment = b" ".join(b"%d-%d" % link for link in links)
        fields = source, target, b"%b %b" % (scores, FLAG), alignment, b"0 0 0"
        return b" ||| ".join(fields) + b" ||| |||\n"


def diagonal(source: int, target: int) -> list[tuple[int, int]]:
    """Return links along the diagonal, one at least for each of so many words on either side."""
    steps = max(source, target)
    return [(k * source // steps, k * target // steps) for k in range(steps)]
