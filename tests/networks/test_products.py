"""Products of rows and a matrix: against float64, and that no row depends on another one."""

from __future__ import annotations

import numpy as np
import pytest

from moses_feature.networks.products import COLUMNS, PART, ROWS, TOGETHER, Matrix

SHAPES = [
    (1, 1, 1),
    (ROWS, 3, COLUMNS),
    (ROWS + 1, 7, COLUMNS - 1),
    (2 * ROWS - 1, 40, 2 * COLUMNS + 1),
    (0, 5, 5),
    (4, 0, 3),
    (5, 33, 2 * PART + 5),
    (TOGETHER // 1000 + 20, 1000, 20),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_products(shape):
    rows, inner, columns = shape
    generator = np.random.default_rng(rows)
    x = generator.standard_normal((rows, inner)).astype(np.float32)
    weight = generator.standard_normal((inner, columns)).astype(np.float32)
    matrix = Matrix(weight)
    found = matrix.product(x)
    exact = x.astype(np.float64) @ weight.astype(np.float64)
    np.testing.assert_allclose(found, exact, atol=1e-5 * max(1, inner) ** 0.5)
    alone = [matrix.product(x[row : row + 1])[0] for row in range(rows)]
    assert all(np.array_equal(row, other) for row, other in zip(found, alone, strict=True))
    parts = list(matrix.products(x))
    assert np.array_equal(np.concatenate([part for part, _ in parts], axis=1), found)
    assert [n for _, of in parts for n in range(of.start, of.stop)] == list(range(columns))


def test_what_is_no_row_of_the_matrix():
    matrix = Matrix(np.ones((3, 4), dtype=np.float32))
    with pytest.raises(ValueError, match="rows of 3: expected, found 5"):
        matrix.product(np.ones((2, 5), dtype=np.float32))
    assert np.array_equal(matrix.product(np.ones((2, 3))), np.full((2, 4), 3, dtype=np.float32))


def test_rows_that_do_not_stand_together():
    matrix = Matrix(np.arange(12, dtype=np.float32).reshape(3, 4))
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    assert np.array_equal(matrix.product(x[::2, 1:4]), matrix.product(x[::2, 1:4].copy()))
