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
"""An array of a structured type."""
Record = Any
"""An element of `Records`; in compiled code its fields are attributes."""
