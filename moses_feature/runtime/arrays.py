"""Types of numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Records = NDArray[np.void]
"""Of a structured type."""
Record = Any
"""One of them; its fields are its attributes in compiled code."""
