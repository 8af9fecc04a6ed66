"""Error bars: for every answer an interval, and what that rests on. Measured and certified ones hold at 95 %.

- *measured*: from the noise alone. The noisy count of the query (or of all cells that add up to it) misses the truth by
  the noise, whose distribution is known exactly. The interval lies around that count, not around the published
  answer, which a model may have moved. It is cut off at 0 and 1, unless all of it lies beyond, as the noise of one in
  forty counts of nothing has it. Where the number of rows is private, its noise is part of the interval too.
- *certified*: the published answer, give or take the certificate's bound. It holds for every query of the workload at
  once.
- *estimated*: how far the mechanism erred on answers of this size when it was run on its own synthetic rows
  (`discreet.publish.bootstrap`). Nothing is guaranteed: where the model is wrong about the table, so is this.
- *unknown*: none of these; anything between 0 and 1. So are all queries with an attribute that was neither asked for
  nor measured: what rows show there is not from the table.

Of the first two the certified one is given where it is clearly the narrower: by three deviations of the certificate's
own noise. (Were it given wherever it is narrower, it would be given above all where its noise made it too narrow: when
`experiment intervals` was run with that rule, such held 68 to 93 times in a hundred.) All of this is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.measurement import Measurement
from discreet.privacy.noise import DiscreteGaussian, quantile
from discreet.publish.certificate import CONFIDENCE
from discreet.queries.answers import GRID
from discreet.queries.threshold import Attributes, Threshold, at_cells

if TYPE_CHECKING:
    from discreet.publish.release import Release

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KINDS = ("measured", "certified", "estimated", "unknown")
_MEASURED, _CERTIFIED, _ESTIMATED, _UNKNOWN = range(len(KINDS))
_CLEARLY = 3.0
"""Deviations of the certificate's noise by which its interval must be the narrower."""

_TWO_SIDED = 1.959964
"""Standard deviations of a normal distribution on either side that hold 95 % of it."""


@dataclass(frozen=True)
class Interval:
    """One answer with its error bar, as fractions of the rows."""

    estimate: float
    low: float
    high: float
    kind: str

    def __str__(self) -> str:
        return f"{self.estimate:.6f} ({self.low:.6f} to {self.high:.6f}, {self.kind})"


@dataclass(frozen=True)
class Bars:
    """Error bars of some queries: `low` and `high`, and the number of each one's kind in KINDS."""

    low: Floats
    high: Floats
    kind: NDArray[np.int8]


class Intervals:
    """Error bars of a release, threshold by threshold."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._total = max(1, release.answers.total)
        self._doubt = _reach(release.total_variance) / self._total if release.total_variance else 0.0
        self._whole: dict[Attributes, Measurement] = {}
        self._singles: dict[Threshold, list[Measurement]] = {}
        for found in release.measurements:
            if found.residual:
                continue
            if found.cells is not None and found.least is None:
                self._singles.setdefault(found.threshold, []).append(found)
                continue
            known = self._whole.get(found.threshold.attributes)
            if known is None or found.sigma_squared <= known.sigma_squared:  # of equals the last, chosen without it
                self._whole[found.threshold.attributes] = found
        self._asked = set(release.workload)
        self._unseen = set(release.unseen)

    def of(self, threshold: Threshold, cells: Ints, estimates: Floats) -> Bars:
        """Error bars of some queries of a threshold.

        Args:
            threshold: Which queries.
            cells: Which of them.
            estimates: Their published answers, as fractions.
        """
        count = len(cells)
        bars = Bars(np.zeros(count), np.ones(count), np.full(count, _UNKNOWN, np.int8))
        spread = self._release.spread
        if spread is not None and self._unseen.isdisjoint(threshold.attributes):
            reach = spread.reach(threshold, estimates)
            bars = Bars(estimates - reach, estimates + reach, np.full(count, _ESTIMATED, np.int8))
        if self._release.certificate is not None and threshold in self._asked:
            bound, doubt = self._release.certificate.bound, _CLEARLY * self._release.certificate.sigma / self._total
            bars = Bars(estimates - bound, estimates + bound, np.full(count, _CERTIFIED, np.int8))
            narrow = np.full(count, bound + doubt)
        else:
            narrow = np.full(count, np.inf)  # what is measured is better than what is guessed
        for which, low, high in self._measured(threshold, cells):
            taken = which[high - low <= 2 * narrow[which]]
            kept = np.isin(which, taken)
            bars.low[taken], bars.high[taken], bars.kind[taken] = low[kept], high[kept], _MEASURED
        apart = (bars.high < 0) | (bars.low > 1)
        low, high = (np.where(apart, side, np.clip(side, 0, 1)) for side in (bars.low, bars.high))
        return Bars(low, high, bars.kind)

    def needs_estimate(self, threshold: Threshold, cells: Ints) -> bool:
        """Whether some of these queries have nothing but an estimate to go by, and one can be had."""
        certified = self._release.certificate is not None and threshold in self._asked
        if certified or not self._unseen.isdisjoint(threshold.attributes):
            return False
        known = np.zeros(len(cells), dtype=bool)
        for which, _, _ in self._measured(threshold, cells):
            known[which] = True
        return not bool(known.all())

    def _measured(self, threshold: Threshold, cells: Ints) -> list[tuple[Ints, Floats, Floats]]:
        """Intervals from the noise alone: which of the cells, low and high."""
        everything = np.arange(len(cells))
        found: list[tuple[Ints, Floats, Floats]] = []
        terms, joined = threshold.terms(), self._release.residuals
        if joined is not None:
            if all(joined.knows(subset) for _, subset in terms):
                known = at_cells(threshold, cells, self._release.domain, joined.at) / GRID
                own, part = joined.variance_beside_total(threshold), joined.part_of_total(threshold)
                found.append((everything, *self._around(known, _TWO_SIDED * sqrt(own), part)))
        elif threshold.is_marginal:
            covering = self._narrowest(threshold.attributes)
            if covering is not None:
                found.append((everything, *self._summed(covering, threshold.attributes, cells)))
        elif all(subset in self._whole and self._whole[subset].cells is None for _, subset in terms):
            variance = sum(factor**2 * self._whole[subset].sigma_squared for factor, subset in terms)
            counts = at_cells(
                threshold, cells, self._release.domain, lambda subset, part: self._whole[subset].counts[part]
            )
            found.append((everything, *self._around(counts, ceil(_TWO_SIDED * sqrt(variance)))))
        for single in self._singles.get(threshold, []):
            assert single.cells is not None
            which = np.flatnonzero(np.isin(cells, single.cells))
            counts = single.counts[np.searchsorted(single.cells, cells[which])]
            found.append((which, *self._around(counts, _reach(single.sigma_squared))))
        return found

    def _narrowest(self, attributes: Attributes) -> Measurement | None:
        """The whole marginal whose cells add up to these with the least variance."""
        domain, wanted = self._release.domain, set(attributes)
        covering = [
            found
            for names, found in self._whole.items()
            if names == attributes or (wanted <= set(names) and found.cells is None)
        ]
        return min(
            covering,
            key=lambda found: domain.project(found.threshold.attributes).size * found.sigma_squared,
            default=None,
        )

    def _summed(self, found: Measurement, attributes: Attributes, cells: Ints) -> tuple[Floats, Floats]:
        """Around the sums of measured cells; where small counts were not listed, below what would have been."""
        names = found.threshold.attributes
        domain = self._release.domain
        if found.least is not None:
            assert found.cells is not None
            reach = _reach(found.sigma_squared)
            listed = np.isin(cells, found.cells)
            counts = np.zeros(len(cells), dtype=np.int64)
            counts[listed] = found.counts[np.searchsorted(found.cells, cells[listed])]
            low, high = self._around(counts, reach)
            _, unlisted = self._around(np.array([found.least - 1]), reach)
            return np.where(listed, low, 0.0), np.where(listed, high, unlisted)
        if names == attributes:
            return self._around(found.counts[cells], _reach(found.sigma_squared))
        shape = domain.project(names).sizes
        away = tuple(axis for axis, name in enumerate(names) if name not in attributes)
        counts = found.counts.reshape(shape).sum(axis=away).reshape(-1)[cells]
        added = domain.project(names).size // domain.project(attributes).size
        return self._around(counts, ceil(_TWO_SIDED * sqrt(added * found.sigma_squared)))

    def _around(self, counts: Ints | Floats, reach: float, part: float = 0.0) -> tuple[Floats, Floats]:
        """Fractions of the rows that noisy counts stand for.

        A count c of a share f of all n rows misses f n by noise of its own, and the number of rows T that it is divided
        by, where that is private, misses n by Z. So c - f T is noise minus f Z, whatever f may be, and those f belong
        to the interval for which it is no larger than it is in 95 of 100 cases: |c - f T| <= sqrt(reach^2 + (part -
        f)^2 q^2), a quadratic inequality (Fieller 1954). Where q >= T there may be no rows at all, so that any
        fraction will do.

        Args:
            counts: Noisy.
            reach: Their own noise is at most this far from zero in 95 of 100 cases.
            part: What part of the number of rows, and of its noise, each count has in it.
        """
        if self._doubt >= 1:
            return np.zeros(len(counts)), np.ones(len(counts))
        doubt, scaled, known = self._doubt**2, counts / self._total, 1 - self._doubt**2
        wide = np.sqrt(doubt * (scaled - part) ** 2 + (reach / self._total) ** 2 * known)
        return (scaled - doubt * part - wide) / known, (scaled - doubt * part + wide) / known


@lru_cache(maxsize=4096)
def _reach(sigma_squared: Fraction) -> int:
    """The noise is at most this far from zero with the stated confidence."""
    return quantile(DiscreteGaussian(sigma_squared), (1 + CONFIDENCE) / 2)
