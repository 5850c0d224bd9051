"""Checks of a text alone, and of its words that a table does not know, with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import Literal

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import TableScan, Words
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import escape, unescape
from moses_feature.runtime.errors import MosesFeatureError

Side = Literal["source", "target"]
FEW_KNOWN = 0.85
"""A text with a smaller share of known words is checked; in real systems it is 0.9 to 1."""
ALL_KNOWN = 0.98
"""A text with a larger share of known words is fine."""
EXPLAINED, MOSTLY_EXPLAINED = 0.2, 0.5
"""The share of unknown words that a change must make known, if few words are known, and if many."""
PUNCTUATION = b".,;:!?\"'()[]"


def known_share(sentences: Sequence[Sentence], known: Collection[bytes]) -> float:
    """Return the share of words that are known."""
    words = [word for sentence in sentences for word in sentence]
    return sum(word in known for word in words) / max(len(words), 1)


def check_known(
    path: str, sentences: Sequence[Sentence], tables: Words, side: Side
) -> Iterator[Finding]:
    """Yield why words of a text are unknown to the side of the tables with its language."""
    known, other = tables.source, tables.target
    if side == "target":
        known, other = other, known
    words = [word for sentence in sentences for word in sentence]
    unknown = [word for word in words if word not in known]
    if len(unknown) <= (1 - ALL_KNOWN) * len(words):
        return
    share = 1 - len(unknown) / len(words)
    what = f"the table's {side} side knows {100 * share:.0f}% of its words"
    effect = "unknown words are not translated: BLEU is low whatever the weights are"
    if side == "target":
        effect = "what the decoder can write is not in the references: BLEU is low whatever it does"
    explained = {
        said: sum(change(word) in known for word in unknown) / len(unknown)
        for said, change in CHANGES.items()
    }
    best = max(explained, key=lambda said: explained[said])
    in_other = sum(word in other for word in words) / len(words)
    few = share < FEW_KNOWN
    if few and in_other > max(FEW_KNOWN, 1.2 * share):
        opposite = "target" if side == "source" else "source"
        yield Finding(
            "problem",
            path,
            f"{what}, its {opposite} side {100 * in_other:.0f}%",
            effect,
            "it is in the other language: are input and reference swapped?",
        )
    elif explained[best] >= (EXPLAINED if few else MOSTLY_EXPLAINED):
        yield Finding(
            "problem" if few else "warning",
            path,
            f"{what}; {100 * explained[best]:.0f}% of the others would be known {best}",
            effect,
            REMEDIES[best],
        )
    elif few:
        yield Finding(
            "warning",
            path,
            what,
            effect,
            "see that it is of the language and domain of the table, and was prepared like its "
            "training text; and that the table was not filtered for another text",
        )


def _without_punctuation(word: bytes) -> bytes:
    return word.strip(PUNCTUATION)


def _lower(word: bytes) -> bytes:
    return word.decode(errors="surrogateescape").lower().encode(errors="surrogateescape")


def _capitalised(word: bytes) -> bytes:
    text = word.decode(errors="surrogateescape")
    return (text[:1].upper() + text[1:]).encode(errors="surrogateescape")


CHANGES: Mapping[str, Callable[[bytes], bytes]] = {
    "in lower case": _lower,
    "with a capital": _capitalised,
    "escaped (&apos; for ')": escape,
    "unescaped (' for &apos;)": unescape,
    "without punctuation at their ends": _without_punctuation,
}
REMEDIES = {
    "in lower case": "the table is of lower-cased or truecased text: do the same to this one",
    "with a capital": "the table is of text in its own case: do not lower-case this one",
    "escaped (&apos; for ')": "the table is of text from Moses' tokenizer, which escapes: run "
    "escape-special-chars.perl, or the tokenizer without -no-escape",
    "unescaped (' for &apos;)": "the table is of text without escapes: run "
    "deescape-special-chars.perl, or the tokenizer with -no-escape",
    "without punctuation at their ends": "the text is not tokenised: tokenise it like the table's "
    "training text",
}


def check_filtered(scan: TableScan, sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """Yield a finding if a filtered table was filtered for another text."""
    if "filtered" not in scan.path.absolute().parent.name or not scan.sources:
        return
    longest = max(source.count(b" ") + 1 for source in scan.sources)
    phrases = {
        b" ".join(sentence[first : first + length])
        for sentence in sentences
        for first in range(len(sentence))
        for length in range(1, min(longest, len(sentence) - first) + 1)
    }
    others = sum(source not in phrases for source in scan.sources)
    if others:
        yield Finding(
            "warning",
            str(scan.path),
            f"{others:,} of its {len(scan.sources):,} source phrases are not in the input",
            "it was filtered for another text, or nothing was filtered: phrases may be missing, or "
            "memory and minutes are lost (mert-moses.pl reuses a folder that is there)",
            "remove the folder, and filter again for this input",
        )


LONGEST = 100
"""The longest usual sentence, in words: longer ones take a phrase-based decoder minutes."""
MOST_LONG, MUCH_TOO_LONG = 0.01, 250
"""Warn from this share of longer sentences on, or from a sentence of this many words on."""
MOST_SENTENCES = 2000
"""The number of sentences searched for factors."""

Sentence = list[bytes]


def is_factored(sentences: Sequence[Sentence]) -> bool:
    """Return whether most words have factors."""
    words = [word for sentence in sentences[:MOST_SENTENCES] for word in sentence]
    return sum(b"|" in word.strip(b"|") for word in words) > len(words) / 2


def check_text(path: str) -> Generator[Finding, None, list[Sentence] | None]:
    """Yield the faults of a text alone.

    Returns:
        Its sentences as tokens; None if it is unusable.
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
    """Yield a finding if the reference at `path` has another number of lines than the input."""
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
