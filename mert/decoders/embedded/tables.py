"""The lines of phrase and reordering tables that some sentences can use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mert.decoders.embedded.system import PhraseTable, ReorderingTable
from mert.features import log_score
from mert.source_phrases import SourcePhrases, surface_words
from moses_feature.errors import FormatError, shown
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import SCORES, SEPARATOR, SOURCE, TARGET, split_fields


class TargetPhrases:
    """Target phrases and words, numbered; the word 0 is the end of the sentence.

    Attributes:
        numbers: of the phrases.
        words: numbers of the words.
        flat: the words of all phrases, one after the other.
        offsets: where each phrase begins, and the end of the last.
    """

    def __init__(self) -> None:
        self.numbers: dict[tuple[bytes, ...], int] = {}
        self.words: dict[bytes, int] = {b"</s>": 0}
        self.flat: list[int] = []
        self.offsets = [0]

    def number(self, phrase: tuple[bytes, ...]) -> int:
        """Return the number of a phrase; a new one, if it was not seen before."""
        number = self.numbers.setdefault(phrase, len(self.numbers))
        if number == len(self.offsets) - 1:
            words = self.words
            self.flat += [words.setdefault(word, len(words)) for word in phrase]
            self.offsets.append(len(self.flat))
        return number


@dataclass(frozen=True)
class Pair:
    """An option as read: numbers of its phrases and table, and the table's natural logs."""

    source: int
    target: int
    table: int
    scores: list[float]


def read_table(
    table: PhraseTable, number: int, sources: SourcePhrases, targets: TargetPhrases
) -> Iterator[Pair]:
    """Yield the phrase pairs of a table whose source phrase is wanted."""
    with LineReader(table.path) as reader:
        for line in reader:
            source = sources.number(line.partition(SEPARATOR)[SOURCE])
            if source is None:
                continue
            fields = split_fields(line, table.path, reader.line_number)
            scores = _log_scores(fields[SCORES], table.scores, reader)
            target = tuple(surface_words(fields[TARGET]))
            yield Pair(source, targets.number(target), number, scores)


def read_reordering(
    model: ReorderingTable, sources: SourcePhrases, targets: TargetPhrases
) -> Iterator[tuple[int, int, list[float]]]:
    """Yield the source phrase, the target phrase (-1 if it does not matter) and the scores."""
    columns = 3 if model.on_target else 2
    with LineReader(model.path) as reader:
        for line in reader:
            source = sources.number(line.partition(SEPARATOR)[SOURCE])
            if source is None:
                continue
            fields = line.split(SEPARATOR)
            if len(fields) < columns:
                raise FormatError(
                    model.path,
                    f"{columns} fields separated by |||",
                    shown(line),
                    reader.line_number,
                )
            target = -1
            if model.on_target:
                found = targets.numbers.get(tuple(surface_words(fields[TARGET])))
                if found is None:
                    continue
                target = found
            yield source, target, _log_scores(fields[columns - 1], model.type.scores, reader)


def _log_scores(field: bytes, count: int, reader: LineReader) -> list[float]:
    values = field.split()
    if len(values) != count:
        expected = f"{count} scores, as the ini says"
        raise FormatError(reader.path, expected, f"{len(values)}", reader.line_number)
    try:
        return [log_score(value) for value in values]
    except ValueError:
        raise FormatError(
            reader.path,
            "scores of 0 or more (Moses takes their logs)",
            shown(field),
            reader.line_number,
        ) from None
