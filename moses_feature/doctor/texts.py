"""Texts against a table: language, casing, escaping, tokenisation, order, lengths."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from moses_feature.arrays import Floats
from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import TableScan, Words
from moses_feature.errors import MosesFeatureError
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import escape, unescape

FEW_KNOWN = 0.85
"""Share of known words below which a text is looked at; in real systems it is 0.9 to 1."""
ALL_KNOWN = 0.98
"""Share of known words above which all is well."""
EXPLAINED, MOSTLY_EXPLAINED = 0.2, 0.5
"""Shares of unknown words that a change must make known, where few are known and where many."""
LONGEST = 100
"""Words of a sentence: longer ones take a phrase-based decoder minutes."""
MOST_LONG, MUCH_TOO_LONG = 0.01, 250
"""Share of longer sentences, and words of one, from which on that is a warning."""
COMPARED = 2000
"""Sentences whose order is looked at."""
APART = 7
"""How far apart sentences are that have nothing to do with each other."""
SHIFTS = (1, -1, 2, -2, 3, -3)
BLOCK = 20
"""Sentences whose references may have moved together."""
LEAST_GAIN = 1.5
"""How many times more of its own reference a sentence predicts than of another one."""
BLOCK_GAIN = 2.0
"""How many times more a moved reference must have, of a block."""
LEAST_TRANSLATED = 0.6
"""Share of the words that must have translations of their own for all of this."""

Sentence = list[bytes]
PUNCTUATION = b".,;:!?\"'()[]"


def read_text(path: str) -> list[Sentence]:
    """Return the sentences of a text as tokens."""
    with LineReader(path) as reader:
        return [tokens(line) for line in reader]


def is_factored(sentences: Sequence[Sentence]) -> bool:
    """Return whether most words have factors."""
    words = [word for sentence in sentences[:COMPARED] for word in sentence]
    return sum(b"|" in word.strip(b"|") for word in words) > len(words) / 2


def check_text(path: str) -> Iterator[Finding]:
    """Yield what is wrong with a text by itself."""
    try:
        with LineReader(path) as reader:
            lines = list(reader)
    except MosesFeatureError as error:
        yield Finding("problem", path, str(error), "nothing can be translated", "see the file")
        return
    if not any(line.strip() for line in lines):
        yield Finding("problem", path, "no word", "nothing can be translated", "see the file")
        return
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
            f"{ends:,} lines that end as on Windows (CR LF)",
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
    empty = sum(not line.strip() for line in lines)
    if empty:
        yield Finding(
            "note",
            path,
            f"{empty:,} empty lines",
            "they are translated by nothing; some tools lose them, and all lines after them move",
            "see that input and references have the same lines",
        )
    longest = [(len(tokens(line)), n) for n, line in enumerate(lines, 1)]
    long = [n for length, n in longest if length > LONGEST]
    if long:
        many = len(long) > MOST_LONG * len(lines) or max(longest)[0] > MUCH_TOO_LONG
        yield Finding(
            "warning" if many else "note",
            f"{path} at line {max(longest)[1]}",
            f"{len(long):,} sentence{'s' if len(long) > 1 else ''} of more than {LONGEST} words, "
            f"the longest of {max(longest)[0]:,}",
            "decoding takes minutes a sentence, and gigabytes",
            "split them, or leave them out of tuning (clean-corpus-n.perl of Moses)",
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def known_share(sentences: Sequence[Sentence], known: Collection[bytes]) -> float:
    """Return the share of words that are known."""
    words = [word for sentence in sentences for word in sentence]
    return sum(word in known for word in words) / max(len(words), 1)


def check_known(
    path: str, sentences: Sequence[Sentence], tables: Words, side: Literal["source", "target"]
) -> Iterator[Finding]:
    """Yield why words of a text are unknown to the side of the tables that it should be like."""
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


def sample_words(sentences: Sequence[Sentence]) -> set[bytes]:
    """Return the words whose translations `check_order` needs."""
    return {word for sentence in sentences[:COMPARED] for word in sentence}


def check_order(
    tables: Words, path: str, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> Iterator[Finding]:
    """Yield whether the lines of a reference are those of another text, or moved.

    The translations that the table has for the words of a sentence predict its own reference
    better than that of another sentence.
    """
    if len(references) != len(sentences):
        yield Finding(
            "problem",
            path,
            f"{len(references):,} lines, the input has {len(sentences):,}",
            "sentences are compared with references of others",
            "see which lines are missing; empty ones count",
        )
        return
    size = min(COMPARED, len(sentences))
    if size < 2 * BLOCK or _translated(tables, sentences[:size]) < LEAST_TRANSLATED:
        return
    predicted = [
        set().union(*(tables.translations.get(word, ()) for word in sentence))
        for sentence in sentences[:size]
    ]

    said = [set(reference) for reference in references[:size]]
    rare = _inverse_frequencies(said)

    def found(shift: int) -> Floats:
        return np.array(
            [
                sum(rare[word] for word in words & said[(n + shift) % size])
                for n, words in enumerate(predicted)
            ]
        )

    if len({tuple(reference) for reference in references[:size]}) < size / 2:
        return  # texts that repeat themselves
    own, others = found(0), found(APART)
    moved = {shift: found(shift) for shift in SHIFTS}
    if others.sum() and own.sum() < LEAST_GAIN * others.sum():
        best = max(moved, key=lambda shift: moved[shift].sum())
        fits = moved[best].sum() >= LEAST_GAIN * others.sum()
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
        return
    for first in range(0, size - BLOCK + 1, BLOCK):
        block = slice(first, first + BLOCK)
        best = max(moved, key=lambda shift: moved[shift][block].sum())
        if moved[best][block].sum() > BLOCK_GAIN * max(own[block].sum(), 1.0):
            yield Finding(
                "problem",
                f"{path} at line {first + 1}",
                f"from about here, its lines fit those of the input moved by {best}",
                "sentences are compared with references of others: BLEU is much too low",
                "see which line is missing or doubled somewhat before",
            )
            return


def _inverse_frequencies(sentences: Sequence[set[bytes]]) -> dict[bytes, float]:
    """Return the log of how rare each word is: those in all sentences say nothing."""
    counts = Counter(word for sentence in sentences for word in sentence)
    return {word: math.log(len(sentences) / count) for word, count in counts.items()}


def _translated(tables: Words, sentences: Sequence[Sentence]) -> float:
    """Return the share of words that the tables have translations for by themselves."""
    words = [word for sentence in sentences for word in sentence]
    return sum(bool(tables.translations.get(word)) for word in words) / max(len(words), 1)


def check_filtered(scan: TableScan, sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """Yield whether a table in a folder of filtered ones was filtered for another text."""
    if "filtered" not in scan.path.absolute().parent.name or not scan.sources:
        return
    longest = max(source.count(b" ") + 1 for source in scan.sources)
    phrases = {
        b" ".join(sentence[first : first + length])
        for sentence in sentences
        for first in range(len(sentence))
        for length in range(1, longest + 1)
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
