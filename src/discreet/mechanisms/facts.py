"""Facts and costs: what a forecast may know, and what it says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from discreet.data.domain import Domain
from discreet.privacy.neighbours import Neighbours
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload


@dataclass(frozen=True)
class Facts:
    """One run that may be made; everything in it is public.

    Attributes:
        workload: What is asked.
        rows: Of the table, or a guess where that is private.
        neighbours: Whose data is protected.
        rho: What may be spent on answers.
        settings: The mechanism's own settings.
        certified: Whether the largest error is measured at the end.
        public: Rows of the public table that the mechanism starts from; 0 if none.
    """

    workload: Workload
    rows: int
    neighbours: Neighbours
    rho: Fraction
    settings: Any
    certified: bool = False
    public: int = 0

    @property
    def domain(self) -> Domain:
        """Public."""
        return self.workload.domain

    @property
    def deviation(self) -> float:
        """Of the noise on a marginal that gets the whole budget, in rows."""
        return self.neighbours.marginal_deviation(self.rho)

    def shapes(self, marginals: Iterable[Attributes]) -> list[tuple[int, ...]]:
        """Sizes of the attributes of some marginals."""
        known = dict(zip(self.domain, self.domain.sizes, strict=True))
        return [tuple(known[name] for name in names) for names in marginals]

    def sizes(self, marginals: Iterable[Attributes]) -> list[int]:
        """Cells of some marginals."""
        return [prod(shape) for shape in self.shapes(marginals)]


@dataclass(frozen=True)
class Cost:
    """What a run is expected to take.

    Attributes:
        cells: Numbers that are measured.
        bytes: Peak memory of the process.
        seconds: On the machine that the constants of `discreet.mechanisms.forecast` were measured on.
        largest_error: Expected, as a fraction of the rows; noise alone may exceed 1.
    """

    cells: int
    bytes: float
    seconds: float
    largest_error: float
