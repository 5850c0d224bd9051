"""The layer sizes of an encoder-decoder, and the formats of its products; free of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dtype = Literal["float32", "bfloat16"]
"""Of the large matrix products; weights are float32 either way."""

Unit = Literal["gru", "tanh", "leaky-25", "leaky-50", "lstm"]
"""The hidden units of both recurrences.

gru: the paper's gated ones; tanh: without gates; leaky-N: tanh, N% of which change slowly, by fixed
rates; lstm: long short-term memory.
"""
PRODUCTS = {"gru": 3, "tanh": 1, "leaky-25": 1, "leaky-50": 1, "lstm": 4}
"""How many products with a word and with the state before it a unit needs."""

LARGEST_SIZE = 1 << 15
SEARCH_ARCHITECTURE = "rnnsearch"
"""What the config of a model directory calls RNNsearch."""
FEED_FORWARD_ARCHITECTURE = "feed-forward"
"""What it calls the feed-forward network."""


def _check_sizes(sizes: object) -> None:
    for name, size in vars(sizes).items():
        if name == "unit":
            if size not in PRODUCTS:
                raise ValueError(f"unit: expected {' or '.join(PRODUCTS)}, found {size!r}")
        elif type(size) is not int or not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"{name}: expected 1 to {LARGEST_SIZE}, found {size!r}")


@dataclass(frozen=True)
class Sizes:
    """Layer sizes: hidden units, embedding, maxout units (S outputs from 2 S inputs), output rank.

    The rank is that of the product G_l G_r in place of one output matrix. The hidden units of both
    recurrences are of one kind.
    """

    hidden: int
    embedding: int
    maxout: int
    rank: int
    unit: Unit = "gru"

    def __post_init__(self) -> None:
        _check_sizes(self)

    @property
    def products(self) -> int:
        """How many products of size H a state needs."""
        return PRODUCTS[self.unit]

    @property
    def state(self) -> int:
        """Numbers of a state: H, and as many memory cells of an LSTM."""
        return 2 * self.hidden if self.unit == "lstm" else self.hidden


PRESETS = {
    "paper": Sizes(hidden=1000, embedding=100, maxout=500, rank=100),  # section 4.1.1
    "supplement": Sizes(hidden=1000, embedding=500, maxout=500, rank=500),
    "small": Sizes(hidden=256, embedding=100, maxout=250, rank=100),
    "characters": Sizes(hidden=256, embedding=32, maxout=128, rank=64),
}


@dataclass(frozen=True)
class FeedForwardSizes:
    """Layer sizes of the feed-forward network.

    Hidden units, embedding, units of the second layer (rank), source words that it reads; it has
    one softmax more than these, for END after as many target words.
    """

    hidden: int
    embedding: int
    rank: int
    positions: int = 7

    def __post_init__(self) -> None:
        _check_sizes(self)


FEED_FORWARD_PRESETS = {
    "paper": FeedForwardSizes(hidden=768, embedding=320, rank=512),  # Schwenk 2012
    "small": FeedForwardSizes(hidden=256, embedding=100, rank=100),
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
