"""Products of rows and a matrix in blocks, with results that do not depend on other rows.

All blocks have the same number of rows, the last one padded, so that the result of a row is the
same, to the bit, whatever rows are beside it. It must not depend on the row's place in the block
either: OpenBLAS's AVX2 kernels sum the last rows of a block in another order, so the size of a
block is found by trying. Blocks are so small that OpenBLAS, where it has kernels for that, does not
copy the matrix first; for few rows the copy would take as long as the product.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moses_feature.runtime.arrays import Floats32

SMALL = 1_000_000
"""The number of multiplications up to which OpenBLAS treats a product as small."""


def _rows_treated_alike() -> int:
    """Return the largest tried block size at which a row's place makes no difference."""
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
"""Rows of a block: 8 with AVX2 kernels (Haswell, Zen), 16 with all others that were tried."""


class Matrix:
    """A matrix to multiply rows by.

    Attributes:
        parts: C-contiguous blocks of columns (k, m), each with the range of its columns.

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

    def products(self, x: Floats32) -> Iterator[tuple[Floats32, slice]]:
        """Yield the product of rows (n, k) in parts (n, m), each with the range of its columns."""
        blocks = blocks_of(x)
        for part, columns in self.parts:
            yield np.matmul(blocks, part).reshape(-1, part.shape[1])[: len(x)], columns


def blocks_of(x: Floats32) -> Floats32:
    """Return rows (n, k) as blocks (n / ROWS, ROWS, k), the last one padded with zeros."""
    count = -(-len(x) // ROWS)
    if len(x) == count * ROWS and x.flags.c_contiguous:
        return x.reshape(count, ROWS, x.shape[1])
    blocks = np.zeros((count, ROWS, x.shape[1]), dtype=np.float32)
    blocks.reshape(count * ROWS, -1)[: len(x)] = x
    return blocks
