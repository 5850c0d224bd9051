"""The architectures of networks for pairs of phrases or sentences; free of torch.

Loading, training, scoring and generating use this registry and import no network. A new
architecture is a package of its own and an entry here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Dtype = Literal["float32", "bfloat16"]
"""The type of the large matrix products; weights are always float32."""

LARGEST_SIZE = 1 << 15


@dataclass(frozen=True)
class PairSizes:
    """Layer sizes of a network for pairs; each architecture has its own subclass."""

    def __post_init__(self) -> None:
        for name, size in vars(self).items():
            if name != "unit" and (type(size) is not int or not 1 <= size <= LARGEST_SIZE):
                raise ValueError(f"{name}: expected 1 to {LARGEST_SIZE}, found {size!r}")


@dataclass(frozen=True)
class Architecture:
    """The parts of a network, MODULE:NAME each in this package, imported on demand.

    Attributes:
        sizes: its subclass of `PairSizes`.
        network: its `PairNetwork`, made of sizes, source words, target words and dropout.
        scorer: scores pairs on the CPU, made of a network and a `Computation`.
        writer: generates targets, made of a model directory; see `generation.generator`.
        inference: for sentences: computes scores without torch, made of sizes, weights by name and
            whether they are normalised; see `SentenceNetwork`.
        prefixes: for sentences: what it writes, with a class method `empty`.
        states: for sentences: what a search asks, made of what `inference` makes; see
            `rnnsearch.tree_states.TreeStates`.
    """

    sizes: str
    network: str
    scorer: str
    writer: str
    inference: str = ""
    prefixes: str = ""
    states: str = ""

    def load(self, part: str) -> Any:
        """Import and return a part, by the name of its attribute."""
        module, _, name = getattr(self, part).partition(":")
        return getattr(import_module(f"moses_feature.{module}"), name)


ENCODER_DECODER, FEED_FORWARD = "rnn-encoder-decoder", "feed-forward"
RNNSEARCH, TRANSFORMER = "rnnsearch", "transformer"
OF_SENTENCES = "sentences.scorer:PairScorer", "sentences.translate:writer"

ARCHITECTURES = {
    ENCODER_DECODER: Architecture(
        "phrases.settings:Sizes",
        "phrases.encoder_decoder:EncoderDecoder",
        "phrases.encoder_decoder_scorer:EncoderDecoderScorer",
        "phrases.generation.phrase_writers:encoder_decoder_writer",
    ),
    FEED_FORWARD: Architecture(
        "phrases.settings:FeedForwardSizes",
        "phrases.feed_forward:FeedForwardNetwork",
        "phrases.feed_forward:FeedForwardScorer",
        "phrases.generation.phrase_writers:feed_forward_writer",
    ),
    RNNSEARCH: Architecture(
        "rnnsearch.settings:SearchSizes",
        "rnnsearch.network:RnnSearch",
        *OF_SENTENCES,
        "rnnsearch.inference:SearchNetwork",
        "rnnsearch.prefixes:SearchPrefixes",
        "rnnsearch.tree_states:TreeStates",
    ),
    TRANSFORMER: Architecture(
        "transformer.settings:TransformerSizes",
        "transformer.network:Transformer",
        *OF_SENTENCES,
        "transformer.inference:TransformerNetwork",
        "transformer.inference:TransformerPrefixes",
        "transformer.tree_states:TransformerTreeStates",
    ),
}


def architecture_with(sizes: PairSizes) -> str:
    """Return the name of the architecture of some sizes."""
    return next(name for name, kind in ARCHITECTURES.items() if type(sizes) is kind.load("sizes"))
