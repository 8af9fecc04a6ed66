"""Marginals put together from noisy residuals: answers without a model that agree with each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.errors import BadWorkload
from discreet.privacy import residual
from discreet.privacy.measurement import Measurement
from discreet.queries.answers import GRID, Answers
from discreet.queries.threshold import Attributes, Threshold

Floats = NDArray[np.float64]


class ResidualCounts(Answers):
    """Answers to every marginal whose subsets were all measured; summing one up gives the others, up to rounding.

    Attributes:
        domain: Public.
        total: The residual of no attribute.
        total_variance: Variance of the noise in it.
    """

    source = "noisy residuals of marginals, put together"

    def __init__(
        self, domain: Domain, total: int, measurements: Sequence[Measurement], *, total_variance: float = 0.0
    ) -> None:
        self.domain = domain
        self.total = total
        self.total_variance = total_variance
        self._residuals: dict[Attributes, Floats] = {}
        self._variances: dict[Attributes, float] = {}
        for found in measurements:
            names, cells = found.threshold.attributes, len(found.counts)
            self._residuals[names] = residual.projected(found.counts / cells, domain.project(names).sizes)
            self._variances[names] = float(found.sigma_squared / cells**2)

    def units(self, attributes: Attributes) -> Sparse:
        """Answers to one marginal, in units of 1/GRID of a row; they may be negative."""
        return Sparse.from_dense(np.rint(self.counts(attributes) * GRID).astype(np.int64))

    def counts(self, attributes: Attributes) -> Floats:
        """Noisy counts of one marginal: residuals spread evenly over the attributes they lack, and added up."""
        self._require(attributes)
        return assembled(self.domain, self._residuals, attributes, total=self.total)

    def variance(self, attributes: Attributes) -> float:
        """Variance of the noise in one cell of a marginal, in rows; the same for all of its cells, in any order."""
        return self.variance_of(Threshold(tuple(sorted(attributes, key=self.domain.index))))

    def variance_of(self, threshold: Threshold) -> float:
        """Variance of the noise in the answer to one query, in rows; the same for all of a threshold."""
        for _, attributes in threshold.terms():
            self._require(attributes)
        return assembled_variance(self.domain, self._variances, threshold.terms(), total=self.total_variance)

    def variance_beside_total(self, threshold: Threshold) -> float:
        """The same without the noise of the number of rows."""
        return assembled_variance(self.domain, self._variances, threshold.terms())

    def part_of_total(self, threshold: Threshold) -> float:
        """What part of the number of rows, and of its noise, is in the answer to one query."""
        return sum(factor / self.domain.project(names).size for factor, names in threshold.terms())

    def knows(self, attributes: Attributes) -> bool:
        """Whether every residual of a marginal was measured."""
        return all(names in self._residuals for names in subsets(self.domain, attributes))

    def _require(self, attributes: Attributes) -> None:
        if not self.knows(attributes):
            raise BadWorkload(
                f"{' x '.join(attributes)} was not measured, and this mechanism has no model to answer it from. "
                "Ask for a marginal of the release's workload, or release with --mechanism auto."
            )


def subsets(domain: Domain, attributes: Attributes) -> Iterator[Attributes]:
    """Sets of attributes whose residuals make up a marginal: all but the empty one, without attributes of one value."""
    telling = [name for name in attributes if domain.size_of(name) > 1]
    for width in range(1, len(telling) + 1):
        yield from combinations(telling, width)


def assembled(
    domain: Domain, residuals: Mapping[Attributes, Floats], attributes: Attributes, *, total: float
) -> Floats:
    """A marginal of so many rows: its residuals, each spread evenly over the attributes that it lacks, added up."""
    sizes = domain.project(attributes).sizes
    table = np.full(sizes, total / prod(sizes))
    for names in subsets(domain, attributes):
        shape = [size if name in names else 1 for name, size in zip(attributes, sizes, strict=True)]
        lacking = prod(size for name, size in zip(attributes, sizes, strict=True) if name not in names)
        table += residuals[names].reshape(shape) / lacking
    return table.reshape(-1)


def assembled_variance(
    domain: Domain,
    variances: Mapping[Attributes, float],
    terms: Iterable[tuple[int, Attributes]],
    *,
    total: float = 0.0,
) -> float:
    """Variance of a sum of cells, one of each of some marginals times a factor, that agree in their values.

    They share the noise of their residuals, so what each residual has a part in is added up first.

    Args:
        domain: Public.
        variances: Of residuals.
        terms: Factors and marginals.
        total: Variance of the number of rows.
    """
    parts: dict[Attributes, float] = defaultdict(float)
    for factor, attributes in terms:
        for names in ((), *subsets(domain, attributes)):
            parts[names] += factor / prod(domain.size_of(name) for name in attributes if name not in names)
    known = {(): total, **variances}
    return sum(part**2 * known[names] * share(domain, names, names) for names, part in parts.items())


def share(domain: Domain, names: Attributes, attributes: Attributes) -> float:
    """How much of the variance of a residual each cell of a marginal gets.

    The projection leaves the product of (1 - 1/d) over the residual's attributes of it, and spreading over an attribute
    of d values divides by d^2.
    """
    sizes = ((name in names, domain.size_of(name)) for name in attributes)
    return prod(1 - 1 / size if inside else 1 / size**2 for inside, size in sizes)
