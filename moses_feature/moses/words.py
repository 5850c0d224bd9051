"""From the tokens of a phrase to the words that the network sees.

A token of a phrase table may be escaped (`&apos;`), factored (`word|POS`) or a non-terminal
(`[X][X]`). The table itself is never rewritten; these changes are only made for the network.
Escapes are those of Moses' `scripts/tokenizer/escape-special-chars.perl`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.errors import DataError, shown

Escaping = Literal["as-is", "unescape", "escape"]
ESCAPINGS: tuple[Escaping, ...] = get_args(Escaping)

LONGEST_PHRASE = 1000
"""The most words of a phrase; in tables the longest have about ten, sentences some hundreds."""

_ESCAPES = {
    b"&": b"&amp;",
    b"|": b"&#124;",
    b"<": b"&lt;",
    b">": b"&gt;",
    b"'": b"&apos;",
    b'"': b"&quot;",
    b"[": b"&#91;",
    b"]": b"&#93;",
}
_UNESCAPES = {escape: character for character, escape in _ESCAPES.items()}
_UNESCAPES |= {b"&bar;": b"|", b"&bra;": b"[", b"&ket;": b"]"}  # of older Moses versions
_ESCAPE = re.compile(b"|".join(_UNESCAPES))
_SPECIAL = re.compile(rb"[&|<>'\"\[\]]")
_NON_TERMINAL = re.compile(rb"\[[^\[\]]+\]\[[^\[\]]+\]")
_LINK = re.compile(rb"(?<![^ \t])([0-9]{1,9})-([0-9]{1,9})(?![^ \t\r\n])")
_LEFT_HAND_SIDE = re.compile(rb"\[[^\[\]]+\]")


class WordError(DataError):
    """A phrase cannot be turned into words as requested."""


@dataclass(frozen=True)
class WordOptions:
    """How the tokens of a phrase pair become words.

    Attributes:
        source_factor: index of the factor to use as the word, None for the whole token.
        target_factor: the same for the target side.
        hierarchical: accept hierarchical rules: the left-hand side is left out, and each
            non-terminal counts as one symbol, numbered in the order of the source side.
        escaping: whether to escape or unescape tokens before they are looked up.
    """

    source_factor: int | None = None
    target_factor: int | None = None
    hierarchical: bool = False
    escaping: Escaping = "as-is"

    def __post_init__(self) -> None:
        for factor in (self.source_factor, self.target_factor):
            if factor is not None and (type(factor) is not int or factor < 0):
                raise ValueError(f"a factor is counted from 0, found {factor!r}")
        if type(self.hierarchical) is not bool or self.escaping not in ESCAPINGS:
            raise ValueError(f"found {self.hierarchical!r} and {self.escaping!r}")

    @property
    def plain(self) -> bool:
        """Whether tokens are words as they are, except in rules."""
        return self.source_factor is self.target_factor is None and self.escaping == "as-is"

    def pair(
        self, source: bytes, target: bytes, alignment: bytes = b""
    ) -> tuple[list[bytes], list[bytes]]:
        """Return the words of a phrase pair, given as the fields of its line.

        Raises:
            WordError: a factor is missing, a phrase is too long, or the pair is a hierarchical
                rule and `hierarchical` is not set.
        """
        source_tokens, target_tokens = tokens(source), tokens(target)
        if b"]" in source and _is_rule(source_tokens):
            if not self.hierarchical:
                raise WordError(
                    f"expected a phrase, found a hierarchical or syntax rule {shown(source)}: the "
                    "network reads plain phrases; --hierarchical scores rules all the same, each "
                    "non-terminal as one symbol"
                )
            source_tokens, target_tokens = _rule_words(source_tokens, target_tokens, alignment)
        longest = max(len(source_tokens), len(target_tokens))
        if longest > LONGEST_PHRASE:
            raise WordError(f"expected phrases of at most {LONGEST_PHRASE} words, found {longest}")
        return (
            self._words(source_tokens, self.source_factor),
            self._words(target_tokens, self.target_factor),
        )

    def sentences(self, source: bytes, target: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return the words of a sentence and its translation; one that ends in [3] is no rule.

        Raises:
            WordError: a factor is missing.
        """
        return (
            self._words(tokens(source), self.source_factor),
            self._words(tokens(target), self.target_factor),
        )

    def _words(self, phrase: list[bytes], factor: int | None) -> list[bytes]:
        if factor is not None:
            phrase = [_factor(token, factor) for token in phrase]
        if self.escaping == "unescape":
            return [unescape(token) if b"&" in token else token for token in phrase]
        if self.escaping == "escape":
            return [escape(token) for token in phrase]
        return phrase


def escape(token: bytes) -> bytes:
    """Return the token with Moses' special characters escaped."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], token)


def unescape(token: bytes) -> bytes:
    """Return the token with Moses' escapes, including legacy ones, replaced by characters."""
    return _ESCAPE.sub(lambda match: _UNESCAPES[match[0]], token)


def any_escaped(words: Iterable[bytes]) -> bool:
    """Return whether any of the words holds one of Moses' escapes."""
    return any(_ESCAPE.search(word) for word in words)


def _factor(token: bytes, factor: int) -> bytes:
    factors = token.split(b"|")
    if factor >= len(factors):
        raise WordError(f"expected factor {factor} (counted from 0), found {shown(token)}")
    return factors[factor]


def _is_rule(source_tokens: list[bytes]) -> bool:
    return bool(source_tokens) and _LEFT_HAND_SIDE.fullmatch(source_tokens[-1]) is not None


def _rule_words(
    source: list[bytes], target: list[bytes], alignment: bytes
) -> tuple[list[bytes], list[bytes]]:
    """Leave out the left-hand sides; number the non-terminals, linked ones with the same number."""
    numbers: dict[int, bytes] = {}
    for position, token in enumerate(source[:-1]):
        if _NON_TERMINAL.fullmatch(token):
            numbers[position] = b"[%d]" % (len(numbers) + 1)
    links = {int(j): int(i) for i, j in _LINK.findall(alignment)}
    source_words = [numbers.get(position, token) for position, token in enumerate(source[:-1])]
    target_words = []
    for position, token in enumerate(target[:-1]):
        if _NON_TERMINAL.fullmatch(token):
            token = numbers.get(links.get(position, -1), b"[1]")
        target_words.append(token)
    return source_words, target_words
