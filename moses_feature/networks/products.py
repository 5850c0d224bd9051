"""Products of rows and a matrix, whose results do not depend on other rows.

A tile of 6 rows and 16 columns has its sums in vector registers, 12 of AVX2's 16, while it goes
down a panel of the matrix, 16 columns that stand together in memory (Goto and van de Geijn 2008).
Each sum adds its terms one after the other, wherever it is in a tile: so the result of a row is the
same, to the bit, whatever rows are beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from moses_feature.runtime.arrays import Floats32
from moses_feature.runtime.compiled import exact

ROWS, COLUMNS = 6, 16
"""Of a tile."""
BYTES = 4
"""Of a number."""
TOGETHER = 1 << 16
"""Numbers in the rows that pass all panels together: a part of a core's second cache."""
PART = 512
"""Columns that `products` yields at a time, at most."""


class Matrix:
    """A matrix to multiply rows by.

    Attributes:
        panels: (columns / 16, k, 16) the matrix, its last panel padded with zeros.

    Args:
        weight: (k, columns).
    """

    def __init__(self, weight: Floats32) -> None:
        inner, self._columns = weight.shape
        panels = -(-self._columns // COLUMNS)
        padded = np.zeros((inner, panels * COLUMNS), dtype=np.float32)
        padded[:, : self._columns] = weight
        by_panel = padded.reshape(inner, panels, COLUMNS).transpose(1, 0, 2)
        self.panels = np.ascontiguousarray(by_panel)

    def product(self, x: Floats32) -> Floats32:
        """Return the product (n, columns) of rows (n, k) and the matrix."""
        return self._of_columns(x, 0, self._columns)

    def products(self, x: Floats32) -> Iterator[tuple[Floats32, slice]]:
        """Yield the product of rows (n, k) in parts (n, m), each with the range of its columns."""
        for first in range(0, self._columns, PART):
            last = min(first + PART, self._columns)
            yield self._of_columns(x, first, last), slice(first, last)

    def _of_columns(self, x: Floats32, first: int, last: int) -> Floats32:
        if x.shape[1] != self.panels.shape[1]:
            raise ValueError(f"rows of {self.panels.shape[1]}: expected, found {x.shape[1]}")
        found = np.empty((len(x), last - first), dtype=np.float32)
        panels = self.panels[first // COLUMNS : -(-last // COLUMNS)]
        multiply(np.ascontiguousarray(x, dtype=np.float32), panels, found)
        return found


def _tile(
    typing_context: Any,  # noqa: ARG001
    rows: Any,  # noqa: ARG001
    length: Any,  # noqa: ARG001
    panel: Any,  # noqa: ARG001
    result: Any,  # noqa: ARG001
    columns: Any,  # noqa: ARG001
) -> Any:
    """Compile the product of a tile.

    It takes the addresses of the rows, of the panel and of the result, the length of a row (1 at
    least) and of a row of the result.
    """
    single, number = ir.FloatType(), ir.IntType(64)
    vector = ir.VectorType(single, COLUMNS)
    same_lane = ir.Constant(ir.VectorType(ir.IntType(32), COLUMNS), [0] * COLUMNS)
    undefined, contracted = ir.Constant(vector, ir.Undefined), ("contract",)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        rows, length, panel, result, columns = arguments
        rows, panel, result = (
            builder.inttoptr(address, single.as_pointer()) for address in (rows, panel, result)
        )
        begins = [builder.gep(rows, [builder.mul(length, number(row))]) for row in range(ROWS)]
        before = builder.block
        loop, done = map(builder.append_basic_block, ("terms", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        place, sums = builder.phi(number), [builder.phi(vector) for _ in range(ROWS)]
        of_panel = builder.gep(panel, [builder.mul(place, number(COLUMNS))])
        weights = builder.load(builder.bitcast(of_panel, vector.as_pointer()), align=BYTES)
        following = []
        for begin, total in zip(begins, sums, strict=True):
            value = builder.load(builder.gep(begin, [place]), align=BYTES)
            lane = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
            values = builder.shuffle_vector(lane, undefined, same_lane)
            term = builder.fmul(values, weights, flags=contracted)
            following.append(builder.fadd(term, total, flags=contracted))
        next_place = builder.add(place, number(1))
        place.add_incoming(number(0), before)
        place.add_incoming(next_place, loop)
        for total, more in zip(sums, following, strict=True):
            total.add_incoming(ir.Constant(vector, [0.0] * COLUMNS), before)
            total.add_incoming(more, loop)
        builder.cbranch(builder.icmp_signed("<", next_place, length), loop, done)
        builder.position_at_end(done)
        for row, total in enumerate(following):
            to = builder.gep(result, [builder.mul(columns, number(row))])
            builder.store(total, builder.bitcast(to, vector.as_pointer()), align=BYTES)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


_multiply_tile: Any = intrinsic(_tile)


@exact
def multiply(x: Floats32, panels: Floats32, found: Floats32) -> None:
    """Write the product (n, m) of rows (n, k) and panels (m / 16, k, 16), the last one padded.

    All arrays are C-contiguous.
    """
    count, length = x.shape
    columns = found.shape[1]
    if length == 0:
        found[:] = 0.0
        return
    whole = count // ROWS * ROWS
    last_rows = np.zeros((ROWS, length), dtype=np.float32)  # a tile that is not full
    last_rows[: count - whole] = x[whole:]
    tile = np.empty((ROWS, COLUMNS), dtype=np.float32)
    rows_together = max(1, TOGETHER // (length * ROWS)) * ROWS
    for begin in range(0, count, rows_together):
        for panel in range(len(panels)):
            of_panel = panels.ctypes.data + panel * length * COLUMNS * BYTES
            first = panel * COLUMNS
            for row in range(begin, min(begin + rows_together, count), ROWS):
                is_whole = row < whole
                rows = x.ctypes.data + row * length * BYTES if is_whole else last_rows.ctypes.data
                if is_whole and first + COLUMNS <= columns:
                    to = found.ctypes.data + (row * columns + first) * BYTES
                    _multiply_tile(rows, length, of_panel, to, columns)
                    continue
                _multiply_tile(rows, length, of_panel, tile.ctypes.data, COLUMNS)
                for of_tile in range(min(ROWS, count - row)):
                    for column in range(min(COLUMNS, columns - first)):
                        found[row + of_tile, first + column] = tile[of_tile, column]
