"""`--estimate` of tuning runs: some sentences of the text are translated, and timed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mert.settings import DecoderSettings
from moses_feature.cli.common.progress import duration
from moses_feature.moses.ini import MosesIni

if TYPE_CHECKING:
    from mert.tuning.corpus import Corpus
    from moses_feature.decoder.source_phrases import Sentence

SENTENCES = 60


def seconds_of_decoding(
    ini: MosesIni, corpus: Corpus, settings: DecoderSettings, list_size: int
) -> tuple[float, float]:
    """Return the seconds that reading the models takes, and decoding a text once."""
    step = max(1, len(corpus) // SENTENCES)
    some = corpus.sentences[::step]
    if settings.decoder == "embedded":
        _decode(ini, some[:1], settings, list_size)  # compiles, after an installation
    reading, decoding = _decode(ini, some, settings, list_size)
    return reading, decoding * len(corpus) / len(some)


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


def told(reading: float, decoding: float, iterations: int) -> str:
    """Return the time of a tuning run in words."""
    return (
        f"reading {duration(reading)}, decoding {duration(decoding)} an iteration; "
        f"{iterations} iterations at most: {duration(reading + iterations * decoding)}, and some "
        "seconds more an iteration for the optimiser"
    )
