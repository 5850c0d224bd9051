"""Which phrase pairs make up each update."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moses_feature.training.phrase_pairs import PhrasePairs


class BatchSampler:
    """Which pairs make up each update: uniform over the pairs, batches of similar lengths.

    An epoch is a random order of all rows: each pair is drawn once. The order is cut into pools
    of so many batches; a pool is sorted by target and source length and cut into batches, which
    are taken in random order. So every pair has the same chance to be in any given update, and
    little is padded. The batch of an update depends on (seed, update) alone, so that a resumed
    run goes on with the same batches.
    """

    def __init__(
        self, pairs: PhrasePairs, rows: NDArray[np.int64], batch_size: int, seed: int, pool: int
    ) -> None:
        self._pairs = pairs
        self._rows = rows.astype(np.uint32)
        self._batch_size = batch_size
        self._seed = seed
        self._batches_of_pool = pool
        self._order: tuple[int, NDArray[np.uint32]] | None = None
        self._pool: tuple[tuple[int, int], list[NDArray[np.uint32]]] | None = None
        self.updates_per_epoch = -(-len(rows) // batch_size)

    def batch(self, update: int) -> NDArray[np.uint32]:
        """Return the rows of the pairs for the update (counted from 0)."""
        epoch, index = divmod(update, self.updates_per_epoch)
        pool, position = divmod(index, self._batches_of_pool)
        if self._pool is None or self._pool[0] != (epoch, pool):
            self._pool = (epoch, pool), self._batches(epoch, pool)
        return self._pool[1][position]

    def _batches(self, epoch: int, pool: int) -> list[NDArray[np.uint32]]:
        size = self._batches_of_pool * self._batch_size
        rows = self._epoch_order(epoch)[pool * size : (pool + 1) * size]
        lengths = (self._pairs.source.lengths(rows), self._pairs.target.lengths(rows))
        rows = rows[np.lexsort(lengths)]
        batches = np.split(rows, range(self._batch_size, len(rows), self._batch_size))
        np.random.default_rng([self._seed, epoch, pool]).shuffle(batches)
        return batches

    def _epoch_order(self, epoch: int) -> NDArray[np.uint32]:
        if self._order is None or self._order[0] != epoch:
            order = np.random.default_rng([self._seed, epoch]).permutation(self._rows)
            self._order = epoch, order
        return self._order[1]
