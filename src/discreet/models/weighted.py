"""Weighted rows: a distribution given row by row, answered by summing weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.errors import Bug
from discreet.models.support import Support
from discreet.queries.answers import GRID, Answers
from discreet.queries.threshold import Attributes

Ints = NDArray[np.int64]

WHOLE = 2**46
"""The published weights are whole numbers with this sum: all sums of them are exact."""


class WeightedRows(Answers):
    """Answers of a distribution over listed rows, or over every combination of values.

    Attributes:
        domain: Public.
        total: Rows that fractions are taken of.
        support: The rows.
        shares: Their weights: whole numbers that sum to `WHOLE`.
    """

    source = "the fitted distribution, row by row"

    def __init__(self, total: int, support: Support, shares: Ints) -> None:
        self.domain: Domain = support.domain
        self.total = total
        self.support = support
        self.shares = shares

    @staticmethod
    def publish(total: int, support: Support, weights: NDArray[np.float64]) -> WeightedRows:
        """Round weights that sum to one to the published precision; the largest takes what is left over."""
        if not np.isfinite(weights).all():
            raise Bug("The weights of a fitted distribution are not finite.")
        shares = np.floor(weights * WHOLE).astype(np.int64)
        shares[np.argmax(shares)] += WHOLE - shares.sum()
        return WeightedRows(total, support, shares)

    def units(self, attributes: Attributes) -> Sparse:
        """Answers to one marginal, in units of 1/GRID of a row."""
        part = self.domain.project(attributes)
        if self.support.codes is None:
            away = tuple(axis for axis, name in enumerate(self.domain) if name not in attributes)
            sums = self.shares.reshape(self.domain.sizes).sum(axis=away).reshape(-1)
            cells: Ints = np.arange(part.size)
        else:
            cells, inverse = np.unique(self.support.cells(attributes), return_inverse=True)
            sums = np.bincount(inverse.reshape(-1), weights=self.shares)
        units = np.rint(sums * (self.total * GRID / WHOLE)).astype(np.int64)
        kept = np.flatnonzero(units)
        return Sparse.from_pairs(cells[kept], units[kept])

    def draw(self, count: int, generator: np.random.Generator) -> Ints:
        """`count` ordinary rows (codes, rows x attributes): each as often as its weight says, give or take one."""
        points = ((np.arange(count) + generator.random()) * (WHOLE / count)).astype(np.int64)
        rows = np.searchsorted(np.cumsum(self.shares), points, side="right")
        drawn = self.domain.unravel(rows) if self.support.codes is None else self.support.codes[rows]
        return drawn[generator.permutation(count)]
