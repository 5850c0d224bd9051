"""Targets that a table does not have, proposed by the network (the paper's conclusion).

No corpus has counted them: a stated rule fills their scores. A new column tells both kinds of pairs
apart: e for proposed ones and 1 for all others, so that its weight, which tuning finds, is what a
proposed pair gains or loses.

Lexical weights (Koehn et al. 2003) come from the files that Moses' training leaves. `PREFIX.f2e`
has lines of target word, source word and p(target | source), `PREFIX.e2f` of source word, target
word and p(source | target); the word NULL stands for nothing (`phrase-extract/score-main.cpp`,
`LexicalTable::load` and `computeLexicalTranslation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    NUMBER,
    SCORES,
    SEPARATOR,
    SOURCE,
    TARGET,
    append_scores,
    count_scores,
    split_fields,
    tokens,
)
from moses_feature.moses.words import escape
from moses_feature.networks.vocabulary import UNKNOWN
from moses_feature.phrases.generation.generator import Generator
from moses_feature.phrases.generation.prefixes import Written
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import DataError, FormatError, UsageError, shown
from moses_feature.runtime.files import open_output
from moses_feature.tables.features_json import (
    described_table,
    read_columns,
    read_features,
    write_features,
)
from moses_feature.tables.settings import ProposeSettings, is_probability
from moses_feature.tables.shards import checked_fields, phrases_in_texts
from moses_feature.tables.writer import COMPRESSION

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


PHRASES_TOGETHER = 1024
"""Source phrases between two reports."""


@dataclass
class Proposals:
    """What came of it.

    Attributes:
        phrases: different phrases of the texts.
        covered: those that the table has.
        helped: those that got new targets.
        added: those that the table has not, and that got targets.
        lines: new lines.
    """

    phrases: int = 0
    covered: int = 0
    helped: int = 0
    added: int = 0
    lines: int = 0


class _New(NamedTuple):
    """A pair that a table has not, as text and as the network has it."""

    source: bytes
    target: bytes
    ids: list[int]
    written: Written


@dataclass
class _Table:
    """What the first pass over a table finds.

    Attributes:
        lines: how many it has.
        scores: how many each line has.
        targets: those of the source phrases that are looked for.
    """

    lines: int = 0
    scores: int = 0
    targets: dict[bytes, set[bytes]] = field(default_factory=dict)


def propose(
    table: str,
    generator: Generator,
    output: str,
    inputs: Sequence[str],
    settings: ProposeSettings,
    command: str,
    report: Callable[[int, int], None] = lambda *_: None,
) -> Proposals:
    """Write a table with new targets for the phrases of some texts, one column wider.

    Args:
        table: in the order of `LC_ALL=C sort`, as Moses' training leaves it; augmented or not.
        generator: what proposes.
        output: the new table.
        inputs: texts; their phrases get targets.
        settings: how many.
        command: what the user typed, for the file beside the table.
        report: told how many phrases were looked at, and how many there are.

    Raises:
        UsageError: the network is of another direction, or of factors.
        FormatError: a line that is none of a phrase table, or not in order; too few scores for
            lexical weights; or their files hold something else.
    """
    _check(generator)
    lexical = LexicalWeights(settings.lexical) if settings.lexical else None
    texts, _ = phrases_in_texts(inputs)
    wanted = {phrase for phrase in texts if phrase.count(b" ") < settings.longest}
    known = _read(table, wanted)
    augmented = read_columns(table) if described_table(table) == Path(table).name else {}
    proposals = Proposals(len(wanted), len(known.targets))
    if lexical and known.scores <= max(LEXICAL_COLUMNS):
        expected = "four scores as Moses' training makes them, for lexical weights"
        raise FormatError(table, expected, f"{known.scores}", 1)
    new = list(_new_pairs(generator, sorted(wanted), known.targets, settings, report))
    helped = {pair.source for pair in new}
    proposals.helped, proposals.lines = len(helped), len(new)
    proposals.added = len(helped - known.targets.keys())
    form = ProposedLines(known.scores, augmented, lexical)
    lines = [
        form.line(pair.source, pair.target, pair.written.log_prob, links)
        for pair, links in zip(new, _links(generator, new), strict=True)
    ]
    if lexical and lines:
        lexical.check()
    with open_output(Path(output), COMPRESSION) as file:
        file.writelines(_merged(table, known.scores, sorted(lines)))
    earlier = read_features(table) if augmented else {"table": table}
    facts = {
        **{name: value for name, value in earlier.items() if name != "columns"},
        "output": Path(output).name,
        "lines_written": known.lines + len(new),
        "proposing_model_sha256": generator.model.digest,
        "proposed": {**asdict(settings), "inputs": list(inputs), **asdict(proposals)},
        "propose_command": command,
    }
    write_features(output, {**augmented, PROPOSED_COLUMN: known.scores}, facts)
    return proposals


def _check(generator: Generator) -> None:
    words, reading = generator.model.words, generator.model.reading
    if reading.reverse:
        raise UsageError(f"expected a network for p(target | source), found {reading}")
    if words.source_factor is not None or words.target_factor is not None or words.hierarchical:
        raise UsageError("expected a network for plain words, found one for factors or rules")


def _read(table: str, wanted: set[bytes]) -> _Table:
    """Read a table once; see that it is in order."""
    found, last = _Table(), b""
    with LineReader(table) as reader:
        for line in reader:
            number = reader.line_number
            if number == 1:
                fields = split_fields(line, table, number)
                found.scores = count_scores(fields[SCORES], table, number)
            fields = checked_fields(line, table, number, found.scores)
            found.lines = number
            if (key := _key(fields)) < last:
                expected = "lines in the order of LC_ALL=C sort"
                raise FormatError(table, expected, f"{shown(key)} after {shown(last)}", number)
            last = key
            source = b" ".join(tokens(fields[SOURCE]))
            if source in wanted:
                targets = found.targets.setdefault(source, set())
                targets.add(b" ".join(tokens(fields[TARGET])))
    return found


def _new_pairs(
    generator: Generator,
    wanted: Iterable[bytes],
    targets: Mapping[bytes, set[bytes]],
    settings: ProposeSettings,
    report: Callable[[int, int], None],
) -> Iterator[_New]:
    """Yield new pairs, the targets of a source phrase together and the likeliest first."""
    options = TableWords().words(generator.model)
    sources, ids = [], []
    for phrase in wanted:
        if len(targets.get(phrase, ())) < settings.enough:
            of_phrase = generator.model.source.ids(options.pair(phrase, b"")[0])
            if UNKNOWN not in of_phrase:
                sources.append(phrase)
                ids.append(of_phrase)

    def written() -> Iterator[list[Written]]:
        for first in range(0, len(ids), PHRASES_TOGETHER):
            some = ids[first : first + PHRASES_TOGETHER]
            yield from generator.likeliest(some, settings.beam, (UNKNOWN,))
            report(first + len(some), len(ids))

    for source, of_source, candidates in zip(sources, ids, written(), strict=True):
        has = targets.get(source, set())
        pairs = [
            _New(
                source, _text(generator, target, options.escaping == "unescape"), of_source, target
            )
            for target in candidates
            if target.ids and target.log_prob / (len(target.ids) + 1) >= settings.least
        ]
        yield from [pair for pair in pairs if pair.target not in has][: settings.best]


def _links(generator: Generator, new: Sequence[_New]) -> Iterator[Links]:
    """Yield the links of new pairs: what the network looks at, or those along the diagonal."""
    looked_at = generator.looked_at([pair.ids for pair in new], [pair.written for pair in new])
    if looked_at is None:
        yield from (diagonal(len(pair.ids), len(pair.written.ids)) for pair in new)
    else:
        for places in looked_at:
            yield sorted((place, word) for word, place in enumerate(places))


def _text(generator: Generator, target: Written, unescaped: bool) -> bytes:
    """Return a target as it stands in a table, where tokens are escaped."""
    words = generator.words(target)
    return b" ".join(map(escape, words) if unescaped else words)


def _merged(table: str, scores: int, new: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines of the table, a column wider, and new ones at their places."""
    waiting = iter([(_key(split_fields(line, table, 0)), line) for line in new])
    coming = next(waiting, None)
    with LineReader(table) as reader:
        for line in reader:
            fields = checked_fields(line, table, reader.line_number, scores)
            key = _key(fields)
            while coming is not None and coming[0] < key:
                yield coming[1]
                coming = next(waiting, None)
            yield append_scores(fields, NO_FLAG)
    while coming is not None:
        yield coming[1]
        coming = next(waiting, None)


def _key(fields: Sequence[bytes]) -> bytes:
    """Return what decides the order of a line."""
    return SEPARATOR.join([*fields[:2], b""])
