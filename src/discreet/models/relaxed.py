"""Relaxed rows: a mixture of product distributions, one product per synthetic row.

Each row holds, for every attribute, a probability vector over its values. The answer to a marginal query is the mean
over rows of the product of the entries it names (Aydore et al. 2021, Definition 3.2); a row that puts all mass on one
value per attribute is an ordinary row. What is published is this model with probabilities rounded to multiples of
2^-14, so that answers to marginals of up to three attributes are sums of integers: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Any

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

_DOUBT_COST = 2**5
"""An exact sum of one cell costs about as much as this many in a matrix product."""

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
    source = "relaxed rows, the fitted model"

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
        return self._at(attributes, cells, GRID)

    def _at(self, attributes: Attributes, cells: NDArray[np.int64], grid: int) -> NDArray[np.int64]:
        codes = self.domain.project(attributes).unravel(cells)
        product = np.ones((len(cells), self.rows))
        for column, name in enumerate(attributes):
            product = product * self._floats[name][codes[:, column]]
        return _to_units(product.sum(axis=1), self._scale(attributes, grid))

    def _scale(self, attributes: Attributes, grid: int) -> float:
        """From sums of products of shares to units of 1/grid of a row."""
        return self.total * grid / (self.rows * 2.0 ** (PRECISION * len(attributes)))

    def stretches(self, attributes: Attributes, *, grid: int = GRID) -> Iterator[Stretch]:
        """The same in stretches: through the values that rows support, or cell by cell, whichever is cheaper."""
        sizes = self.domain.project(attributes).sizes
        if self._visits(attributes) < min(prod(sizes) // _SUPPORT_COST, _MOST_VISITS):
            yield Stretch(0, prod(sizes), self._through_supports(attributes, grid))
            return
        doubts = self._slack * self.total * grid * self._mass(attributes)
        coarse = 0 < doubts * _DOUBT_COST < prod(sizes)
        start = 0
        for sums in self._sums(attributes, self._singles if coarse else self._floats):
            units = self._rounded_singles if coarse else self._rounded_floats
            yield Stretch(start, start + sums.size, units(attributes, sums.ravel(), start, grid))
            start += sums.size

    def _rounded_floats(self, attributes: Attributes, sums: Any, start: int, grid: int) -> Sparse:
        """Sums of products of integers, which are exact, rounded to the grid."""
        return Sparse.from_dense(_to_units(sums, self._scale(attributes, grid)), start=start)

    def _rounded_singles(self, attributes: Attributes, sums: Any, start: int, grid: int) -> Sparse:
        """The same integers from sums in single precision: where these leave a doubt, from the exact ones."""
        scale = self.total * grid / self.rows
        kept = np.flatnonzero(sums > np.float32((0.5 - self._slack) / scale))
        values = sums[kept].astype(np.float64) * scale
        units = np.rint(values)
        doubt = np.abs(values - units) > 0.5 - 2.0**-30 - self._slack * values
        cells, units = kept + start, units.astype(np.int64)
        units[doubt] = self._at(attributes, cells[doubt], grid)
        return Sparse.from_pairs(cells, units)

    @property
    def _slack(self) -> float:
        """Bounds the relative error of a sum of products in single precision, whatever the order of summation."""
        return (self.rows + len(self.domain)) * 2.0**-23

    def _mass(self, attributes: Attributes) -> float:
        """What all answers of a marginal add up to: one, but for rows in a box, where it may be thousands."""
        return float(np.mean(reduce(np.multiply, [self._sums_of_shares[name] for name in attributes])))

    def _sums(self, attributes: Attributes, factors: Mapping[str, Any]) -> Iterator[Any]:
        """Sums over rows of products, for all cells in order, in blocks.

        A matrix product of two groups of attributes, cut where the groups are smallest.
        """
        sizes = self.domain.project(attributes).sizes
        narrow = [at for at in range(len(sizes)) if prod(sizes[at:]) * self.rows <= _WIDEST] or [len(sizes) - 1]
        cut = min(narrow, key=lambda at: prod(sizes[:at]) + prod(sizes[at:]))
        most = max(1, _BLOCK // self.rows)
        rights: Iterable[Any] = self._products(attributes[cut:], most, factors)
        if prod(sizes[:cut]) > most:
            rights = list(rights)
        for left in self._products(attributes[:cut], most, factors):
            sums, at = np.empty((len(left), prod(sizes[cut:])), dtype=left.dtype), 0
            for right in rights:
                np.matmul(left, right.T, out=sums[:, at : at + len(right)])
                at += len(right)
            yield sums

    def _products(self, names: Attributes, most: int, factors: Mapping[str, Any]) -> Iterator[Any]:
        """Products for all cells of some attributes in order, about `most` cells at a time: cells x rows."""
        if not names:
            yield np.ones((1, self.rows))
            return
        tail = factors[names[-1]]
        heads = self.domain.project(names[:-1])
        step = max(1, most // len(tail))
        for begin in range(0, heads.size, step):
            codes = heads.unravel(np.arange(begin, min(heads.size, begin + step)))
            taken = [factors[name][codes[:, at]] for at, name in enumerate(heads)]
            yield (reduce(np.multiply, taken)[:, None, :] * tail).reshape(-1, self.rows) if taken else tail

    def _visits(self, attributes: Attributes) -> int:
        """How many (row, cell) pairs have a positive product."""
        visits = np.ones(self.rows)
        for name in attributes:
            visits = visits * self._supports[name][2]
        return int(min(2.0**62, visits.sum()))

    def _through_supports(self, attributes: Attributes, grid: int) -> Sparse:
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
        summed = np.bincount(inverse, weights=weight).astype(np.float64)
        return Sparse.from_pairs(cells, _to_units(summed, self._scale(attributes, grid)))

    @cached_property
    def _floats(self) -> dict[str, Floats]:
        return {name: self.block(name).astype(np.float64, order="C") for name in self.domain}

    @cached_property
    def _singles(self) -> dict[str, NDArray[np.float32]]:
        """Probabilities in single precision, where they are exact."""
        return {name: (block * 2.0**-PRECISION).astype(np.float32) for name, block in self._floats.items()}

    @cached_property
    def _sums_of_shares(self) -> dict[str, Floats]:
        """For each attribute: what its probabilities add up to in every row."""
        return {name: block.sum(axis=0) * 2.0**-PRECISION for name, block in self._floats.items()}

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
