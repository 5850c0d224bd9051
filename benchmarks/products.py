"""Speed of products whose rows do not depend on each other: ours, blocks of 8 rows, BLAS.

    python benchmarks/products.py

BLAS computes all rows at once, and its results depend on what rows are beside a row; blocks of 8
rows, each a product of its own, do not (on processors where a row's place in a block makes no
difference).
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import time
from collections.abc import Callable

import numpy as np

from moses_feature.networks.products import Matrix

SHAPES = [(24, 256, 768), (200, 256, 768), (500, 100, 768), (300, 256, 1920), (64, 1000, 2000)]
"""Rows, terms of a sum, columns."""
BLOCK, TIMES, TRIES = 8, 10, 7


def rate(shape: tuple[int, int, int], compute: Callable[[], object]) -> float:
    """Return billions of operations a second, of the fastest try."""
    seconds = []
    for _ in range(TRIES):
        start = time.perf_counter()
        for _ in range(TIMES):
            compute()
        seconds.append((time.perf_counter() - start) / TIMES)
    return 2 * float(np.prod(shape)) / min(seconds) / 1e9


def main() -> None:
    """Measure all shapes."""
    generator = np.random.default_rng(1)
    print(f"{'rows, terms, columns':22} {'ours':>6} {'blocks':>6} {'BLAS':>6}  GFLOPS, one core")
    for shape in SHAPES:
        rows, terms, columns = shape
        x = generator.standard_normal((rows, terms)).astype(np.float32)
        weight = generator.standard_normal((terms, columns)).astype(np.float32)
        matrix, blocks = Matrix(weight), x[: rows // BLOCK * BLOCK].reshape(-1, BLOCK, terms)
        whole = (len(blocks) * BLOCK, terms, columns)
        assert np.allclose(matrix.product(x), x @ weight, atol=1e-3)
        found = (
            rate(shape, lambda m=matrix, x=x: m.product(x)),
            rate(whole, lambda b=blocks, w=weight: np.matmul(b, w)),
            rate(shape, lambda x=x, w=weight: np.matmul(x, w)),
        )
        print(f"{f'{rows}, {terms}, {columns}':22} " + " ".join(f"{one:6.0f}" for one in found))


if __name__ == "__main__":
    main()
