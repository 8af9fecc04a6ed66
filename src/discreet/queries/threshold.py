"""Thresholds: how many rows match at least r of k values. A k-way marginal is the case r = k.

References: Aydore et al. (2021), Definitions 2.2 and D.1; Avent and Korolova (2023), Definitions 2.4 and 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.errors import BadWorkload

Attributes = tuple[str, ...]
Lookup = Callable[[Attributes], Sparse]
"""All values of a marginal."""

ValueAt = Callable[[Attributes, NDArray[np.int64]], NDArray[np.int64]]
"""Values at some cells of a marginal."""

_BLOCK = 2**22
"""Most cells that are expanded at once when r < k."""

_WIDEST_PART = 2**27
"""Most cells that a proper sub-marginal of a threshold with r < k may have."""


@dataclass(frozen=True)
class Threshold:
    """All queries "at least `r` of these attributes have the given values", one for each choice of values.

    Example:
        >>> Threshold(("age", "sex"))
        Threshold(age x sex)
        >>> Threshold(("age", "sex", "race"), 2)
        Threshold(2 of age x sex x race)
    """

    attributes: Attributes
    r: int

    def __init__(self, attributes: Attributes | list[str], r: int | None = None) -> None:
        names = tuple(attributes)
        if not names:
            raise BadWorkload("A threshold needs at least one attribute.")
        if len(set(names)) != len(names):
            raise BadWorkload(f"A threshold's attributes must be distinct; got {' x '.join(names)}.")
        needed = len(names) if r is None else r
        if isinstance(needed, bool) or not isinstance(needed, int) or not 1 <= needed <= len(names):
            raise BadWorkload(f"r must be a whole number from 1 to {len(names)} for {' x '.join(names)}, not {r!r}.")
        object.__setattr__(self, "attributes", names)
        object.__setattr__(self, "r", needed)

    def __repr__(self) -> str:
        return f"Threshold({self})"

    def __str__(self) -> str:
        names = " x ".join(self.attributes)
        return names if self.is_marginal else f"{self.r} of {names}"

    @property
    def is_marginal(self) -> bool:
        """Whether every attribute must match."""
        return self.r == len(self.attributes)

    def cells(self, domain: Domain) -> int:
        """Number of queries."""
        return prod(domain.size_of(name) for name in self.attributes)

    def terms(self) -> list[tuple[int, Attributes]]:
        """The threshold as a fixed combination of marginals: (coefficient, attributes).

        With i attributes out of the k, i = r .. k, the coefficient is (-1)^(i-r) C(i-1, r-1): inclusion-exclusion
        (Definition 4.4). A marginal is its own single term.
        """
        return [
            ((-1) ** (size - self.r) * comb(size - 1, self.r - 1), subset)
            for size in range(self.r, len(self.attributes) + 1)
            for subset in combinations(self.attributes, size)
        ]


@dataclass(frozen=True)
class Query:
    """One query: a threshold and the cell that holds its values."""

    threshold: Threshold
    cell: int


def expand(threshold: Threshold, domain: Domain, lookup: Lookup) -> Iterator[Sparse]:
    """Values of all queries of a threshold, from those of its marginals, in stretches of cells.

    Linear in what is looked up: exact counts, public answers or their differences all expand the same way. A
    marginal comes as one sparse piece, whatever its size. For r < k the pieces are dense inside and bounded by a
    block; cells that stand in no piece are zero.
    """
    if threshold.is_marginal:
        yield lookup(threshold.attributes)
        return
    require_expandable(threshold, domain)
    shape = domain.project(threshold.attributes).sizes
    parts = [
        (coefficient, subset, _part(threshold, subset, domain, lookup)) for coefficient, subset in threshold.terms()
    ]
    # Cells are visited in order: all values of the first axes one by one, a stretch of the pivot, all of the rest.
    pivot = next(axis for axis in range(len(shape)) if prod(shape[axis + 1 :]) <= _BLOCK)
    stride = prod(shape[pivot + 1 :])
    step = max(1, _BLOCK // stride)
    for number, leading in enumerate(product(*(range(size) for size in shape[:pivot]))):
        for first in range(0, shape[pivot], step):
            last = min(shape[pivot], first + step)
            window = (*(slice(at, at + 1) for at in leading), slice(first, last))
            start = (number * shape[pivot] + first) * stride
            block = np.zeros((*([1] * pivot), last - first, *shape[pivot + 1 :]), dtype=np.int64)
            for coefficient, subset, values in parts:
                if isinstance(values, Sparse):
                    stop = start + block.size
                    inside = values.between(start, stop)
                    part = Sparse(inside.cells - start, inside.values).dense(block.size).reshape(block.shape)
                else:
                    part = _window(values, subset, threshold.attributes, window)
                block += coefficient * part
            yield Sparse.from_dense(block.reshape(-1), start=start)


def require_expandable(threshold: Threshold, domain: Domain) -> None:
    """Refuse a threshold with r < k whose sub-marginals are too large to hold."""
    for _, subset in threshold.terms():
        cells = prod(domain.project(subset).sizes)
        if subset != threshold.attributes and cells > _WIDEST_PART:
            raise BadWorkload(
                f"{threshold} needs the marginal {' x '.join(subset)} with {cells:,} cells, more than "
                f"{_WIDEST_PART:,}. Ask for fewer or coarser attributes."
            )


def at_cells(threshold: Threshold, cells: NDArray[np.int64], domain: Domain, value_at: ValueAt) -> NDArray[np.int64]:
    """Values of some queries of a threshold, from those of its marginals."""
    codes = domain.project(threshold.attributes).unravel(cells)
    column = {name: position for position, name in enumerate(threshold.attributes)}
    values = np.zeros(len(cells), dtype=np.int64)
    for coefficient, subset in threshold.terms():
        part = domain.project(subset).ravel(codes[:, [column[name] for name in subset]])
        values += coefficient * value_at(subset, part)
    return values


def _part(threshold: Threshold, subset: Attributes, domain: Domain, lookup: Lookup) -> Sparse | NDArray[np.int64]:
    """A sub-marginal, dense unless it is the threshold's whole marginal."""
    if subset == threshold.attributes:
        return lookup(subset)
    sizes = domain.project(subset).sizes
    return lookup(subset).dense(prod(sizes)).reshape(sizes)


def _window(
    values: NDArray[np.int64], subset: Attributes, attributes: Attributes, window: tuple[slice, ...]
) -> NDArray[np.int64]:
    """The part of a sub-marginal that meets a window on the first attributes, ready to broadcast."""
    cut = tuple(part for name, part in zip(attributes, window, strict=False) if name in subset)
    inside = values[cut]
    kept = iter(inside.shape)
    return inside.reshape([next(kept) if name in subset else 1 for name in attributes])
