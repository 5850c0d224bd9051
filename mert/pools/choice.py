"""Which evidence an optimiser wants."""

from __future__ import annotations

from mert.corpus import Corpus
from mert.decoders.decoder import Decoder, LatticeDecoder
from mert.pools.evidence import Evidence
from mert.pools.lattice_union import LatticeUnion
from mert.pools.nbest_lists import NbestLists
from mert.tuning_state import LATTICE_MERT, TuningSettings
from moses_feature.errors import UsageError

NO_LATTICES = f"{LATTICE_MERT} needs lattices: expected --decoder embedded"


def evidence_of(decoder: Decoder, corpus: Corpus, settings: TuningSettings) -> Evidence:
    """Return what collects the evidence of a tuning run; there is none at first.

    Raises:
        UsageError: the optimiser wants lattices, and the decoder has none.
    """
    if settings.optimizer != LATTICE_MERT:
        return NbestLists(decoder, corpus, settings)
    if not isinstance(decoder, LatticeDecoder):
        raise UsageError(NO_LATTICES)
    return LatticeUnion(decoder, corpus, settings)
