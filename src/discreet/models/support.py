"""Support: the rows that a distribution weighs, one number each: all of a domain, or those of a public table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.errors import BadWorkload
from discreet.models.smooth import on_simplex
from discreet.privacy.measurement import Measurement
from discreet.queries.threshold import Attributes, Threshold

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_ROWS = 2**24
"""Most rows of a support; a fit holds about six numbers for each."""

BYTES_EACH = 48


class Support:
    """Rows that may have weight.

    Attributes:
        domain: Public.
        codes: The rows, rows x attributes; None for every combination of values, in the domain's order.
        size: How many there are.
    """

    def __init__(self, domain: Domain, codes: Ints | None = None) -> None:
        self.domain = domain
        self.codes = codes
        self.size = domain.size if codes is None else len(codes)

    def column(self, name: str) -> Ints:
        """One attribute's code in each row."""
        at = self.domain.index(name)
        if self.codes is not None:
            return self.codes[:, at]
        sizes = self.domain.sizes
        shape = [size if axis == at else 1 for axis, size in enumerate(sizes)]
        return np.broadcast_to(np.arange(sizes[at]).reshape(shape), sizes).reshape(-1)

    def cells(self, attributes: Attributes) -> Ints:
        """The cell of a marginal that each row falls in."""
        sizes = self.domain.project(attributes).sizes
        return reduce(
            lambda cell, at: cell * sizes[at] + self.column(attributes[at]),
            range(len(sizes)),
            np.zeros(self.size, dtype=np.int64),
        )

    def matching(self, threshold: Threshold, cell: int) -> Ints:
        """Numbers of the rows that match a query."""
        codes = self.domain.project(threshold.attributes).unravel(np.array([cell]))[0]
        agree = sum(
            (self.column(name) == code).astype(np.int8) for name, code in zip(threshold.attributes, codes, strict=True)
        )
        return np.flatnonzero(np.asarray(agree) >= threshold.r)

    def constraints(self, found: Measurement, total: int) -> list[Constraint]:
        """What a measurement says of a distribution: one constraint for a whole marginal, or one for each query."""
        fractions = found.counts / total
        if found.cells is None:
            attributes = found.threshold.attributes
            return [Marginal(attributes, self.cells(attributes).astype(np.int32), fractions)]
        matching = [self.matching(found.threshold, int(cell)) for cell in found.cells]
        return [
            Single(rows, np.array([1 - fraction, fraction]))
            for rows, fraction in zip(matching, fractions, strict=True)
            if 0 < len(rows) < self.size  # no weights can change the answer to a query that all rows match, or none
        ]


@dataclass(frozen=True)
class Distribution:
    """Weights on the rows of a support; they sum to one."""

    support: Support
    weights: Floats

    @staticmethod
    def even(support: Support) -> Distribution:
        """The same weight on every row."""
        return Distribution(support, np.full(support.size, 1 / support.size))

    @staticmethod
    def of_rows(domain: Domain, codes: Ints) -> Distribution:
        """Distinct rows, weighed by how often they occur."""
        rows, counts = np.unique(codes, axis=0, return_counts=True)
        return Distribution(Support(domain, rows), counts / counts.sum())


class Constraint(ABC):
    """A partition of the support's rows, and the mass that was measured of each part.

    Attributes:
        measured: Noisy fractions of the parts; they need not be those of a distribution.
    """

    measured: Floats

    @abstractmethod
    def masses(self, weights: Floats, total: float) -> Floats:
        """Weight of each part, of this total."""

    @abstractmethod
    def scale(self, weights: Floats, factors: Floats) -> None:
        """Multiply the weights of each part by its factor, in place."""

    def feasible(self, floor: float, within: NDArray[np.bool_]) -> Floats:
        """The distribution closest to what was measured, at least `floor`; zero where rows have no weight.

        Closest in square: noise that lifts many empty cells is taken off all cells alike, where rescaling would leave
        most of it in them.
        """
        closest: Floats = np.zeros(len(self.measured))
        closest[within] = np.maximum(on_simplex(self.measured[within]), floor)
        return closest / float(closest.sum())


@dataclass(frozen=True)
class Marginal(Constraint):
    """Parts are the cells of a marginal; `part` has the cell of each row."""

    attributes: Attributes
    part: NDArray[np.int32]
    measured: Floats

    def masses(self, weights: Floats, total: float) -> Floats:
        """Weight of each cell, of this total."""
        return np.bincount(self.part, weights=weights, minlength=len(self.measured)) / total

    def scale(self, weights: Floats, factors: Floats) -> None:
        """Multiply the weights of each cell by its factor."""
        weights *= factors[self.part]


@dataclass(frozen=True)
class Single(Constraint):
    """Two parts: the rows that do not match a query, and those that do."""

    rows: Ints
    measured: Floats

    def masses(self, weights: Floats, total: float) -> Floats:
        """Weight of the rows that do not match, and of those that do."""
        matching = weights[self.rows].sum() / total
        return np.array([1 - matching, matching])

    def scale(self, weights: Floats, factors: Floats) -> None:
        """Multiply their weights; rows that do not match are left alone if their factor is one."""
        matching = weights[self.rows] * factors[1]
        if factors[0] != 1:
            weights *= factors[0]
        weights[self.rows] = matching


def require_small(domain: Domain, mechanism: str) -> None:
    """Refuse a domain that is too large to be weighed row by row; public facts only."""
    if domain.size > MOST_ROWS:
        raise BadWorkload(
            f"{mechanism} weighs every combination of values, and the domain has {domain.size:.3g} of them: about "
            f"{domain.size * BYTES_EACH / 1e9:.3g} GB, where at most {MOST_ROWS:,} combinations are taken. Leave out "
            "attributes, use coarser bins, or choose a mechanism that does not grow with the domain."
        )
