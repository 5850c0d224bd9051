"""Settings of RNNsearch: layer sizes, training, data; free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from moses_feature.networks.architectures import PairSizes
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.phrases.settings import TrainingSettings
from moses_feature.training.settings import LEARNING_RATES


@dataclass(frozen=True)
class SearchSizes(PairSizes):
    """Layer sizes of RNNsearch (Bahdanau et al. 2015, appendix A.2.3).

    Hidden units of each of the three recurrences, embedding, units of the alignment model, maxout
    units (S outputs from 2 S inputs).
    """

    hidden: int
    embedding: int
    alignment: int
    maxout: int

    def shapes(self, source_words: int, target_words: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights by their names in `RnnSearch`."""
        hidden, embedding = self.hidden, self.embedding
        shapes: dict[str, tuple[int, ...]] = {
            "source_embedding.weight": (source_words, embedding),
            "target_embedding.weight": (target_words, embedding),
            "decoder_start.weight": (hidden, hidden),
            "decoder_start.bias": (hidden,),
            "alignment_state.weight": (self.alignment, hidden),
            "alignment_state.bias": (self.alignment,),
            "alignment_annotation.weight": (self.alignment, 2 * hidden),
            "alignment_energy.weight": (1, self.alignment),
            "decoder_context.weight": (3 * hidden, 2 * hidden),
            "maxout_state.weight": (2 * self.maxout, hidden),
            "maxout_state.bias": (2 * self.maxout,),
            "maxout_input.weight": (2 * self.maxout, embedding),
            "maxout_context.weight": (2 * self.maxout, 2 * hidden),
            "output_words.weight": (target_words, self.maxout),
            "output_words.bias": (target_words,),
        }
        for part in ("forward", "backward", "decoder"):
            shapes[f"{part}_input.weight"] = (3 * hidden, embedding)
            shapes[f"{part}_input.bias"] = (3 * hidden,)
            shapes[f"{part}_gates.weight"] = (2 * hidden, hidden)
            shapes[f"{part}_candidate.weight"] = (hidden, hidden)
        return shapes


SEARCH_PRESETS = {
    "paper": SearchSizes(hidden=1000, embedding=620, alignment=1000, maxout=500),
    "small": SearchSizes(hidden=256, embedding=128, alignment=128, maxout=128),
}


@dataclass(frozen=True, kw_only=True)
class SearchSettings(TrainingSettings):
    """How to train RNNsearch (Bahdanau et al. 2015, appendix B.2)."""

    rates: ClassVar[Mapping[str, float]] = LEARNING_RATES

    sizes: PairSizes = SEARCH_PRESETS["small"]
    batch_size: int = 80
    sample: int | None = None
    pool: int = 20
    patience: int = 3
    held_out_limit: int = 2_000


@dataclass(frozen=True)
class SearchData:
    """The data to train RNNsearch on.

    Attributes:
        source, target: tokenised files with a sentence on each line; line n of one translates
            line n of the other.
        shortlist: the number of known words of each side; all others are UNK.
        min_count: the least count of a word in a shortlist, so that UNK occurs, too.
        longest: pairs with a longer sentence, in words, are left out.
        direction: the direction in which the pairs are read and written.
        word_alignment: a file with the links of a pair on each line, source and target place, as
            Moses' training leaves it (`aligned.grow-diag-final-and`), for guided alignment.
    """

    source: str
    target: str
    shortlist: int = 30_000
    min_count: int = 2
    longest: int = 50
    direction: Direction = FORWARD
    word_alignment: str | None = None
