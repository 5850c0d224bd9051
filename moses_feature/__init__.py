"""Neural scores for Moses phrase tables (RNN Encoder-Decoder of Cho et al., EMNLP 2014)."""

__version__ = "0.2.0"
