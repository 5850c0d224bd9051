"""A text by itself: encoding, line ends, empty and long sentences."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from moses_feature.doctor.finding import Finding
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.errors import MosesFeatureError

LONGEST = 100
"""Words of a sentence: longer ones take a phrase-based decoder minutes."""
MOST_LONG, MUCH_TOO_LONG = 0.01, 250
"""Share of longer sentences, and words of one, from which on that is a warning."""
MOST_SENTENCES = 2000
"""That say whether words have factors."""

Sentence = list[bytes]


def is_factored(sentences: Sequence[Sentence]) -> bool:
    """Return whether most words have factors."""
    words = [word for sentence in sentences[:MOST_SENTENCES] for word in sentence]
    return sum(b"|" in word.strip(b"|") for word in words) > len(words) / 2


def check_text(path: str) -> Generator[Finding, None, list[Sentence] | None]:
    """Yield what is wrong with a text by itself.

    Returns:
        its sentences as tokens; None if it is of no use.
    """
    try:
        with LineReader(path) as reader:
            lines = list(reader)
    except MosesFeatureError as error:
        what = str(error).removeprefix(f"{path}: ")
        yield Finding("problem", path, what, "nothing can be translated", "see the file")
        return None
    if not any(line.strip() for line in lines):
        yield Finding("problem", path, "no word", "nothing can be translated", "see the file")
        return None
    yield from _check_bytes(path, lines)
    sentences = [tokens(line) for line in lines]
    yield from _check_lengths(path, sentences)
    return sentences


def check_line_count(
    path: str, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> Iterator[Finding]:
    """Yield whether a reference, read from `path`, has another number of lines than the input."""
    if len(references) != len(sentences):
        yield Finding(
            "problem",
            path,
            f"{len(references):,} lines, the input has {len(sentences):,}",
            "sentences are compared with references of others",
            "see which lines are missing; empty ones count",
        )


def _check_bytes(path: str, lines: Sequence[bytes]) -> Iterator[Finding]:
    if lines[0].startswith(b"\xef\xbb\xbf"):
        yield Finding(
            "warning",
            f"{path} at line 1",
            "a byte order mark (U+FEFF)",
            "it belongs to the first word, which is then unknown",
            "sed -i '1s/^\\xef\\xbb\\xbf//' on the file",
        )
    ends = sum(line.endswith(b"\r\n") for line in lines)
    if ends:
        yield Finding(
            "warning",
            path,
            f"CR LF, as on Windows, at the end of {ends:,} line{'s' if ends > 1 else ''}",
            "for Moses, CR belongs to the last word, which is then unknown",
            f"sed -i 's/\\r$//' {path}",
        )
    odd = next((n for n, line in enumerate(lines, 1) if not _is_utf8(line)), None)
    if odd is not None:
        yield Finding(
            "warning",
            f"{path} at line {odd}",
            "bytes that are not UTF-8",
            "words of another encoding than the table's are unknown",
            "iconv -f latin1 -t utf-8, or whatever the encoding is",
        )


def _check_lengths(path: str, sentences: Sequence[Sentence]) -> Iterator[Finding]:
    lengths = [len(sentence) for sentence in sentences]
    empty = lengths.count(0)
    if empty:
        yield Finding(
            "note",
            path,
            f"{empty:,} empty line{'s' if empty > 1 else ''}",
            "they are translated by nothing; some tools lose them, and all lines after them move",
            "see that input and references have the same lines",
        )
    long = sum(length > LONGEST for length in lengths)
    longest = max(lengths)
    if long:
        many = long > MOST_LONG * len(sentences) or longest > MUCH_TOO_LONG
        yield Finding(
            "warning" if many else "note",
            f"{path} at line {lengths.index(longest) + 1}",
            f"{long:,} sentence{'s' if long > 1 else ''} of more than {LONGEST} words, "
            f"the longest of {longest:,}",
            "decoding takes minutes a sentence, and gigabytes",
            "split them, or leave them out of tuning (clean-corpus-n.perl of Moses)",
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
