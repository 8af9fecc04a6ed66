"""A first guess: which values rows lean to before they are fitted, drawn through the noisy marginals.

Where many attributes depend on a hidden cause (say, they are all missing together), rows that all start alike sit at a
saddle: each marginal asks for a pair of rare values that no row has, and gradients are products of small numbers. On
LOANS one row in fifteen is empty, and fits from even rows never found that cell. So every row first draws a
combination of values: a cell of one marginal in proportion to those counts that stand out of the noise, then what is
unknown of the next marginal given what is known, and so on, smallest marginals first. What does not stand out is not
guessed. Each half of the rows draws from the numbers it is fitted to, so that the other half's numbers can still
judge it (see `discreet.models.fit`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import UNKNOWN, Domain
from discreet.models import tiles
from discreet.privacy.measurement import Measurement

STANDS_OUT = 5.0
"""Standard deviations by which a count exceeds zero."""


def guess(
    domain: Domain, measurements: Sequence[Measurement], *, rows: int, shifts: Sequence[float], total: int, seed: int
) -> NDArray[np.int64]:
    """Codes, attributes x rows, or `UNKNOWN`; one equal group of rows for each shift, drawn from y + shift * z.

    Args:
        domain: Public.
        measurements: Whole noisy marginals.
        rows: How many; a multiple of the number of shifts.
        shifts: What the fit adds to the measurements of each group, in units of the public noise.
        total: Rows that fractions are taken of.
        seed: Public; the fit's.
    """
    generator = np.random.default_rng(seed)
    codes: NDArray[np.int64] = np.full((len(domain), rows), UNKNOWN, np.int64)
    for position in _order(measurements):
        found = measurements[position]
        names = found.threshold.attributes
        which = np.array([domain.index(name) for name in names])
        noise = tiles.public_noise(found, total=total, seed=seed, position=position)
        deviation = float(found.sigma_squared) ** 0.5 / total
        for group, shift in zip(np.split(np.arange(rows), len(shifts)), shifts, strict=True):
            seen = found.counts / total + shift * noise
            masses = np.where(seen > STANDS_OUT * deviation * (1 + shift**2) ** 0.5, seen, 0)
            at = np.ix_(which, group)
            codes[at] = _complete(codes[at], masses.reshape(domain.project(names).sizes), generator)
    return codes


def _order(measurements: Sequence[Measurement]) -> list[int]:
    """Positions of marginals that each bring new attributes: most known ones first, then fewest cells."""
    order: list[int] = []
    known: set[str] = set()
    left = list(range(len(measurements)))
    while left:
        at = min(left, key=lambda at: (-len(known & set(_names(measurements[at]))), measurements[at].counts.size))
        order.append(at)
        known.update(_names(measurements[at]))
        left = [at for at in left if not known.issuperset(_names(measurements[at]))]
    return order


def _names(found: Measurement) -> tuple[str, ...]:
    return found.threshold.attributes


def _complete(
    codes: NDArray[np.int64], masses: NDArray[np.float64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Codes (axes x rows), unknown ones drawn given the others in proportion to masses, where there are any."""
    done = codes.copy()
    kinds, kind_of = np.unique(codes, axis=1, return_inverse=True)
    for number, kind in enumerate(kinds.T):
        missing = np.flatnonzero(kind == UNKNOWN)
        mass = masses[tuple(slice(None) if code == UNKNOWN else int(code) for code in kind)]
        if len(missing) and mass.sum() > 0:
            rows = np.flatnonzero(kind_of.reshape(-1) == number)
            cells = generator.choice(mass.size, len(rows), p=mass.reshape(-1) / mass.sum())
            done[np.ix_(missing, rows)] = np.unravel_index(cells, mass.shape)
    return done
