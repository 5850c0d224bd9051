"""Products of rows and a matrix in blocks.

All blocks have the same number of rows, the last one padded, so that what comes of a row does not
depend on the rows beside it, to the bit. Nor may it depend on its place among them: OpenBLAS's
kernels for AVX2 add up the last rows of a block in another order, so that the size of a block is
tried out. Blocks are so small that OpenBLAS does not copy the matrix first where it has products
for that; for few rows this would take as long as the product.
"""

from __future__ import annotations

import numpy as np

from moses_feature.runtime.arrays import Floats32

SMALL = 1_000_000
"""Multiplications of a product that OpenBLAS takes for a small one."""


def _rows_treated_alike() -> int:
    """Return how many rows a block has: the most, of some, whose place makes no difference."""
    for rows in (16, 8, 4):
        alike = True
        for inner, columns in ((7, 48), (100, 240), (256, 1008), (1000, 48)):
            row = np.sin(np.arange(inner, dtype=np.float32))
            weight = np.cos(np.arange(inner * columns, dtype=np.float32)).reshape(inner, columns)
            product = np.matmul(np.tile(row, (1, rows, 1)), weight)[0]
            alike = alike and bool((product == product[0]).all())
        if alike:
            return rows
    return 1


ROWS = _rows_treated_alike()
"""Of a block: 8 with the kernels for AVX2 (Haswell, Zen), 16 with all others that were tried."""


class Matrix:
    """A matrix to multiply rows with.

    Attributes:
        parts: some columns (k, m) each, C-contiguous, and which they are.

    Args:
        weight: (k, columns).
    """

    def __init__(self, weight: Floats32) -> None:
        self._inner, self._columns = weight.shape
        width = max(16, SMALL // (ROWS * self._inner) // 16 * 16)
        columns = (slice(first, first + width) for first in range(0, self._columns, width))
        self.parts = [(np.ascontiguousarray(weight[:, some]), some) for some in columns]

    def product(self, x: Floats32) -> Floats32:
        """Return the product (n, columns) of rows (n, k) and the matrix."""
        blocks = blocks_of(x)
        product = np.empty((len(blocks), ROWS, self._columns), dtype=np.float32)
        for part, columns in self.parts:
            np.matmul(blocks, part, out=product[:, :, columns])
        return product.reshape(-1, self._columns)[: len(x)]


def blocks_of(x: Floats32) -> Floats32:
    """Return rows (n, k) as blocks (n / ROWS, ROWS, k), the last one padded with zeros."""
    count = -(-len(x) // ROWS)
    if len(x) == count * ROWS and x.flags.c_contiguous:
        return x.reshape(count, ROWS, x.shape[1])
    blocks = np.zeros((count, ROWS, x.shape[1]), dtype=np.float32)
    blocks.reshape(count * ROWS, -1)[: len(x)] = x
    return blocks
