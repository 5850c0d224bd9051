"""The layer sizes of an encoder-decoder, and the formats of its products; free of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dtype = Literal["float32", "bfloat16"]
"""Of the large matrix products; weights are float32 either way."""

LARGEST_SIZE = 1 << 15
SEARCH_ARCHITECTURE = "rnnsearch"
"""What the config of a model directory calls RNNsearch."""


def _check_sizes(sizes: object) -> None:
    for name, size in vars(sizes).items():
        if type(size) is not int or not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"{name}: expected 1 to {LARGEST_SIZE}, found {size!r}")


@dataclass(frozen=True)
class Sizes:
    """Layer sizes: hidden units, embedding, maxout units (S outputs from 2 S inputs), output rank.

    The rank is that of the product G_l G_r in place of one output matrix.
    """

    hidden: int
    embedding: int
    maxout: int
    rank: int

    def __post_init__(self) -> None:
        _check_sizes(self)


PRESETS = {
    "paper": Sizes(hidden=1000, embedding=100, maxout=500, rank=100),  # section 4.1.1
    "supplement": Sizes(hidden=1000, embedding=500, maxout=500, rank=500),
    "small": Sizes(hidden=256, embedding=100, maxout=250, rank=100),
}


@dataclass(frozen=True)
class SearchSizes:
    """Layer sizes of RNNsearch (Bahdanau et al. 2015, appendix A.2.3).

    Hidden units of each of the three recurrences, embedding, units of the alignment model, maxout
    units (S outputs from 2 S inputs).
    """

    hidden: int
    embedding: int
    alignment: int
    maxout: int

    def __post_init__(self) -> None:
        _check_sizes(self)

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
