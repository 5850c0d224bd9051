"""Layer sizes and recipe of RNNsearch; free of torch."""

from __future__ import annotations

from dataclasses import dataclass

from moses_feature.networks.architectures import PairSizes
from moses_feature.sentences.settings import Recipe


@dataclass(frozen=True)
class RnnSearchSizes(PairSizes):
    """Layer sizes of RNNsearch (Bahdanau et al. 2015, appendix A.2.3).

    Hidden units of each of the three recurrences, embedding, units of the alignment model, maxout
    units (S outputs from 2 S inputs).
    """

    hidden: int
    embedding: int
    alignment: int
    maxout: int


RNNSEARCH_PRESETS = {
    "paper": RnnSearchSizes(hidden=1000, embedding=620, alignment=1000, maxout=500),
    "small": RnnSearchSizes(hidden=256, embedding=128, alignment=128, maxout=128),
}

RECIPE = Recipe(
    RNNSEARCH_PRESETS,
    {
        "hidden": "hidden units of each recurrence",
        "embedding": "word embedding",
        "alignment": "units of the alignment model",
        "maxout": "maxout units",
    },
)
