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
    """The parts of a network, MODULE:NAME each, imported on demand.

    Attributes:
        sizes: its subclass of `PairSizes`.
        network: its `PairNetwork`, made of sizes, source words, target words and dropout.
        writer: generates targets, made of a model directory; see `generation.generator`.
        inference: for sentences: computes scores without torch, made of sizes, weights by name and
            whether they are normalised; see `SentenceNetwork`.
        prefixes: for sentences: what it writes, with a class method `empty`.
        recipe: for sentences: its `Recipe` of training.
        feature: for sentences: the name of its feature in n-best lists.
    """

    sizes: str
    network: str
    writer: str
    inference: str = ""
    prefixes: str = ""
    recipe: str = ""
    feature: str = ""

    def load(self, part: str) -> Any:
        """Import and return a part, by the name of its attribute."""
        module, _, name = getattr(self, part).partition(":")
        return getattr(import_module(module), name)


ENCODER_DECODER = "rnn-encoder-decoder"
RNNSEARCH, TRANSFORMER = "rnnsearch", "transformer"
OF_SENTENCES = "moses_feature.sentences.translate:writer"

ARCHITECTURES = {
    ENCODER_DECODER: Architecture(
        "moses_feature.phrases.settings:Sizes",
        "moses_feature.phrases.encoder_decoder:EncoderDecoder",
        "moses_feature.phrases.generation.phrase_writer:encoder_decoder_writer",
    ),
    RNNSEARCH: Architecture(
        "moses_feature.rnnsearch.settings:RnnSearchSizes",
        "moses_feature.rnnsearch.network:RnnSearch",
        OF_SENTENCES,
        "moses_feature.rnnsearch.inference:RnnSearchNetwork",
        "moses_feature.rnnsearch.inference:RnnSearchPrefixes",
        "moses_feature.rnnsearch.settings:RECIPE",
        "RNNsearch0",
    ),
    TRANSFORMER: Architecture(
        "moses_feature.transformer.settings:TransformerSizes",
        "moses_feature.transformer.network:Transformer",
        OF_SENTENCES,
        "moses_feature.transformer.inference:TransformerNetwork",
        "moses_feature.transformer.inference:TransformerPrefixes",
        "moses_feature.transformer.settings:RECIPE",
        "Transformer0",
    ),
}


SENTENCE_ARCHITECTURES = [name for name, parts in ARCHITECTURES.items() if parts.inference]


def architecture_with(sizes: PairSizes) -> str:
    """Return the name of the architecture of some sizes."""
    return next(name for name, kind in ARCHITECTURES.items() if type(sizes) is kind.load("sizes"))
