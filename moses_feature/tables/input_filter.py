"""Which source phrases occur in given texts.

By the rule of Moses' `scripts/training/filter-model-given-input.pl`.
"""

from __future__ import annotations

from collections.abc import Iterable

from moses_feature.moses.phrase_table import LineReader, tokens

MAX_LENGTH = 10
"""Longest phrase in tokens; as in Moses' script."""


def phrases_in_texts(paths: Iterable[str]) -> tuple[set[bytes], list[str]]:
    """Return all substrings of up to 10 tokens of the texts' lines, and the texts' SHA-256.

    Tokens of a phrase are one space apart.
    """
    phrases, digests = set(), []
    for path in paths:
        with LineReader(path) as reader:
            for line in reader:
                words = tokens(line)
                for start in range(len(words)):
                    for end in range(start + 1, min(start + MAX_LENGTH, len(words)) + 1):
                        phrases.add(b" ".join(words[start:end]))
            digests.append(reader.digest())
    return phrases, digests
