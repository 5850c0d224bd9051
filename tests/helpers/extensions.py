"""A metric and a network family, as somebody would add them."""

from __future__ import annotations

import numpy as np

from moses_feature.metrics.metric import Metric, formula
from moses_feature.networks.architectures import Architecture
from moses_feature.rnnsearch.inference import RnnSearchNetwork
from moses_feature.rnnsearch.network import RnnSearch
from moses_feature.rnnsearch.settings import RECIPE as OF_RNNSEARCH
from moses_feature.rnnsearch.settings import RnnSearchSizes


class LongestWord:
    """Whether the longest word of a reference is in the hypothesis."""

    def __init__(self, references):
        self._longest = max((word for text in references for word in text), key=len, default=b"")

    def statistics(self, hypotheses):
        return np.array([[self._longest in text, 1] for text in hypotheses], np.int64)


@formula
def _found(statistics):
    return statistics[0] / max(statistics[1], 1.0)


LONGEST = Metric("longest", "longest", LongestWord, (1.0, 2.0), _found, False, "longest word")
"""It has two statistics, as error rates do."""


class TwinSizes(RnnSearchSizes):
    """Sizes of a network that is RNNsearch by another name."""


class Twin(RnnSearch):
    """Another network."""


class TwinNetwork(RnnSearchNetwork):
    """Its scores without torch."""


RECIPE = OF_RNNSEARCH

TWIN = Architecture(
    "helpers.extensions:TwinSizes",
    "helpers.extensions:Twin",
    "moses_feature.sentences.translate:writer",
    "helpers.extensions:TwinNetwork",
    "moses_feature.rnnsearch.inference:RnnSearchPrefixes",
    "helpers.extensions:RECIPE",
    "Twin0",
)
