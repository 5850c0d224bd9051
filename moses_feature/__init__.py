"""Neural scores for Moses phrase tables (RNN Encoder-Decoder of Cho et al., EMNLP 2014)."""

import os

__version__ = "0.1.0"

# torch's threads wait for work by spinning, for so long that two busy processes on the same cores
# slow each other down many times over. It must be said before torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
