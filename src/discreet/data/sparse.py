"""Sparse: the cells of a marginal that are not zero. Run: all cells of a stretch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sparse:
    """Integer values on a few cells of a large marginal; every other cell is zero.

    Attributes:
        cells: Mixed-radix cell indices, strictly increasing.
        values: One integer per cell.
    """

    cells: Ints
    values: Ints

    @staticmethod
    def from_dense(values: Ints, *, start: int = 0) -> Sparse:
        """Keep the non-zero entries of a dense stretch of cells that begins at `start`."""
        kept = np.flatnonzero(values)
        return Sparse(kept + start, values[kept].astype(np.int64, copy=False))

    @staticmethod
    def from_pairs(cells: Ints, values: Ints) -> Sparse:
        """Drop the zeros among sorted (cell, value) pairs."""
        kept = values != 0
        return Sparse(cells[kept], values[kept])

    def dense(self, size: int) -> Ints:
        """All `size` cells, zeros included."""
        full = np.zeros(size, dtype=np.int64)
        full[self.cells] = self.values
        return full

    def between(self, start: int, stop: int) -> Sparse:
        """The part on cells start .. stop-1."""
        first, last = np.searchsorted(self.cells, [start, stop])
        return Sparse(self.cells[first:last], self.values[first:last])

    def at(self, cells: Ints) -> Ints:
        """Values at the given cells, zero where nothing is stored."""
        if not len(self.cells):
            return np.zeros(len(cells), dtype=np.int64)
        position = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        return np.where(self.cells[position] == cells, self.values[position], 0)

    def minus(self, other: Sparse) -> Sparse:
        """Difference cell by cell, on the union of both supports, zeros dropped.

        Cheapest when `other` is the smaller one: its cells are searched for among this one's.
        """
        position = np.searchsorted(self.cells, other.cells)
        inside = np.minimum(position, max(0, len(self.cells) - 1))
        met = self.cells[inside] == other.cells if len(self.cells) else np.zeros(len(other.cells), dtype=bool)
        values = self.values.copy()
        values[position[met]] -= other.values[met]
        if met.all():
            return Sparse.from_pairs(self.cells, values)
        cells = np.insert(self.cells, position[~met], other.cells[~met])
        values = np.insert(values, position[~met], -other.values[~met])
        return Sparse.from_pairs(cells, values)

    def magnitudes(self, factor: int = 1) -> Sparse:
        """Absolute values, multiplied by a positive integer."""
        return Sparse(self.cells, np.abs(self.values) * factor)

    def times(self, factor: int) -> Sparse:
        """Every value multiplied by a non-zero integer."""
        return Sparse(self.cells, self.values * factor)


@dataclass(frozen=True)
class Run:
    """Integer values of cells that follow each other, zeros included.

    Attributes:
        start: The first cell.
        values: One integer per cell, of any width.
    """

    start: int
    values: NDArray[np.integer]

    @property
    def cells(self) -> Ints:
        """Every cell."""
        return np.arange(self.start, self.start + len(self.values))

    def at(self, cells: Ints) -> Ints:
        """Values at the given cells, zero where nothing is stored."""
        inside = (cells >= self.start) & (cells < self.start + len(self.values))
        found = np.zeros(len(cells), dtype=np.int64)
        found[inside] = self.values[cells[inside] - self.start]
        return found

    def times(self, factor: int) -> Run:
        """Every value multiplied by a non-zero integer."""
        return Run(self.start, self.values.astype(np.int64) * factor)

    def magnitudes(self, factor: int = 1) -> Run:
        """Absolute values, multiplied by a positive integer."""
        size = np.abs(self.values)
        return Run(self.start, size if factor == 1 else size.astype(np.int64) * factor)


Piece = Sparse | Run
"""Values of some cells of a table; all others are zero, or stand in other pieces."""
