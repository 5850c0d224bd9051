"""Neural scores for Moses phrase tables (RNN Encoder-Decoder of Cho et al., EMNLP 2014)."""

from moses_feature.runtime.environment import quiet_threads

__version__ = "0.2.0"

quiet_threads()  # before anything loads numpy or torch
