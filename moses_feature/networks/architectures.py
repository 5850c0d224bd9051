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
        writer: generates targets, made of a model directory; see `generation.generator`.
        inference: for sentences: computes scores without torch, made of sizes, weights by name and
            whether they are normalised; see `SentenceNetwork`.
        prefixes: for sentences: what it writes, with a class method `empty`.
    """

    sizes: str
    network: str
    writer: str
    inference: str = ""
    prefixes: str = ""

    def load(self, part: str) -> Any:
        """Import and return a part, by the name of its attribute."""
        module, _, name = getattr(self, part).partition(":")
        return getattr(import_module(f"moses_feature.{module}"), name)


ENCODER_DECODER = "rnn-encoder-decoder"
RNNSEARCH, TRANSFORMER = "rnnsearch", "transformer"
OF_SENTENCES = "sentences.translate:writer"

ARCHITECTURES = {
    ENCODER_DECODER: Architecture(
        "phrases.settings:Sizes",
        "phrases.encoder_decoder:EncoderDecoder",
        "phrases.generation.phrase_writer:encoder_decoder_writer",
    ),
    RNNSEARCH: Architecture(
        "rnnsearch.settings:RnnSearchSizes",
        "rnnsearch.network:RnnSearch",
        OF_SENTENCES,
        "rnnsearch.inference:RnnSearchNetwork",
        "rnnsearch.prefixes:RnnSearchPrefixes",
    ),
    TRANSFORMER: Architecture(
        "transformer.settings:TransformerSizes",
        "transformer.network:Transformer",
        OF_SENTENCES,
        "transformer.inference:TransformerNetwork",
        "transformer.inference:TransformerPrefixes",
    ),
}


SENTENCE_ARCHITECTURES = [name for name, parts in ARCHITECTURES.items() if parts.inference]


def architecture_with(sizes: PairSizes) -> str:
    """Return the name of the architecture of some sizes."""
    return next(name for name, kind in ARCHITECTURES.items() if type(sizes) is kind.load("sizes"))
