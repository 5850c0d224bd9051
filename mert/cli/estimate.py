"""`--estimate` of tuning runs: some sentences of the text are translated, and timed."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mert.settings import DecoderSettings
from moses_feature.cli.common.progress import duration
from moses_feature.moses.ini import MosesIni

if TYPE_CHECKING:
    from mert.tuning.corpus import Corpus

SENTENCES = 60


def seconds_of_decoding(
    ini: MosesIni, corpus: Corpus, settings: DecoderSettings, list_size: int
) -> tuple[float, float]:
    """Return the seconds that reading the models takes, and decoding a text once."""
    from mert.decoders.choice import make_decoder

    step = max(1, len(corpus) // SENTENCES)
    some = corpus.sentences[::step]
    begun = time.monotonic()
    decoder = make_decoder(settings, ini, some)
    try:
        ready = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="estimate-") as folder:
            decoder.write_nbest(decoder.features, list_size, Path(folder) / "lists.gz")
        ended = time.monotonic()
    finally:
        decoder.close()
    return ready - begun, (ended - ready) * len(corpus) / len(some)


def told(reading: float, decoding: float, iterations: int) -> str:
    """Return the time of a tuning run in words."""
    return (
        f"reading {duration(reading)}, decoding {duration(decoding)} an iteration; "
        f"{iterations} iterations at most: {duration(reading + iterations * decoding)}, and some "
        "seconds more an iteration for the optimiser"
    )
