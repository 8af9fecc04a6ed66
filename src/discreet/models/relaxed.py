"""Relaxed rows: a mixture of product distributions, one product per synthetic row.

Each row holds, for every attribute, a probability vector over its values. The answer to a marginal query is the mean
over rows of the product of the entries it names (Aydore et al. 2021, Definition 3.2); a row that puts all mass on one
value per attribute is an ordinary row. What is published is this model with probabilities rounded to multiples of
2^-14, so that answers to marginals of up to three attributes are sums of integers: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.queries.answers import GRID, Answers, Stretch
from discreet.queries.threshold import Attributes

Floats = NDArray[np.float64]

PRECISION = 14
"""Published probabilities are multiples of 2^-PRECISION."""

_SUPPORT_COST = 2**8
"""Visiting a supported cell of a row costs about as much as this many cells of a matrix product over all rows."""

_MOST_VISITS = 2**26
_WIDEST = 2**24
"""Most entries of an array that is formed on the way."""

MOST_QUERIES = 2**34
"""Workloads beyond this would take relaxed rows more than ten minutes to answer once, so they are refused."""

_BLOCK = 2**19
"""Entries of the products that are formed at once; small enough to stay in a processor's cache."""


@dataclass(frozen=True)
class RelaxedRows(Answers):
    """A published mixture of products.

    Attributes:
        domain: Public.
        total: Number of rows that answers are fractions of.
        shares: bits x rows, integers; each attribute's block adds up to 2^PRECISION in every row, unless the rows
            were fitted in a box.
    """

    domain: Domain
    total: int
    shares: NDArray[np.uint16]

    @staticmethod
    def publish(
        domain: Domain, total: int, probabilities: NDArray[np.floating], *, normalise: bool = True
    ) -> RelaxedRows:
        """Round fitted probabilities (bits x rows) to the published precision, keeping every sum exact.

        Rows in a box (`normalise=False`) are only rounded: their entries need not add up to one.
        """
        if not normalise:
            return RelaxedRows(domain, total, np.rint(probabilities * 2.0**PRECISION).astype(np.uint16))
        shares = np.empty(probabilities.shape, dtype=np.uint16)
        for start, size in zip(domain.offsets, domain.sizes, strict=True):
            shares[start : start + size] = _largest_remainder(probabilities[start : start + size])
        return RelaxedRows(domain, total, shares)

    @property
    def rows(self) -> int:
        """Number of products in the mixture."""
        return int(self.shares.shape[1])

    def block(self, name: str) -> NDArray[np.uint16]:
        """One attribute's shares: values x rows."""
        start = self.domain.offsets[self.domain.index(name)]
        return self.shares[start : start + self.domain.size_of(name)]

    def units(self, attributes: Attributes) -> Sparse:
        """Answers to one marginal, in units of 1/GRID of a row."""
        parts = [stretch.units for stretch in self.stretches(attributes)]
        return Sparse(np.concatenate([part.cells for part in parts]), np.concatenate([part.values for part in parts]))

    def at(self, attributes: Attributes, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Answers to some cells of a marginal: products of the entries they name, whatever its size."""
        inner = self.domain.project(attributes)
        codes = inner.unravel(cells)
        product = np.ones((len(cells), self.rows))
        for column, name in enumerate(attributes):
            product = product * self._floats[name][codes[:, column]]
        return _to_units(product.sum(axis=1), self._scale(attributes))

    def _scale(self, attributes: Attributes) -> float:
        """From sums of products of shares to units."""
        return self.total * GRID / (self.rows * 2.0 ** (PRECISION * len(attributes)))

    def stretches(self, attributes: Attributes, *, grid: int = GRID) -> Iterator[Stretch]:
        """The same in stretches: through the values that rows support, or cell by cell, whichever is cheaper."""
        sizes = self.domain.project(attributes).sizes
        scale = self._scale(attributes) * (grid / GRID)
        if self._visits(attributes) < min(prod(sizes) // _SUPPORT_COST, _MOST_VISITS):
            yield Stretch(0, prod(sizes), self._through_supports(attributes, scale))
            return
        # A matrix product of two groups of attributes, cut where the groups are smallest, a few left rows at a time.
        narrow = [at for at in range(len(sizes)) if prod(sizes[at:]) * self.rows <= _WIDEST] or [len(sizes) - 1]
        cut = min(narrow, key=lambda at: prod(sizes[:at]) + prod(sizes[at:]))
        right = _outer([self._floats[name] for name in attributes[cut:]]).T
        leading = self.domain.project(attributes[:cut])
        width, step = prod(sizes[cut:]), max(1, _BLOCK // self.rows)
        for begin in range(0, leading.size, step):
            end = min(leading.size, begin + step)
            left = self._products(leading, begin, end)
            dense = _to_units(left @ right, scale).reshape(-1)
            yield Stretch(begin * width, end * width, Sparse.from_dense(dense, start=begin * width))

    def _products(self, leading: Domain, begin: int, end: int) -> Floats:
        """Products of entries for the cells begin .. end-1 of some attributes: cells x rows."""
        if len(leading) == 1:
            return self._floats[leading.attributes[0]][begin:end]
        codes = leading.unravel(np.arange(begin, end))
        product = np.ones((1, self.rows))
        for at, name in enumerate(leading):
            factor = self._floats[name][codes[:, at]]
            product = np.multiply(product, factor, out=factor)
        return product

    def _visits(self, attributes: Attributes) -> int:
        """How many (row, cell) pairs have a positive product."""
        visits = np.ones(self.rows)
        for name in attributes:
            visits = visits * self._supports[name][2]
        return int(min(2.0**62, visits.sum()))

    def _through_supports(self, attributes: Attributes, scale: float) -> Sparse:
        """The same for a marginal too large to enumerate: only cells that some row supports are visited."""
        row = np.arange(self.rows)
        cell = np.zeros(self.rows, dtype=np.int64)
        weight = np.ones(self.rows)
        for name in attributes:
            values, starts, counts = self._supports[name]
            many = counts[row]
            source = np.repeat(np.arange(len(row)), many)
            within = np.arange(len(source)) - np.repeat(np.cumsum(many) - many, many)
            value = values[starts[row[source]] + within]
            cell = cell[source] * self.domain.size_of(name) + value
            weight = weight[source] * self._floats[name][value, row[source]]
            row = row[source]
        cells, inverse = np.unique(cell, return_inverse=True)
        return Sparse.from_pairs(cells, _to_units(np.bincount(inverse, weights=weight).astype(np.float64), scale))

    @cached_property
    def _floats(self) -> dict[str, Floats]:
        return {name: self.block(name).astype(np.float64) for name in self.domain}

    @cached_property
    def _supports(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """For each attribute: supported values row after row, where each row starts, and how many it has."""
        found = {}
        for name in self.domain:
            rows, values = np.nonzero(self.block(name).T)
            counts = np.bincount(rows, minlength=self.rows)
            found[name] = (values, np.cumsum(counts) - counts, counts)
        return found

    def sample(self, copies: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Ordinary rows (codes, rows x attributes): `copies` of each product, in random order.

        Randomised rounding (Aydore et al. 2021, section 4) with systematic draws: within the copies of one
        product each value appears as often as its probability says, up to one, and attributes are shuffled
        independently, so the expected value of every marginal query is kept and its variance is smaller than
        with independent draws.
        """
        codes = np.empty((self.rows, copies, len(self.domain)), dtype=np.int64)
        for column, name in enumerate(self.domain):
            weights = self._floats[name]
            weights = weights + (weights.sum(axis=0) == 0)  # a row in a box may be all zero: then any value will do
            cumulative = (np.cumsum(weights, axis=0) / weights.sum(axis=0)).T  # rows x values
            points = (np.arange(copies) + generator.random((self.rows, 1))) / copies
            drawn = np.stack(
                [np.searchsorted(steps, at, side="right") for steps, at in zip(cumulative, points, strict=True)]
            )
            codes[:, :, column] = generator.permuted(drawn, axis=1)
        flat = codes.reshape(-1, len(self.domain))
        return flat[generator.permutation(len(flat))]


def _outer(factors: Sequence[Floats]) -> Floats:
    """Products of entries for every combination of values: combinations x rows."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, None, :] * factor[None, :, :]).reshape(-1, factor.shape[1])
    return product


def _to_units(values: Floats, scale: float) -> NDArray[np.int64]:
    scaled = np.multiply(values, scale)
    return np.rint(scaled, out=scaled).astype(np.int64)


def _largest_remainder(probabilities: NDArray[np.floating]) -> NDArray[np.uint16]:
    """Integers (values x rows) closest to 2^PRECISION times each column, with that exact sum."""
    whole = 1 << PRECISION
    scaled = np.asarray(probabilities, dtype=np.float64)
    scaled = scaled / scaled.sum(axis=0) * whole
    floors = np.floor(scaled)
    short = whole - floors.sum(axis=0).astype(np.int64)
    # The values with the largest remainders of each column receive the missing units.
    order = np.argsort(floors - scaled, axis=0, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(order))[:, None], axis=0)
    rounded: NDArray[np.uint16] = (floors + (rank < short)).astype(np.uint16)
    return rounded
