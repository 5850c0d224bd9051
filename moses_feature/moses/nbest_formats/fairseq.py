r"""The output of fairseq-generate and fairseq-interactive.

Each translation has a line `H-7<TAB>score<TAB>words` and below it a line `P-7<TAB>…`, with the log
probability of each of its subwords. Sentences come in any order. The score is the mean of these
log probabilities, divided by a length penalty; a log-linear model needs their sum. The logs have
base 2 in newer versions and base e in older ones; the feature's weight absorbs the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.translation import LOG_PROB, TOTAL, ListedTranslation
from moses_feature.runtime.errors import FormatError, shown

_LINE = re.compile(rb"([HP])-([0-9]{1,9})\t(.*)", re.DOTALL)
_NUMBER = rb"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_HYPOTHESIS = re.compile(rb"(%b)\t(.*)" % _NUMBER, re.DOTALL)
_SCORES = re.compile(rb"%b(?: %b)*" % (_NUMBER, _NUMBER))


def fairseq(reader: LineReader) -> Iterator[ListedTranslation]:
    """Yield the translations of all sentences in order; they are held in memory.

    Lines of other kinds (sources, references, detokenised text, messages of the program) are
    skipped.

    Raises:
        FormatError: a line that is not as described above, or a translation without its P- line.
    """
    found: list[ListedTranslation] = []
    open_hypothesis: tuple[int, int, float, bytes] | None = None
    for line in reader:
        match = _LINE.fullmatch(line.rstrip(b"\r\n"))
        if match is None:
            if line.startswith((b"H-", b"P-")):
                expected = "H-sentence<TAB>score<TAB>words, or P-sentence<TAB>log probabilities"
                raise FormatError(reader.path, expected, shown(line), reader.line_number)
            continue
        number, sentence, rest = reader.line_number, int(match[2]), match[3]
        if match[1] == b"H":
            _check_closed(open_hypothesis, reader.path)
            hypothesis = _HYPOTHESIS.fullmatch(rest)
            if hypothesis is None:
                expected = "H-sentence<TAB>score<TAB>words"
                raise FormatError(reader.path, expected, shown(line), number)
            open_hypothesis = number, sentence, float(hypothesis[1]), hypothesis[2]
            continue
        if open_hypothesis is None or open_hypothesis[1] != sentence:
            expected = f"a line H-{sentence} before P-{sentence}"
            raise FormatError(reader.path, expected, shown(line), number)
        if not _SCORES.fullmatch(rest.strip()):
            expected = "P-sentence<TAB>log probabilities"
            raise FormatError(reader.path, expected, shown(line), number)
        of_line, _, score, text = open_hypothesis
        values = {LOG_PROB: sum(map(float, rest.split())), TOTAL: score}
        found.append(ListedTranslation(of_line, sentence, text, values, score))
        open_hypothesis = None
    _check_closed(open_hypothesis, reader.path)
    yield from sorted(found, key=lambda translation: translation.sentence)  # stable


def _check_closed(hypothesis: tuple[int, int, float, bytes] | None, path: str) -> None:
    if hypothesis is not None:
        number, sentence, *_ = hypothesis
        expected = f"a line P-{sentence}, the log probabilities, after H-{sentence}"
        raise FormatError(path, expected, "none", number)
