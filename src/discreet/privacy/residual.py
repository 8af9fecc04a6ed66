"""Residuals: what a marginal says beyond its sub-marginals.

The residual of a marginal over attributes of sizes d_i is its projection by the tensor product of (I - 1 1^T / d_i),
which takes the mean along every axis out. Times the number of cells it is a vector of integers, by the tensor product
of (d_i I - 1 1^T), whose entries have no common factor. A marginal is the sum over all subsets of its attributes of
their residuals, each spread evenly over the attributes that it lacks; the residual of no attribute is the number of
rows.

Reference: Xiao, He, Zhang, Kifer (2023), "An Optimal and Scalable Matrix Mechanism for Noisy Marginals under Convex
Loss Functions".
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadSetting, BadWorkload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

WIDEST = 2**36
"""Largest standard deviation of a residual in rows: beyond it, answers in fine units could overflow."""

DRAWN = 2**20
"""Entries that get noise at a time."""

_LARGEST = 2**62


def scaled(counts: Ints, sizes: Sequence[int]) -> Ints:
    """The residual of some counts times the number of cells, in integers."""
    table = counts.reshape(sizes)
    for axis, size in enumerate(sizes):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table.reshape(-1)


def projected(values: Floats, sizes: Sequence[int]) -> Floats:
    """The part of some values that a residual can have; noise outside of it is thrown away."""
    table = values.reshape(sizes)
    for axis in range(len(sizes)):
        table = table - table.mean(axis=axis, keepdims=True)
    return table.reshape(-1)


def require_whole(cells: int, total: int) -> None:
    """Refuse a residual whose integers could overflow: none of them, on the way either, exceeds rows times cells."""
    if cells * total > _LARGEST:
        raise BadWorkload(
            f"The residual of a marginal with {cells:,} cells is counted in units of one row over that many, and "
            f"{total:,} rows of those could overflow. Ask for fewer or coarser attributes."
        )


def require_drawable(variance: Fraction) -> None:
    """Refuse noise on a residual, in rows, that answers could not hold."""
    if variance > WIDEST**2:
        raise BadSetting("A residual would need noise with a standard deviation above 2^36 rows: spend more on it.")
