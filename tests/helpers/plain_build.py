"""Plain twins of building: tables by dictionaries of words, links by sets, n-grams by counters."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

Words = tuple[bytes, ...]
Link = tuple[int, int]
Pair = tuple[Words, Words, frozenset[Link]]

BEGIN, END, UNKNOWN = b"<s>", b"</s>", b"<unk>"


def spans(source: int, target: int, links: frozenset[Link], longest: int) -> Iterator[tuple]:
    """Yield consistent pairs as (first, behind the last) of the source and of the target side."""
    for a in range(source):
        for b in range(a + 1, min(source, a + longest) + 1):
            for c in range(target):
                for d in range(c + 1, min(target, c + longest) + 1):
                    inside = [a <= s < b and c <= t < d for s, t in links]
                    touched = [a <= s < b or c <= t < d for s, t in links]
                    # Moses' target phrases are those that have links at all; what grows is the
                    # source side, over words without links.
                    if any(inside) and inside == touched:
                        yield a, b, c, d


def orientation(source: int, target: int, links: frozenset[Link], near, far, edge, step) -> str:
    """Return how a phrase stands beside its neighbour: by the words linked to the next target."""
    row = edge + step
    points = {*links, (-1, -1), (source, target)}
    if (near + step, row) in points and (far - step, row) not in points:
        return "mono"
    if (far - step, row) in points and (near + step, row) not in points:
        return "swap"
    ahead = range(near + step, source) if step > 0 else range(near + step, -2, -1)
    back = range(far - step, -2, -1) if step > 0 else range(far - step, source + 1)
    in_front, behind = (any((s, row) in points for s in side) for side in (ahead, back))
    return "left" if behind and not in_front else "right"


def orientation_by_phrases(
    source: int, target: int, links: frozenset[Link], places, near, far, edge, step
) -> str:
    """Return how a phrase stands beside another phrase, whose last target word is the next one."""
    row = edge + step
    points = {*links, (-1, -1), (source, target)}
    mono, swap = ((s, row) in points for s in (near + step, far - step))
    begins = {a for a, _, _, d in places if d - 1 == row}
    ends = {b - 1 for _, b, _, d in places if d - 1 == row}
    ahead, back = (ends, begins) if step < 0 else (begins, ends)
    if (mono and not swap) or near + step in ahead:
        return "mono"
    if (swap and not mono) or far - step in back:
        return "swap"
    beyond = range(near - 2, -1, -1) if step < 0 else range(near + 2, source - 1)
    other_side = range(far + 2, source - 1) if step < 0 else range(far - 2, -1, -1)
    if ahead.isdisjoint(beyond) and not back.isdisjoint(other_side):
        return "left"
    return "right"


class Lexicon:
    """Counts of linked words, and probabilities with seven decimals."""

    def __init__(self, bitext: Sequence[Pair]) -> None:
        joint: Counter[tuple[bytes, bytes]] = Counter()
        for source, target, links in bitext:
            joint.update((source[s], target[t]) for s, t in links)
            with_s, with_t = ({link[side] for link in links} for side in (0, 1))
            joint.update((w, b"NULL") for s, w in enumerate(source) if s not in with_s)
            joint.update((b"NULL", w) for t, w in enumerate(target) if t not in with_t)
        self.joint = joint
        self.of_source: Counter[bytes] = Counter()
        self.of_target: Counter[bytes] = Counter()
        for (s, t), count in joint.items():
            self.of_source[s] += count
            self.of_target[t] += count

    def direct(self, source: bytes, target: bytes) -> float:
        return float(b"%.7f" % (self.joint[source, target] / self.of_source[source]))

    def inverse(self, source: bytes, target: bytes) -> float:
        return float(b"%.7f" % (self.joint[source, target] / self.of_target[target]))


GROUPS = {
    "mslr": (("mono",), ("swap",), ("left",), ("right",)),
    "msd": (("mono",), ("swap",), ("left", "right")),
    "monotonicity": (("mono",), ("swap", "left", "right")),
    "leftright": (("mono", "right"), ("swap", "left")),
}


def tables(
    bitext: Sequence[Pair], longest: int, kind: str = "wbe-msd-bidirectional-fe"
) -> tuple[list[bytes], list[bytes]]:
    """Return the lines of the phrase table and of the reordering table."""
    by_phrases, classes, direction, condition = kind.split("-")
    lexicon = Lexicon(bitext)
    found: dict[tuple[Words, Words], list] = defaultdict(list)
    for source, target, links in bitext:
        sizes = len(source), len(target)
        places = list(spans(*sizes, links, longest))
        for a, b, c, d in places:
            inside = frozenset((s - a, t - c) for s, t in links if a <= s < b and c <= t < d)
            sides = (a, b - 1, c, -1), (b - 1, a, d - 1, 1)
            if by_phrases == "phrase":
                before, behind = (
                    orientation_by_phrases(*sizes, links, places, *side) for side in sides
                )
            else:
                before, behind = (orientation(*sizes, links, *side) for side in sides)
            found[source[a:b], target[c:d]].append((inside, before, behind))
    of_source: Counter[Words] = Counter()
    of_target: Counter[Words] = Counter()
    for (source, target), occurrences in found.items():
        of_source[source] += len(occurrences)
        of_target[target] += len(occurrences)
    phrases = []
    orientations: dict[tuple[Words, ...], list] = defaultdict(list)
    for (source, target), occurrences in found.items():
        counts = Counter(inside for inside, _, _ in occurrences)
        most = max(counts.values())
        frequent = [links for links, count in counts.items() if count == most]
        shown = max(frequent, key=lambda links: by_word(links, 1, len(target)))
        turned = max(frequent, key=lambda links: by_word(links, 0, len(source)))
        inverse = math.prod(
            mean([lexicon.inverse(word, target[t]) for t in linked])
            if linked
            else lexicon.inverse(word, b"NULL")
            for word, linked in zip(source, by_word(turned, 0, len(source)), strict=True)
        )
        direct = math.prod(
            mean([lexicon.direct(source[s], word) for s in linked])
            if linked
            else lexicon.direct(b"NULL", word)
            for word, linked in zip(target, by_word(shown, 1, len(target)), strict=True)
        )
        count = len(occurrences)
        whole, of_both = np.float32(count), (of_target[target], of_source[source])
        shares = [whole / np.float32(total) for total in of_both]  # Moses' numbers have 32 bits
        scores = shares[0], np.float32(inverse), shares[1], np.float32(direct)
        words = b" ".join(source), b" ".join(target)
        fields = (
            *words,
            b" ".join(b"%.6g" % float(score) for score in scores),
            b" ".join(b"%d-%d" % link for link in sorted(shown, key=lambda link: link[::-1])),
            b"%d %d %d" % (of_target[target], of_source[source], count),
        )
        phrases.append(b" ||| ".join(fields) + b" ||| |||\n")
        orientations[(source, target) if condition == "fe" else (source,)] += occurrences
    reordering = []
    places = {"backward": (1,), "forward": (2,), "bidirectional": (1, 2)}[direction]
    for pair, occurrences in orientations.items():
        shares = []
        for place in places:
            of_orientation = Counter(occurrence[place] for occurrence in occurrences)
            counts = [sum(of_orientation[o] for o in group) + 0.5 for group in GROUPS[classes]]
            shares += [count / sum(counts) for count in counts]
        numbers = b" ".join(b"%.6g" % share for share in shares)
        reordering.append(b" ||| ".join((*map(b" ".join, pair), numbers)) + b"\n")
    return sorted(phrases), sorted(reordering)


def by_word(links: frozenset[Link], side: int, words: int) -> list[list[int]]:
    """Return for each word of a side the words that it is linked to, ascending."""
    return [sorted(link[1 - side] for link in links if link[side] == n) for n in range(words)]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def kneser_ney(sentences: Sequence[Words], order: int) -> dict[Words, float]:
    """Return the natural p of each n-gram's last word, interpolated, with three discounts."""
    raw: list[Counter[Words]] = [Counter() for _ in range(order)]
    for sentence in sentences:
        words = (BEGIN, *sentence, END)
        for n in range(order):
            raw[n].update(words[i : i + n + 1] for i in range(len(words) - n))
    counts = [Counter[Words]() for _ in range(order)]
    counts[-1] = raw[-1]
    for n in range(order - 1):
        counts[n].update(gram[1:] for gram in raw[n + 1])
        counts[n].update({gram: count for gram, count in raw[n].items() if gram[0] == BEGIN})
    counts[0].pop((BEGIN,), None)
    words = {gram[0] for gram in counts[0]} | {UNKNOWN}
    p: dict[Words, float] = {}
    for n, level in enumerate(counts):
        discounts = three_discounts(level)
        contexts: dict[Words, list[int]] = defaultdict(list)
        for gram, count in level.items():
            contexts[gram[:-1]].append(count)
        for gram, count in level.items():
            here = contexts[gram[:-1]]
            left = sum(discounts[min(c, 3)] for c in here) / sum(here)
            lower = p[gram[1:]] if n else 1 / len(words)
            p[gram] = (count - discounts[min(count, 3)]) / sum(here) + left * lower
        if n == 0 and (UNKNOWN,) not in p:
            here = contexts[()]
            p[UNKNOWN,] = sum(discounts[min(c, 3)] for c in here) / sum(here) / len(words)
    return p


def three_discounts(level: Counter[Words]) -> list[float]:
    """Return the discounts; where they cannot be estimated, what lmplz falls back to."""
    n = [sum(1 for count in level.values() if count == k) for k in range(5)]
    if all(n[1:4]):
        y = n[1] / (n[1] + 2 * n[2])
        found = [0.0, *(k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))]
        if all(0 <= d <= k for k, d in enumerate(found)):
            return found
    return [0.0, 0.5, 1.0, 1.5]
