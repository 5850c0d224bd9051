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
from mert.source_phrases import Sentence
from moses_feature.errors import UsageError
from moses_feature.moses_ini import MosesIni

DECODERS = ("embedded", "moses")


@dataclass(frozen=True)
class DecoderSettings:
    """A decoder and its settings; every default is written in the settings' own classes.

    Attributes:
        decoder: `embedded` or `moses`.
        limits: of the embedded search.
        jobs: processes of the embedded decoder.
        moses: how to run Moses.
    """

    decoder: str = "embedded"
    limits: SearchLimits = field(default_factory=SearchLimits)
    jobs: int = 1
    moses: MosesSettings = field(default_factory=MosesSettings)

    def __post_init__(self) -> None:
        if self.decoder not in DECODERS:
            valid = ", ".join(DECODERS)
            raise UsageError(f"unknown decoder {self.decoder!r}: expected one of {valid}")

    def make(self, ini: MosesIni, sentences: Sequence[Sentence]) -> Decoder:
        """Return a decoder of a system for some sentences."""
        if self.decoder == "moses":
            return MosesDecoder(ini, sentences, self.moses)
        return embedded_decoder(System.of_ini(ini), sentences, self.limits, self.jobs)

    def identity(self) -> dict[str, Any]:
        """Return what decides the translations, as JSON."""
        if self.decoder == "moses":
            return {"decoder": "moses", "options": list(self.moses.options)}
        return {"decoder": "embedded", "pops": self.limits.pops, "stack": self.limits.stack}
