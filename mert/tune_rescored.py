"""Tune a system whose n-best lists are rescored: first the search by itself, then all weights.

Weights that order lists well together with a new feature may be bad ones for a search that has not
got it. So the lists are made with weights that were tuned without it, and stay so.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from mert.corpus import Corpus
from mert.decoders.decoder import Decoder
from mert.decoders.rescored import RescoredDecoder
from mert.tune import TUNED_INI, tune
from mert.tuning_state import SEARCH, TuningSettings, TuningState
from moses_feature.moses.ini import MosesIni

logger = logging.getLogger(__name__)


def tune_system(
    ini: MosesIni,
    corpus: Corpus,
    decoder: Decoder | RescoredDecoder,
    directory: Path,
    settings: TuningSettings,
    *,
    first_lists: Path | None = None,
    **options: Any,
) -> TuningState:
    """Tune a system as `tune` does; if its lists are rescored, the search first, in a folder.

    Arguments, result and errors are those of `tune`.
    """
    if not isinstance(decoder, RescoredDecoder):
        return tune(
            ini,
            corpus,
            decoder,
            directory,
            settings,
            first_lists=first_lists,
            **options,
        )
    logger.info("tuning the search without what rescores its lists")
    tune(
        ini,
        corpus,
        decoder.plain,
        directory / SEARCH,
        settings,
        first_lists=None if first_lists is None else first_lists.parent / SEARCH / first_lists.name,
        **options,
    )
    tuned = MosesIni.read(directory / SEARCH / TUNED_INI)
    decoder.search_with(tuned)
    logger.info("tuning the order of its lists")
    return tune(tuned, corpus, decoder, directory, settings, **options)
