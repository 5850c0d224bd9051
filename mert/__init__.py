"""Tune the log-linear weights of Moses systems; knows nothing of where the features come from."""

import os

# The products of a decoder are too small to be shared among threads, which would only wait for
# each other; numpy reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
