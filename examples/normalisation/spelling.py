"""Words of an invented language, and how its old prints spelt them.

A word is a few syllables and an ending. The old spelling of a letter depends on what stands around
it, and on the printer's mood; each letter of it is linked to those of today that it stands for.
"""

from __future__ import annotations

import random

from grammar import Pair, join

ONSETS = [
    "b",
    "d",
    "f",
    "g",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "w",
    "st",
    "sp",
    "kl",
    "br",
    "tr",
    "gr",
    "schl",
]
NUCLEI = ["a", "e", "i", "o", "u", "ei", "au", "ie", "ü"]
CODAS = ["", "", "", "n", "r", "l", "s", "t", "nd", "rt", "ng"]
ENDINGS = ["", "e", "en", "er", "ung", "lich", "heit"]
VOWELS = set("aeiouü")


def word(generator: random.Random) -> str:
    """Return a word in the spelling of today."""
    syllables = generator.choices((1, 2, 3), weights=(3, 5, 2))[0]
    parts = [generator.choice(part) for _ in range(syllables) for part in (ONSETS, NUCLEI, CODAS)]
    return "".join(parts) + generator.choice(ENDINGS)


def old_spelling(modern: str, generator: random.Random) -> Pair:
    """Return a word as an old print has it, and as we write it, letter by letter."""
    parts = []
    place = 0
    while place < len(modern):
        for length in (2, 1):
            letters = modern[place : place + length]
            spelt = _spelt(modern, place, letters, generator)
            if spelt is not None:
                break
        assert spelt is not None  # noqa: S101  # single letters always are
        links = frozenset((i, j) for i in range(len(spelt)) for j in range(len(letters)))
        parts.append(Pair(tuple(spelt), tuple(letters), links))
        place += len(letters)
    return join(parts)


def _spelt(modern: str, place: int, letters: str, generator: random.Random) -> str | None:
    """Return the old spelling of one letter or two, None for two that are nothing special."""
    often, seldom = generator.random() < 0.8, generator.random() < 0.15
    last = place + len(letters) == len(modern)
    after = modern[place + len(letters)] if not last else ""
    before = modern[place - 1] if place else ""
    doubled = {"n": "nn", "f": "ff", "t": "tt", "l": "ll"}
    if len(letters) > 1:
        pairs = {"ei": "ey" if often else "ei", "au": "aw" if last else "au", "ie": "i"}
        return pairs.get(letters) if not seldom else None
    if letters == "s" and not last:
        return "ſ"
    if letters == "u" and not place:
        return "v"
    if letters == "v" and place:
        return "u"
    if letters == "i" and before in VOWELS:
        return "y"
    if letters == "ü":
        return "uͤ" if often else "ü"
    if letters == "t" and after in VOWELS and seldom:
        return "th"
    if letters in doubled and before in VOWELS and (last or after not in VOWELS) and often:
        return doubled[letters]
    if letters == "e" and last and seldom:
        return "ee"
    return letters
