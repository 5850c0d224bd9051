"""Neural scores for Moses phrase tables (RNN Encoder-Decoder of Cho et al., EMNLP 2014)."""

from moses_feature.runtime.environment import set_variables

__version__ = "0.2.0"

set_variables()  # before anything loads numpy or torch
