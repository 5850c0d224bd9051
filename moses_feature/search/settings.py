"""How to train RNNsearch, and on what; free of torch."""

from __future__ import annotations

from dataclasses import dataclass

from moses_feature.models.reading import FORWARD, Reading
from moses_feature.models.sizes import SEARCH_PRESETS, SearchSizes, Sizes
from moses_feature.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class SearchSettings(TrainingSettings):
    """How to train RNNsearch (Bahdanau et al. 2015, appendix B.2)."""

    sizes: Sizes | SearchSizes = SEARCH_PRESETS["small"]
    batch_size: int = 80
    pool: int = 20
    patience: int = 3
    held_out_limit: int = 2_000


@dataclass(frozen=True)
class SearchData:
    """What to train RNNsearch on.

    Attributes:
        source, target: files with a sentence on each line, tokenised; line n of one translates
            line n of the other.
        shortlist: words of each side that the network knows; all others are UNK.
        min_count: how often a word of a shortlist occurs at least, so that UNK occurs, too.
        longest: pairs with a longer sentence, in words, are left out.
        reading: the direction in which the pairs are read and written.
        word_alignment: a file with the links of a pair on each line, source and target place, as
            Moses' training leaves it (`aligned.grow-diag-final-and`), for guided alignment.
    """

    source: str
    target: str
    shortlist: int = 30_000
    min_count: int = 2
    longest: int = 50
    reading: Reading = FORWARD
    word_alignment: str | None = None
