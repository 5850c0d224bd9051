"""Makes the decoder that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from mert.decoders.cluster import ClusterDecoder
from mert.decoders.decoder import Decoder
from mert.decoders.moses import MosesDecoder
from mert.decoders.rescored import RescoredDecoder
from mert.settings import DecoderSettings, MosesSettings
from moses_feature.decoder.decoder import embedded_decoder, usual_jobs
from moses_feature.decoder.source_phrases import Sentence, surface
from moses_feature.decoder.system import SEGMENTATION, System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.rescoring.features import scorers_of
from moses_feature.rescoring.source import SourceText


def make_decoder(
    settings: DecoderSettings, ini: MosesIni, sentences: Sequence[Sentence]
) -> Decoder:
    """Return a decoder of a system for some sentences."""
    decoder = _on_any_machine(settings, ini, sentences)
    if not settings.rescoring:
        return decoder
    try:
        source = SourceText((b" ".join(surface(s)) for s in sentences), "the source text")
        scorers = scorers_of(settings.rescoring, source)
        return RescoredDecoder(
            decoder,
            scorers,
            settings.rescoring,
            len(sentences),
            settings.jobs or usual_jobs(len(sentences)),
        )
    except BaseException:
        decoder.close()
        raise


def _on_any_machine(
    settings: DecoderSettings, ini: MosesIni, sentences: Sequence[Sentence]
) -> Decoder:
    if settings.ray is None:
        return _on_this_machine(settings, ini, sentences)
    make = partial(_on_this_machine, replace(settings, jobs=1, cache=None), ini)
    cores = settings.moses.threads if settings.decoder == "moses" else 1
    features = _features(settings, ini)
    return ClusterDecoder(settings.ray, make, features, sentences, cores, settings.jobs)


def _on_this_machine(
    settings: DecoderSettings, ini: MosesIni, sentences: Sequence[Sentence], first: int = 0
) -> Decoder:
    if settings.decoder == "moses":
        return MosesDecoder(ini, sentences, _moses(settings), first)
    system = System.of_ini(ini)
    segmentation = settings.segmentation or system.segmentation
    system = replace(system, cache=settings.cache, segmentation=segmentation)
    return embedded_decoder(system, sentences, settings.limits, settings.jobs, first)


def _moses(settings: DecoderSettings) -> MosesSettings:
    if not settings.segmentation:
        return settings.moses
    asked = (f"-{SEGMENTATION}", "true")
    return replace(settings.moses, options=(*settings.moses.options, *asked))


def _features(settings: DecoderSettings, ini: MosesIni) -> FeatureSet:
    if settings.decoder == "embedded":
        return System.of_ini(ini).features
    with closing(MosesDecoder(ini, [], replace(settings.moses, filter=False))) as moses:
        return moses.features
