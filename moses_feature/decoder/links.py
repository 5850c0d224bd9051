"""The word alignments of phrase pairs, and the source word affiliated to each target word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.source_phrases import surface_words
from moses_feature.decoder.system import PhraseTable
from moses_feature.decoder.tables import TargetPhrases, links_of
from moses_feature.joint.texts import affiliate, affiliations
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import SOURCE, TARGET, split_fields, tokens
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.errors import FormatError


def affiliations_of(
    links: NDArray[np.object_], source_words: Integers, target: Integers, word_offsets: Integers
) -> tuple[Integers, Integers, int]:
    """Find the source word affiliated to each target word, counted from the phrase's first word.

    Args:
        links: (options,) word alignments as in the phrase table.
        source_words: (options,) the number of words of the source phrase.
        target: (options,) target phrases.
        word_offsets: (target phrases + 1,) where the words of each begin.

    Returns:
        (options + 1,) where the affiliations of each option begin; all affiliations; and the first
        option with bad links, -1 if there is none.
    """
    counts = np.diff(word_offsets)[target]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    found = np.zeros(offsets[-1], dtype=np.int64)
    text = np.frombuffer(b"".join(links), dtype=np.uint8)
    ends = np.cumsum([0, *map(len, links)])
    return offsets, found, _affiliate_all(text, ends, source_words, offsets, found)


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


@compiled
def _affiliate_all(
    text: Bytes, ends: Integers, source_words: Integers, offsets: Integers, found: Integers
) -> int:
    """Write the affiliations of all options; return the first one with bad links, or -1."""
    for option in range(len(source_words)):
        of_option = found[offsets[option] : offsets[option + 1]]
        begin, end = ends[option], ends[option + 1]
        if affiliate(text, begin, end, source_words[option], of_option) < 0:
            return option
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
                try:
                    affiliations(links_of(line), len(words), len(tokens(target)))
                except ValueError as error:
                    expected, found = error.args
                    return FormatError(table.path, expected, found, reader.line_number)
    raise AssertionError("the pair was read before")
