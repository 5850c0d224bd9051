"""Targets that a table does not have, proposed by the network (the paper's conclusion).

No corpus has counted these pairs, so a fixed rule gives their scores. A new column distinguishes
them: e for proposed pairs and 1 for all others. Its tuned weight is thus the bonus or penalty of a
proposed pair.

Lexical weights (Koehn et al. 2003) come from the files that Moses' training leaves. `PREFIX.f2e`
has lines of target word, source word and p(target | source), `PREFIX.e2f` of source word, target
word and p(source | target); the word NULL stands for an unaligned word
(`phrase-extract/score-main.cpp`, `LexicalTable::load` and `computeLexicalTranslation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
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
    checked_fields,
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
from moses_feature.tables.shards import phrases_in_texts
from moses_feature.tables.writer import COMPRESSION

NULL = b"NULL"
UNSEEN = 1e-7
"""The probability of a word given one that it was never linked to; Moses has no such pairs."""

Links = Sequence[tuple[int, int]]


class LexicalTable:
    """p(word | other word), read from a file.

    Attributes:
        path: the file.
        found: how many look-ups succeeded.

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
            words: the words of one side.
            others: the words of the other side.
            links: pairs of places of linked words, that of `words` first.
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
        prefix: the path of the two files without their suffixes.
    """

    def __init__(self, prefix: str) -> None:
        self._of_target = LexicalTable(f"{prefix}.f2e")
        self._of_source = LexicalTable(f"{prefix}.e2f")

    def check(self) -> None:
        """Check that look-ups succeeded in both files.

        Raises:
            DataError: none did in one of them: it is empty, of other words, or the two are swapped.
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
"""Columns of lex(source | target) and lex(target | source) in a table of Moses' training."""


def diagonal(source: int, target: int) -> list[tuple[int, int]]:
    """Return links along the diagonal, at least one for each of the words on either side."""
    steps = max(source, target)
    return [(k * source // steps, k * target // steps) for k in range(steps)]


PHRASES_TOGETHER = 1024
"""Source phrases between two reports."""


@dataclass
class Proposals:
    """The result of `propose`, in numbers.

    Attributes:
        phrases: distinct phrases of the texts.
        covered: phrases that the table has.
        helped: phrases that got new targets.
        added: phrases that got targets but are not in the table.
        lines: new lines.
    """

    phrases: int = 0
    covered: int = 0
    helped: int = 0
    added: int = 0
    lines: int = 0


class _New(NamedTuple):
    """A pair that a table does not have, as text and as the network wrote it."""

    source: bytes
    target: bytes
    ids: list[int]
    written: Written


def _line(
    pair: _New, links: Links, of_network: Sequence[bool], lexical: LexicalWeights | None
) -> bytes:
    """Return the line of a pair.

    The network's p(target | source) fills all columns of probabilities; the columns of lexical
    weights have these if known, those of unknown words e^0, the last one the flag.

    Args:
        pair: the pair.
        links: pairs of places of linked words, the source place first.
        of_network: whether each column, without the flag, is a probability.
        lexical: computes the lexical weights; None if they are not known.
    """
    probability = math.exp(pair.written.log_prob)
    values = [probability if is_one else 1.0 for is_one in of_network]
    if lexical is not None:
        weights = lexical.of_pair(pair.source.split(b" "), pair.target.split(b" "), links)
        for column, weight in zip(LEXICAL_COLUMNS, weights, strict=True):
            values[column] = weight
    scores = b" ".join(b"%.6g" % value for value in values)
    alignment = b" ".join(b"%d-%d" % link for link in links)
    fields = pair.source, pair.target, b"%b %b" % (scores, FLAG), alignment, b"0 0 0"
    return b" ||| ".join(fields) + b" ||| |||\n"


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
        generator: the network that proposes targets.
        output: the new table.
        inputs: texts; their phrases get targets.
        settings: limits of the proposals.
        command: the command line, recorded in the file beside the table.
        report: called with the number of phrases done, and of all phrases.

    Raises:
        UsageError: the network is of another direction, or of factors.
        FormatError: a bad line in the table, or one out of order; too few scores for lexical
            weights; or a bad file of lexical weights.
    """
    _check(generator)
    lexical = LexicalWeights(settings.lexical) if settings.lexical else None
    texts, _ = phrases_in_texts(inputs)
    wanted = {phrase for phrase in texts if phrase.count(b" ") < settings.longest}
    lines_read, scores, targets = _read(table, wanted)
    augmented = read_columns(table) if described_table(table) == Path(table).name else {}
    proposals = Proposals(len(wanted), len(targets))
    if lexical and scores <= max(LEXICAL_COLUMNS):
        expected = "four scores as Moses' training makes them, for lexical weights"
        raise FormatError(table, expected, f"{scores}", 1)
    new = list(_new_pairs(generator, sorted(wanted), targets, settings, report))
    helped = {pair.source for pair in new}
    proposals.helped, proposals.lines = len(helped), len(new)
    proposals.added = len(helped - targets.keys())
    others = {place for name, place in augmented.items() if not is_probability(name)}
    of_network = [place not in others for place in range(scores)]
    lines = [
        _line(pair, links, of_network, lexical)
        for pair, links in zip(new, _links(generator, new), strict=True)
    ]
    if lexical and lines:
        lexical.check()
    with open_output(Path(output), COMPRESSION) as file:
        file.writelines(_merged(table, scores, sorted(lines)))
    earlier = read_features(table) if augmented else {"table": table}
    facts = {
        **{name: value for name, value in earlier.items() if name != "columns"},
        "output": Path(output).name,
        "lines_written": lines_read + len(new),
        "proposing_model_sha256": generator.model.digest,
        "proposed": {**asdict(settings), "inputs": list(inputs), **asdict(proposals)},
        "propose_command": command,
    }
    write_features(output, {**augmented, PROPOSED_COLUMN: scores}, facts)
    return proposals


def _check(generator: Generator) -> None:
    words, direction = generator.model.words, generator.model.direction
    if direction.reverse:
        raise UsageError(f"expected a network for p(target | source), found {direction}")
    if words.source_factor is not None or words.target_factor is not None or words.hierarchical:
        raise UsageError("expected a network for plain words, found one for factors or rules")


def _read(table: str, wanted: set[bytes]) -> tuple[int, int, dict[bytes, set[bytes]]]:
    """Read a table once, and check that it is in order.

    Returns:
        the number of lines, of scores in each, and the targets of the wanted source phrases.
    """
    targets: dict[bytes, set[bytes]] = {}
    scores, last = None, b""
    with LineReader(table) as reader:
        for line in reader:
            number = reader.line_number
            fields = checked_fields(line, table, number, scores)
            scores = len(fields[SCORES].split())
            if (key := _key(fields)) < last:
                expected = "lines in the order of LC_ALL=C sort"
                raise FormatError(table, expected, f"{shown(key)} after {shown(last)}", number)
            last = key
            source = b" ".join(tokens(fields[SOURCE]))
            if source in wanted:
                targets.setdefault(source, set()).add(b" ".join(tokens(fields[TARGET])))
        return reader.line_number, scores or 0, targets


def _new_pairs(
    generator: Generator,
    wanted: Iterable[bytes],
    targets: Mapping[bytes, set[bytes]],
    settings: ProposeSettings,
    report: Callable[[int, int], None],
) -> Iterator[_New]:
    """Yield new pairs, those of a source phrase together, the likeliest first."""
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
    """Yield the links of new pairs: the network's alignment, else the diagonal."""
    looked_at = generator.looked_at([pair.ids for pair in new], [pair.written for pair in new])
    if looked_at is None:
        yield from (diagonal(len(pair.ids), len(pair.written.ids)) for pair in new)
    else:
        for places in looked_at:
            yield sorted((place, word) for word, place in enumerate(places))


def _text(generator: Generator, target: Written, unescaped: bool) -> bytes:
    """Return a target as it is written in a table, where tokens are escaped."""
    words = generator.words(target)
    return b" ".join(map(escape, words) if unescaped else words)


def _merged(table: str, scores: int, new: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines of the table, a column wider, with the new lines sorted in."""
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
    """Return the sort key of a line."""
    return SEPARATOR.join([*fields[:2], b""])
