"""Checks of a text: alone, by the words that a table knows, and of the order of its lines.

Unknown words are explained. The translations that a table has for the words of a sentence predict
its own reference much better than that of another sentence.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import WordsOfTables
from moses_feature.moses.lines import BYTE_ORDER_MARK, LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import escape, unescape
from moses_feature.networks.vocabulary import is_utf8
from moses_feature.runtime.errors import MosesFeatureError

Side = Literal["source", "target"]
FEW_KNOWN = 0.85
"""A text with a smaller share of known words is checked; in real systems it is 0.9 to 1."""
ALL_KNOWN = 0.98
"""A text with a larger share of known words is fine."""
EXPLAINED, MOSTLY_EXPLAINED = 0.2, 0.5
"""The share of unknown words that a change must make known, if few words are known, and if many."""
PUNCTUATION = b".,;:!?\"'()[]"
NOT_TOKENISED = "the text is not tokenised: tokenise it like the table's training text"
CLEARLY_MORE = 0.1
"""The share of unknown words that a second change must make known besides."""


def known_share(sentences: Sequence[Sentence], known: Collection[bytes]) -> float:
    """Return the share of words that are known."""
    words = [word for sentence in sentences for word in sentence]
    return sum(word in known for word in words) / max(len(words), 1)


def check_known(
    path: str,
    sentences: Sequence[Sentence],
    tables: WordsOfTables,
    side: Side,
    prepared_by: Path | None,
) -> Iterator[Finding]:
    """Yield why words of a text are unknown to the side of the tables with its language.

    Args:
        path: the text.
        sentences: its sentences.
        tables: the words of the tables.
        side: of the tables.
        prepared_by: the system that prepares raw texts; None for one of tokenised texts.
    """
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
    best, remedy, explained = _explained(unknown, known)
    if prepared_by is not None:
        of_side = " --side target" if side == "target" else ""
        remedy += f" (raw text is prepared by moses-feature text prepare {prepared_by}{of_side})"
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
    elif explained >= (EXPLAINED if few else MOSTLY_EXPLAINED):
        yield Finding(
            "problem" if few else "warning",
            path,
            f"{what}; {100 * explained:.0f}% of the others would be known {best}",
            effect,
            remedy,
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


def _explained(unknown: Sequence[bytes], known: Collection[bytes]) -> tuple[str, str, float]:
    """Return the change that makes most unknown words known, its remedy, and their share.

    Two changes at once must make clearly more words known than one of them.
    """
    pairs = [(one, other) for one in CASES for other in FORMS]
    best: tuple[str, ...] = ()
    share = 0.0
    for names in [*((name,) for name in CHANGES), *pairs]:
        found = sum(all(part in known for part in _changed(word, names)) for word in unknown) / max(
            len(unknown), 1
        )
        if found > share + (CLEARLY_MORE if len(names) > 1 else 0.0):
            best, share = names, found
    return " and ".join(best), "; ".join(CHANGES[name].remedy for name in best), share


def _changed(word: bytes, names: Sequence[str]) -> list[bytes]:
    """Return the words that a word becomes by some changes, one after the other."""
    words = [word]
    for name in names:
        words = [part for each in words for part in CHANGES[name].change(each)]
    return words or [word]


def _of_text(change: Callable[[str], str]) -> Callable[[bytes], list[bytes]]:
    """Return a change of words as characters, as one of bytes; other bytes stay."""

    def changed(word: bytes) -> list[bytes]:
        try:
            return [change(word.decode(errors="surrogateescape")).encode(errors="surrogateescape")]
        except UnicodeError:
            return [word]

    return changed


def _tokenised(word: bytes) -> list[bytes]:
    """Return the parts of a word that are more than a punctuation mark or a single letter."""
    parts = _LETTERS.findall(word.decode(errors="surrogateescape"))
    return [part.encode(errors="surrogateescape") for part in parts if len(part) > 1]


@dataclass(frozen=True)
class _WordChange:
    """A change of words that may make them known, and what to do if it does."""

    change: Callable[[bytes], list[bytes]]
    remedy: str


CASES = ("in lower case", "with a capital")
FORMS = (
    "without punctuation at their ends",
    "if they were tokenised",
    "escaped (&apos; for ')",
    "unescaped (' for &apos;)",
)
_LETTERS = re.compile(r"[^\W_]+")
CHANGES: Mapping[str, _WordChange] = {
    "in lower case": _WordChange(
        _of_text(str.lower),
        "the table is of lower-cased or truecased text: do the same to this one",
    ),
    "with a capital": _WordChange(
        _of_text(lambda word: word[:1].upper() + word[1:]),
        "the table is of text in its own case: do not lower-case this one",
    ),
    "escaped (&apos; for ')": _WordChange(
        lambda word: [escape(word)],
        "the table is of text from Moses' tokenizer, which escapes: run "
        "escape-special-chars.perl, or the tokenizer without -no-escape",
    ),
    "unescaped (' for &apos;)": _WordChange(
        lambda word: [unescape(word)],
        "the table is of text without escapes: run deescape-special-chars.perl, or the tokenizer "
        "with -no-escape",
    ),
    "without punctuation at their ends": _WordChange(
        lambda word: [word.strip(PUNCTUATION)], NOT_TOKENISED
    ),
    "if they were tokenised": _WordChange(_tokenised, NOT_TOKENISED),
    "with composed letters (NFC)": _WordChange(
        _of_text(lambda word: unicodedata.normalize("NFC", word)),
        "the text has letters and accents apart (NFD): uconv -x nfc, or Python's unicodedata",
    ),
    "if it were not UTF-8 read as Latin-1 (mojibake)": _WordChange(
        _of_text(lambda word: word.encode("cp1252").decode()),
        "the text went through a wrong encoding: iconv -f utf-8 -t cp1252 turns it back",
    ),
}
"""Changes by what they are called in a finding."""


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
    if lines[0].startswith(BYTE_ORDER_MARK):
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
    odd = next((n for n, line in enumerate(lines, 1) if not is_utf8(line)), None)
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


COMPARED = 2000
"""The number of sentences whose order is checked."""
FEWEST = 40
"""The fewest sentences whose order can be judged."""
APART = 7
"""The distance, in lines, of sentences assumed to be unrelated."""
SHIFTS = (1, -1, 2, -2, 3, -3)
LEAST_GAIN = 1.5
"""How many times better a sentence predicts its own reference than an unrelated one.

It is 6 or more in aligned texts (Multi30k, laws).
"""
LEAST_DIFFERENT = 0.5
"""The least share of different lines in texts whose order can be judged."""
LEAST_TRANSLATED = 0.6
"""The least share of words with translations in the table for this check."""


def sample_words(sentences: Sequence[Sentence]) -> set[bytes]:
    """Return the words whose translations `check_order` needs."""
    return {word for sentence in sentences[:COMPARED] for word in sentence}


def check_order(
    tables: WordsOfTables, path: str, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> Iterator[Finding]:
    """Yield a finding if the lines of a reference are those of another text, or shifted.

    There must be as many references as sentences.
    """
    sentences, references = sentences[:COMPARED], references[:COMPARED]
    if len(sentences) < FEWEST or _translated(tables, sentences) < LEAST_TRANSLATED:
        return
    if len(set(map(tuple, references))) < LEAST_DIFFERENT * len(references):
        return
    agreement = _agreement(tables, sentences, references)
    needed = LEAST_GAIN * agreement[APART]
    if agreement[0] >= needed:
        return
    best = max(SHIFTS, key=lambda shift: agreement[shift])
    fits = agreement[best] >= needed
    yield Finding(
        "problem",
        path,
        "its lines do not belong to those of the input"
        + (f"; moved by {best}, they do" if fits else ""),
        "sentences are compared with references of others: BLEU is next to nothing",
        "see which line is missing or doubled"
        if fits
        else "see that both are of the same text, in the same order",
    )


def _agreement(
    tables: WordsOfTables, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> dict[int, float]:
    """Return how well sentences predict their own references (0), and shifted ones.

    It is the sum over the words that the translations of a sentence and the reference share, each
    the log of its inverse frequency.
    """
    predicted = [
        set().union(*(tables.translations.get(word, ()) for word in sentence))
        for sentence in sentences
    ]
    said = [set(reference) for reference in references]
    counts = Counter(word for words in said for word in words)
    rare = {word: math.log(len(said) / count) for word, count in counts.items()}
    return {
        shift: sum(
            rare[word]
            for n, words in enumerate(predicted)
            for word in words & said[(n + shift) % len(said)]
        )
        for shift in (0, APART, *SHIFTS)
    }


def _translated(tables: WordsOfTables, sentences: Sequence[Sentence]) -> float:
    """Return the share of words for which the tables have translations of the single word."""
    words = [word for sentence in sentences for word in sentence]
    return sum(bool(tables.translations.get(word)) for word in words) / max(len(words), 1)
