"""Which decoder translates, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mert.decoders.decoder import Decoder
from mert.decoders.embedded import SearchLimits
from mert.decoders.moses import MosesDecoder, MosesSettings
from mert.decoders.system import System
from mert.decoders.workers import embedded_decoder
from mert.rescoring import RescoredDecoder
from mert.source_phrases import Sentence
from moses_feature.errors import UsageError
from moses_feature.model_files import file_identity
from moses_feature.moses_ini import MosesIni
from moses_feature.nplm import load_neural_lm
from moses_feature.rescoring import CslmScorer, check_names

DECODERS = ("embedded", "moses")


@dataclass(frozen=True)
class DecoderSettings:
    """A decoder and its settings; every default is written in the settings' own classes.

    Attributes:
        decoder: `embedded` or `moses`.
        limits: of the embedded search.
        jobs: processes of the embedded decoder.
        moses: how to run Moses.
        rescoring: features that the decoder has not, and the neural language models that they
            are of: NAME and path.
    """

    decoder: str = "embedded"
    limits: SearchLimits = field(default_factory=SearchLimits)
    jobs: int = 1
    moses: MosesSettings = field(default_factory=MosesSettings)
    rescoring: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.decoder not in DECODERS:
            valid = ", ".join(DECODERS)
            raise UsageError(f"unknown decoder {self.decoder!r}: expected one of {valid}")

    def make(self, ini: MosesIni, sentences: Sequence[Sentence]) -> Decoder:
        """Return a decoder of a system for some sentences."""
        decoder = self._decoder(ini, sentences)
        if not self.rescoring:
            return decoder
        try:
            scorers = [CslmScorer(name, load_neural_lm(path)) for name, path in self.rescoring]
            check_names(scorers)
            return RescoredDecoder(decoder, scorers, len(sentences))
        except BaseException:
            decoder.close()
            raise

    def _decoder(self, ini: MosesIni, sentences: Sequence[Sentence]) -> Decoder:
        if self.decoder == "moses":
            return MosesDecoder(ini, sentences, self.moses)
        return embedded_decoder(System.of_ini(ini), sentences, self.limits, self.jobs)

    def identity(self) -> dict[str, Any]:
        """Return what decides the translations, as JSON."""
        rescoring = {name: file_identity(path) for name, path in self.rescoring}
        added = {"rescoring": rescoring} if rescoring else {}
        if self.decoder == "moses":
            return {"decoder": "moses", "options": list(self.moses.options), **added}
        limits = {"pops": self.limits.pops, "stack": self.limits.stack}
        return {"decoder": "embedded", **limits, **added}
