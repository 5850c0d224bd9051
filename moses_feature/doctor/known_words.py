"""The words of a text that a table knows, and why it does not know the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import TableScan, Words
from moses_feature.doctor.texts import Sentence
from moses_feature.moses.words import escape, unescape

Side = Literal["source", "target"]
FEW_KNOWN = 0.85
"""Share of known words below which a text is looked at; in real systems it is 0.9 to 1."""
ALL_KNOWN = 0.98
"""Share of known words above which all is well."""
EXPLAINED, MOSTLY_EXPLAINED = 0.2, 0.5
"""Shares of unknown words that a change must make known, where few are known and where many."""
PUNCTUATION = b".,;:!?\"'()[]"


def known_share(sentences: Sequence[Sentence], known: Collection[bytes]) -> float:
    """Return the share of words that are known."""
    words = [word for sentence in sentences for word in sentence]
    return sum(word in known for word in words) / max(len(words), 1)


def check_known(
    path: str, sentences: Sequence[Sentence], tables: Words, side: Side
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


def check_filtered(scan: TableScan, sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """Yield whether a table in a folder of filtered ones was filtered for another text."""
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
