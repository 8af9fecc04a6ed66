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
from discreet.models.targets import Target

STANDS_OUT = 5.0
"""Standard deviations by which a count exceeds zero."""


def guess(
    domain: Domain, targets: Sequence[Target], *, rows: int, shifts: Sequence[float], seed: int
) -> NDArray[np.int64]:
    """Codes, attributes x rows, or `UNKNOWN`; one equal group of rows for each shift, drawn from y + shift * z.

    Args:
        domain: Public.
        targets: Whole noisy marginals.
        rows: How many; a multiple of the number of shifts.
        shifts: What the fit adds to the measurements of each group, in units of the public noise.
        seed: Public; the fit's.
    """
    generator = np.random.default_rng(seed)
    codes: NDArray[np.int64] = np.full((len(domain), rows), UNKNOWN, np.int64)
    for target in _order(targets):
        names = target.attributes
        which = np.array([domain.index(name) for name in names])
        for group, shift in zip(np.split(np.arange(rows), len(shifts)), shifts, strict=True):
            seen = target.y + shift * target.z
            masses = np.where(seen > STANDS_OUT * target.sigma * (1 + shift**2) ** 0.5, seen, 0)
            at = np.ix_(which, group)
            codes[at] = _complete(codes[at], masses.reshape(domain.project(names).sizes), generator)
    return codes


def _order(targets: Sequence[Target]) -> list[Target]:
    """Marginals that each bring new attributes: most known ones first, then fewest cells."""
    order: list[Target] = []
    known: set[str] = set()
    left = list(targets)
    while left:
        first = min(left, key=lambda target: (-len(known.intersection(target.attributes)), target.y.size))
        order.append(first)
        known.update(first.attributes)
        left = [target for target in left if not known.issuperset(target.attributes)]
    return order


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
