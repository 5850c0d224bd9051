"""The shortlists of the two sides of a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moses_feature.models.vocabulary import Vocabulary

Counts = Mapping[bytes, float]


@dataclass(frozen=True)
class Shortlists:
    """The words of both sides that a network knows.

    Attributes:
        source, target: the words of each side.
        coverage: the share of the running words that they are, by side.
    """

    source: Vocabulary
    target: Vocabulary
    coverage: dict[str, float]

    @classmethod
    def of_counts(cls, source: Counts, target: Counts, size: int, least: int) -> Shortlists:
        """Choose `size` words of each side: the most frequent that occur `least` times or more."""
        of_source, of_target = (
            Vocabulary.shortlist_of(counts, size, least) for counts in (source, target)
        )
        coverage = {"source": of_source.coverage(source), "target": of_target.coverage(target)}
        return cls(of_source, of_target, coverage)

    def __str__(self) -> str:
        source, target = (len(words.shortlist) for words in (self.source, self.target))
        of_source, of_target = (f"{100 * share:.2f}%" for share in self.coverage.values())
        return (
            f"the shortlists have {source} and {target} words, {of_source} and {of_target} of "
            "the running words"
        )
