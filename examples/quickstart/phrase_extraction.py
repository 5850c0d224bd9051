"""A phrase table from aligned sentence pairs, by the heuristic that Moses' training uses.

Consistent phrase pairs (Och and Ney 2004; Koehn, Och and Marcu 2003), with relative frequencies
and lexical weights in both directions, in the format and order of Moses' `train-model.perl`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from grammar import Pair

MAX_LENGTH = 5
NULL = "NULL"

Phrase = tuple[str, ...]
Links = tuple[tuple[int, int], ...]


def phrase_pairs(sentence: Pair) -> Iterator[tuple[Phrase, Phrase, Links]]:
    """Yield the phrase pairs that are consistent with the alignment, up to 5 words a side."""
    source, target, links = sentence.english, sentence.french, sentence.links
    aligned_targets = {j for _, j in links}
    for first in range(len(source)):
        for last in range(first, min(first + MAX_LENGTH, len(source))):
            linked = [j for i, j in links if first <= i <= last]
            if not linked:
                continue
            low, high = min(linked), max(linked)
            if any(low <= j <= high and not first <= i <= last for i, j in links):
                continue
            start = low
            while True:  # unaligned words at either end may belong to the phrase
                end = high
                while end - start < MAX_LENGTH:
                    inside = sorted((i - first, j - start) for i, j in links if first <= i <= last)
                    yield source[first : last + 1], target[start : end + 1], tuple(inside)
                    end += 1
                    if end >= len(target) or end in aligned_targets:
                        break
                start -= 1
                if start < 0 or start in aligned_targets:
                    break


class LexicalWeights:
    """Word translation probabilities in both directions, from the links."""

    def __init__(self, sentences: Sequence[Pair]) -> None:
        joint: Counter[tuple[str, str]] = Counter()
        for sentence in sentences:
            source, target = sentence.english, sentence.french
            joint.update((source[i], target[j]) for i, j in sentence.links)
            linked_sources = {i for i, _ in sentence.links}
            linked_targets = {j for _, j in sentence.links}
            joint.update((w, NULL) for i, w in enumerate(source) if i not in linked_sources)
            joint.update((NULL, w) for j, w in enumerate(target) if j not in linked_targets)
        self._joint = joint
        self._source: Counter[str] = Counter()
        self._target: Counter[str] = Counter()
        for (s, t), count in joint.items():
            self._source[s] += count
            self._target[t] += count

    def target_given_source(self, source: Phrase, target: Phrase, links: Links) -> float:
        """Return lex(target | source): the mean over each word's links, multiplied over words."""
        of_word = defaultdict(list)
        for i, j in links:
            of_word[j].append(source[i])
        return math.prod(
            _mean(self._joint[s, word] / self._source[s] for s in of_word.get(j, [NULL]))
            for j, word in enumerate(target)
        )

    def source_given_target(self, source: Phrase, target: Phrase, links: Links) -> float:
        """Return lex(source | target)."""
        of_word = defaultdict(list)
        for i, j in links:
            of_word[i].append(target[j])
        return math.prod(
            _mean(self._joint[word, t] / self._target[t] for t in of_word.get(i, [NULL]))
            for i, word in enumerate(source)
        )


def _mean(values: Iterator[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


def phrase_table(sentences: Sequence[Pair]) -> list[bytes]:
    """Return the lines of the phrase table, in the order of `LC_ALL=C sort`."""
    joint: Counter[tuple[Phrase, Phrase]] = Counter()
    alignments: dict[tuple[Phrase, Phrase], Counter[Links]] = defaultdict(Counter)
    for sentence in sentences:
        for source, target, links in phrase_pairs(sentence):
            joint[source, target] += 1
            alignments[source, target][links] += 1
    source_counts: Counter[Phrase] = Counter()
    target_counts: Counter[Phrase] = Counter()
    for (source, target), count in joint.items():
        source_counts[source] += count
        target_counts[target] += count
    lexical = LexicalWeights(sentences)
    lines = []
    for (source, target), count in joint.items():
        links = min(alignments[source, target].items(), key=lambda item: (-item[1], item[0]))[0]
        scores = (
            count / target_counts[target],
            lexical.source_given_target(source, target, links),
            count / source_counts[source],
            lexical.target_given_source(source, target, links),
        )
        fields = (
            " ".join(source),
            " ".join(target),
            " ".join(f"{score:.6g}" for score in scores),
            " ".join(f"{i}-{j}" for i, j in links),
            f"{target_counts[target]} {source_counts[source]} {count}",
        )
        lines.append((" ||| ".join(fields) + " ||| |||\n").encode())
    return sorted(lines)
