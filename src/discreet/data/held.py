"""Held: codes of a small table as arrays, counted by sorting. Several times faster there than any database."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.data.engine import BASE, PRIME, Marginal, Portion
from discreet.data.sparse import Ints

if TYPE_CHECKING:
    import pyarrow as pa

DENSE_PER_ROW = 4
"""Marginals with up to so many cells per row are counted in an array over all cells."""


@dataclass(frozen=True)
class Held:
    """An engine for tables that fit in memory.

    Attributes:
        columns: The codes of each attribute.
    """

    columns: tuple[NDArray[Any], ...]

    @staticmethod
    def of(batches: Sequence[pa.RecordBatch], layout: pa.Schema) -> Held:
        """Put batches together."""
        import pyarrow as pa

        frame = pa.Table.from_batches(batches, layout)
        return Held(tuple(column.to_numpy() for column in frame.columns))

    def rows(self) -> int:
        """See `Engine`."""
        return len(self.columns[0])

    def count(self, marginals: Sequence[Marginal]) -> Iterator[Portion]:
        """See `Engine`; sorting leaves Python's lock, so threads share the work."""
        if self.rows() == 0:
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, (cells, values) in enumerate(pool.map(self._count, marginals)):
                yield number, cells, values

    def digest(self) -> int:
        """See `Engine`."""
        mixed = np.zeros(self.rows(), dtype=np.int64)
        for column in self.columns:
            mixed = (mixed * BASE + column.astype(np.int64)) % PRIME
        return int((mixed * mixed % PRIME).sum())

    def codes(self) -> NDArray[np.int64]:
        """See `Engine`."""
        return np.column_stack([column.astype(np.int64) for column in self.columns])

    def close(self) -> None:
        """See `Engine`."""

    def _count(self, marginal: Marginal) -> tuple[Ints, Ints]:
        cells, size = self._cells(marginal)
        if size <= DENSE_PER_ROW * len(cells):
            dense = np.bincount(cells, minlength=size)
            found = np.flatnonzero(dense)
            return found, dense[found]
        cells.sort()
        first = np.empty(len(cells), dtype=bool)
        first[0] = True
        np.not_equal(cells[1:], cells[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        return cells[starts].astype(np.int64), np.diff(starts, append=len(cells))

    def _cells(self, marginal: Marginal) -> tuple[Any, int]:
        """The cell of each row, by Horner's rule, in a type that holds them all; and how many cells there are."""
        size = int(np.prod([size for _, size in marginal], dtype=object))
        cells: Any = np.zeros(self.rows(), dtype=np.int32 if size < 2**31 else np.int64)
        for column, radix in marginal:
            cells *= radix
            cells += self.columns[column].astype(cells.dtype, copy=False)
        return cells, size
