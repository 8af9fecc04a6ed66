"""Thresholds: how many rows match at least r of k values. A k-way marginal is the case r = k.

References: Aydore et al. (2021), Definitions 2.2 and D.1; Avent and Korolova (2023), Definitions 2.4 and 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.errors import BadWorkload

Attributes = tuple[str, ...]
ValueAt = Callable[[Attributes, NDArray[np.int64]], NDArray[np.int64]]
"""Values at some cells of a marginal."""


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
        if isinstance(attributes, str) or not all(isinstance(name, str) for name in names):
            raise BadWorkload(f"A threshold's attributes must be a list of names, not {attributes!r}.")
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

    def met(self, domain: Domain) -> int:
        """How many of the queries one row matches: one for a marginal, more where r < k.

        A row matches the query of every choice of values that agrees with it on at least r attributes: for each
        set U of at least r attributes that agree, the others disagree in (d_f - 1) ways each.
        """
        agreeing = [1]  # agreeing[i]: choices of values that agree with the row on exactly i attributes
        for name in self.attributes:
            differ = domain.size_of(name) - 1
            longer = [0, *agreeing]
            agreeing = [same + many * differ for same, many in zip(longer, [*agreeing, 0], strict=True)]
        return sum(agreeing[self.r :])

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


def at_cells(threshold: Threshold, cells: NDArray[np.int64], domain: Domain, value_at: ValueAt) -> NDArray[np.int64]:
    """Values of some queries of a threshold, from those of its marginals."""
    codes = domain.project(threshold.attributes).unravel(cells)
    column = {name: position for position, name in enumerate(threshold.attributes)}
    values = np.zeros(len(cells), dtype=np.int64)
    for coefficient, subset in threshold.terms():
        part = domain.project(subset).ravel(codes[:, [column[name] for name in subset]])
        values += coefficient * value_at(subset, part)
    return values
