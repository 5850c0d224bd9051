"""Settings of building a system; each default is written only here. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from moses_feature.decoder.reordering import ReorderingType
from moses_feature.runtime.errors import UsageError

Aligner = Literal["eflomal", "fast-align", "several"]
Case = Literal["keep", "lower", "truecase"]

MOST_RATIO = 9
"""Words of a raw sentence for each word of its translation, at most (clean-corpus-n.perl)."""
SMALL = 20_000
"""Sentence pairs below which a text is small: words are aligned in several ways, unknown ones spelt
like known ones. With 29,000 clean pairs, both brought next to nothing."""
LONGEST_SENTENCE = 1000
LONGEST_PHRASE = 20
SMALLEST_ORDER, LARGEST_ORDER = 2, 6
"""What KenLM reads, as it is usually built."""


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """How to build a system.

    Attributes:
        longest: words of a sentence, at most; pairs with a longer one are left out.
        aligner: the alignment model, or `several` (see `alignment.SEVERAL`); None for `several` if
            the text is small, and eflomal if it is not.
        phrase_length: words of a phrase, at most.
        reordering: the type of the lexicalised reordering model, as train-model.perl names it;
            `none` for no model.
        order: words of an n-gram of the language model, at most.
        osm: whether to estimate an operation sequence model.
        distortion_limit: of the search; 0 for translations in the order of the source.
        seed: of the alignment.
        case: what is done to the letters of raw text.
    """

    longest: int = 100
    aligner: Aligner | None = None
    phrase_length: int = 7
    reordering: str = "msd-bidirectional-fe"
    order: int = 5
    osm: bool = False
    distortion_limit: int = 6
    seed: int = 1
    case: Case = "lower"

    def __post_init__(self) -> None:
        kinds = {"aligner": get_args(Aligner), "case": get_args(Case)}
        for name, kind in kinds.items():
            found = getattr(self, name)
            if found not in kind and (name, found) != ("aligner", None):
                raise UsageError(f"{name}: expected one of {', '.join(kind)}, found {found!r}")
        limits = {"longest": LONGEST_SENTENCE, "phrase_length": LONGEST_PHRASE}
        for name, most in limits.items():
            if not 1 <= (given := getattr(self, name)) <= most:
                raise UsageError(f"{name}: expected 1 to {most}, found {given}")
        if not SMALLEST_ORDER <= self.order <= LARGEST_ORDER:
            expected = f"{SMALLEST_ORDER} to {LARGEST_ORDER}"
            raise UsageError(f"order: expected {expected}, found {self.order}")
        for name in ("distortion_limit", "seed"):
            if (given := getattr(self, name)) < 0:
                raise UsageError(f"{name}: expected 0 or more, found {given}")
        _ = self.reordering_type

    @property
    def reordering_type(self) -> ReorderingType | None:
        """The type of the reordering model; None for no model."""
        return None if self.reordering == "none" else ReorderingType.parse(self.reordering)
