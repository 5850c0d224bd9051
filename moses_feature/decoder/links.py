"""The word alignments of phrase pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.source_phrases import surface_words
from moses_feature.decoder.system import PhraseTable
from moses_feature.decoder.tables import TargetPhrases, links_of
from moses_feature.moses.alignments import links_of as links_between
from moses_feature.moses.alignments import read_links
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import SOURCE, TARGET, split_fields, tokens
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.errors import FormatError


def shifted(links: bytes, source: int, target: int) -> bytes:
    """Return the links of a phrase pair as links of its sentence pair.

    Args:
        links: the links of the phrase pair.
        source: the number of source words before it.
        target: the number of target words before it.
    """
    places = (link.split(b"-") for link in links.split())
    pairs = sorted((int(of_source), int(of_target)) for of_source, of_target in places)
    return b" ".join(b"%d-%d" % (source + s, target + t) for s, t in pairs)


def first_bad(links: NDArray[np.object_], source_words: Integers, target_words: Integers) -> int:
    """Return the first phrase pair without links, or with bad ones; -1 if there is none.

    Args:
        links: (pairs,) word alignments as in the phrase table.
        source_words: (pairs,) the number of words of each source phrase.
        target_words: (pairs,) the number of words of each target phrase; it may be 0.
    """
    text = np.frombuffer(b"".join(links), dtype=np.uint8)
    return _first_bad(text, np.cumsum([0, *map(len, links)]), source_words, target_words)


@compiled
def _first_bad(text: Bytes, ends: Integers, source_words: Integers, target_words: Integers) -> int:
    room = np.empty(len(text) // 3 + 1, np.int64)
    for pair in range(len(source_words)):
        words = source_words[pair], target_words[pair]
        count = read_links(text, ends[pair], ends[pair + 1], *words, room)
        if count < 0 or (count == 0 and words[1] > 0):
            return pair
    return -1


def links_error(
    tables: Sequence[PhraseTable], targets: TargetPhrases, source: bytes, target: bytes
) -> FormatError:
    """Return the error for the table line in which a phrase pair has bad links."""
    for table in tables:
        with LineReader(table.path) as reader:
            for line in reader:
                if source.split()[0] not in line:
                    continue
                fields = split_fields(line, table.path, reader.line_number)
                words = surface_words(fields[SOURCE])
                if (b" ".join(words), targets.phrase_of(fields[TARGET])) != (source, target):
                    continue
                links = links_of(line)
                try:
                    links_between(links, len(words), len(tokens(target)))
                except ValueError as error:
                    expected, found = error.args
                    return FormatError(table.path, expected, found, reader.line_number)
                if not links:
                    expected = "word alignments, such as 0-0 1-1"
                    return FormatError(table.path, expected, "none", reader.line_number)
    raise AssertionError("the pair was read before")
