"""Which decoder translates, and how."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

from mert.decoders.cluster import ClusterDecoder
from mert.decoders.decoder import Decoder
from mert.decoders.moses import MosesDecoder, MosesSettings
from mert.decoders.rescored import RescoredDecoder
from moses_feature.decoder.decoder import SearchLimits, embedded_decoder
from moses_feature.decoder.source_phrases import Sentence, surface
from moses_feature.decoder.system import SEGMENTATION, System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.networks.files import file_identity
from moses_feature.rescoring.features import scorers_of
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import Json

DECODERS = ("embedded", "moses")


@dataclass(frozen=True)
class DecoderSettings:
    """A decoder and its settings; every default is written in the settings' own classes.

    Attributes:
        decoder: `embedded` or `moses`.
        limits: of the embedded search.
        jobs: processes of the embedded decoder, or workers on a cluster; None for one, or for as
            many as the cluster has cores for.
        ray: the address of a Ray cluster that decodes; None for this machine alone.
        moses: how to run Moses.
        rescoring: features that the decoder has not, and the models that they are of: NAME and
            path.
        segmentation: whether n-best lists have the phrases.
        cache: a directory in which the embedded decoder keeps what it read of the tables.
    """

    decoder: str = "embedded"
    limits: SearchLimits = field(default_factory=SearchLimits)
    jobs: int | None = None
    ray: str | None = None
    moses: MosesSettings = field(default_factory=MosesSettings)
    rescoring: tuple[tuple[str, str], ...] = ()
    cache: str | None = None
    segmentation: bool = False

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
            source = SourceText((b" ".join(surface(s)) for s in sentences), "the source text")
            scorers = scorers_of(self.rescoring, source)
            return RescoredDecoder(decoder, scorers, len(sentences), self.jobs or 1)
        except BaseException:
            decoder.close()
            raise

    def _decoder(self, ini: MosesIni, sentences: Sequence[Sentence]) -> Decoder:
        if self.ray is None:
            return self._on_this_machine(ini, sentences)
        make = partial(replace(self, jobs=None, cache=None)._on_this_machine, ini)
        cores = self.moses.threads if self.decoder == "moses" else 1
        return ClusterDecoder(self.ray, make, self._features(ini), sentences, cores, self.jobs)

    def _on_this_machine(
        self, ini: MosesIni, sentences: Sequence[Sentence], first: int = 0
    ) -> Decoder:
        if self.decoder == "moses":
            return MosesDecoder(ini, sentences, self._moses(), first)
        system = System.of_ini(ini)
        segmentation = self.segmentation or system.segmentation
        system = replace(system, cache=self.cache, segmentation=segmentation)
        return embedded_decoder(system, sentences, self.limits, self.jobs or 1, first)

    def _moses(self) -> MosesSettings:
        if not self.segmentation:
            return self.moses
        asked = (f"-{SEGMENTATION}", "true")
        return replace(self.moses, options=(*self.moses.options, *asked))

    def _features(self, ini: MosesIni) -> FeatureSet:
        if self.decoder == "embedded":
            return System.of_ini(ini).features
        with closing(MosesDecoder(ini, [], replace(self.moses, filter=False))) as moses:
            return moses.features

    def identity(self) -> Json:
        """Return what decides the translations, as JSON."""
        rescoring = [[name, *file_identity(path)] for name, path in self.rescoring]
        added = {"rescoring": rescoring} if rescoring else {}
        if self.decoder == "moses":
            return {"decoder": "moses", "options": list(self.moses.options), **added}
        limits = {"pops": self.limits.pops, "stack": self.limits.stack}
        return {"decoder": "embedded", **limits, **added}
