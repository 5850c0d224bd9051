"""`--estimate` of tuning runs: some sentences of the text are translated, and timed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mert.settings import DecoderSettings
from moses_feature.cli.common.progress import duration
from moses_feature.moses.ini import MosesIni

if TYPE_CHECKING:
    from mert.tuning.corpus import Corpus
    from moses_feature.decoder.source_phrases import Sentence

SENTENCES = 60


@dataclass(frozen=True)
class Seconds:
    """What tuning on a text takes.

    Attributes:
        reading: the models, once.
        decoding: the text, once.
        rescored: decoding it and scoring the lists, once; 0 if nothing rescores them.
    """

    reading: float
    decoding: float
    rescored: float

    def of_run(self, iterations: int) -> float:
        """Return the seconds of a run: lists are rescored when their search has been tuned."""
        return self.reading + iterations * self.decoding + self.rescored

    def told(self, iterations: int) -> str:
        """Return the time of a run in words."""
        lists = f"lists of the tuned search {duration(self.rescored)}; " if self.rescored else ""
        return (
            f"reading {duration(self.reading)}, decoding {duration(self.decoding)} an iteration; "
            f"{lists}{iterations} iterations at most: {duration(self.of_run(iterations))}, and "
            "some seconds more an iteration for the optimiser"
        )


def seconds_of_tuning(
    ini: MosesIni, corpus: Corpus, settings: DecoderSettings, list_size: int
) -> Seconds:
    """Decode some sentences, and return what the whole text takes."""
    step = max(1, len(corpus) // SENTENCES)
    some = corpus.sentences[::step]
    if settings.decoder == "embedded":
        _decode(ini, some[:1], settings, list_size)  # compiles, after an installation
    searched = replace(settings, rescoring=())
    reading, decoding = _decode(ini, some, searched, list_size)
    rescored = 0.0
    if settings.rescoring:
        reading, rescored = _decode(ini, some, settings, list_size)
    parts = len(corpus) / len(some)
    return Seconds(reading, decoding * parts, rescored * parts)


def _decode(
    ini: MosesIni, sentences: Sequence[Sentence], settings: DecoderSettings, list_size: int
) -> tuple[float, float]:
    """Return the seconds of reading the models, and of decoding."""
    from mert.decoders.choice import make_decoder

    begun = time.monotonic()
    decoder = make_decoder(settings, ini, sentences)
    try:
        ready = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="estimate-") as folder:
            decoder.write_nbest(decoder.features, list_size, Path(folder) / "lists.gz")
        return ready - begun, time.monotonic() - ready
    finally:
        decoder.close()
