"""An n-gram language model in ARPA format: interpolated Kneser-Ney (Chen and Goodman 1998)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
NEVER = -99.0  # log10 probability of the sentence begin, which is never predicted

NGram = tuple[str, ...]


def arpa(sentences: Iterable[Sequence[str]], order: int) -> str:
    """Return the text of an ARPA file: log10 probabilities and back-off weights."""
    counts = _adjusted_counts(sentences, order)
    discounts = [_discount(level) for level in counts]
    followers = [_followers(level) for level in counts]
    words = {ngram[0] for ngram in counts[0]} | {UNKNOWN}
    uniform = 1 / len(words)  # each word that can be predicted, END and UNKNOWN included
    probabilities: list[dict[NGram, float]] = []
    for n, level in enumerate(counts):
        current: dict[NGram, float] = {}
        for ngram, count in level.items():
            total, kinds = followers[n][ngram[:-1]]
            lower = uniform if n == 0 else probabilities[n - 1][ngram[1:]]
            current[ngram] = (count - discounts[n] + discounts[n] * kinds * lower) / total
        if n == 0:
            total, kinds = followers[0][()]
            current[UNKNOWN,] = discounts[0] * kinds * uniform / total
        probabilities.append(current)
    return _format(probabilities, followers, discounts)


def _adjusted_counts(sentences: Iterable[Sequence[str]], order: int) -> list[Counter[NGram]]:
    """Count n-grams; below the highest order, count the distinct words before them instead.

    N-grams that begin a sentence have nothing before them and keep their counts.
    """
    raw: list[Counter[NGram]] = [Counter() for _ in range(order)]
    for sentence in sentences:
        words = (BEGIN, *sentence, END)
        for n in range(order):
            raw[n].update(words[i : i + n + 1] for i in range(len(words) - n))
    adjusted: list[Counter[NGram]] = [Counter() for _ in range(order)]
    adjusted[-1] = raw[-1]
    for n in range(order - 1):
        adjusted[n].update(ngram[1:] for ngram in raw[n + 1])
        begins = {ngram: count for ngram, count in raw[n].items() if ngram[0] == BEGIN}
        adjusted[n].update(begins)
    del adjusted[0][BEGIN,]
    return adjusted


def _discount(level: Counter[NGram]) -> float:
    once = sum(1 for count in level.values() if count == 1)
    twice = sum(1 for count in level.values() if count == 2)
    return once / (once + 2 * twice) if once else 0.5


def _followers(level: Counter[NGram]) -> dict[NGram, tuple[int, int]]:
    """Return for each context the sum of the counts and the number of the words after it."""
    sums: dict[NGram, int] = defaultdict(int)
    kinds: dict[NGram, int] = defaultdict(int)
    for ngram, count in level.items():
        sums[ngram[:-1]] += count
        kinds[ngram[:-1]] += 1
    return {context: (sums[context], kinds[context]) for context in sums}


def _format(
    probabilities: Sequence[dict[NGram, float]],
    followers: Sequence[dict[NGram, tuple[int, int]]],
    discounts: Sequence[float],
) -> str:
    def entry(n: int, ngram: NGram, log_probability: float) -> str:
        text = f"{log_probability:.6f}\t{' '.join(ngram)}"
        if n + 1 == len(probabilities):
            return text
        total, kinds = followers[n + 1].get(ngram, (1, 0))
        back_off = math.log10(discounts[n + 1] * kinds / total) if kinds else 0.0
        return f"{text}\t{back_off:.6f}"

    lines = ["\\data\\"]
    sizes = [len(level) for level in probabilities]
    sizes[0] += 1  # BEGIN
    lines += [f"ngram {n}={size}" for n, size in enumerate(sizes, 1)]
    for n, level in enumerate(probabilities):
        lines += ["", f"\\{n + 1}-grams:"]
        if n == 0:
            lines.append(entry(0, (BEGIN,), NEVER))
        lines += [entry(n, ngram, math.log10(p)) for ngram, p in sorted(level.items())]
    return "\n".join([*lines, "", "\\end\\", ""])
