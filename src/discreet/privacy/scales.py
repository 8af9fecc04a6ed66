"""Scales: how much noise a budget leads to, from public facts alone.

The gate draws noise of these scales and charges for them; before anything is charged, the same lines say whether such
noise can be drawn at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from discreet import _check
from discreet.data.domain import Domain
from discreet.errors import BadWorkload
from discreet.privacy import noise, rare, residual
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.noise import DiscreteGaussian
from discreet.privacy.shares import shares
from discreet.queries.threshold import Attributes

SURVIVORS = 2**12
"""Cells of a marginal that are listed though they hold nothing but noise, on average."""


def of_sparse(
    domain: Domain,
    neighbours: Neighbours,
    marginals: Sequence[Attributes],
    rho: Fraction,
    weights: Sequence[float] | None = None,
) -> list[tuple[DiscreteGaussian, int]]:
    """The noise on each marginal that lists only what stands out, and the least noisy count that it lists.

    Raises:
        BadWorkload: A marginal has too many cells.
        BadSetting: The noise is too wide to be drawn by jumps.
    """
    _check.positive("rho", rho)
    sizes = [domain.project(attributes).size for attributes in marginals]
    if max(sizes) > rare.MOST_DRAWS:
        raise BadWorkload(f"A marginal has {max(sizes):,} cells; noise can be drawn on {rare.MOST_DRAWS:,}.")
    cost = neighbours.marginal_squared
    found = []
    for size, share in zip(sizes, shares(weights, [cost] * len(sizes)), strict=True):
        added = DiscreteGaussian(cost / (2 * Fraction(rho) * share))
        least = noise.quantile(added, 1 - Fraction(SURVIVORS, max(size, 2 * SURVIVORS))) + 1
        noise.tail_bits(added, least)  # refuses a scale that cannot be drawn this way
        found.append((added, least))
    return found


def of_residuals(
    domain: Domain,
    neighbours: Neighbours,
    marginals: Sequence[Attributes],
    rho: Fraction,
    weights: Sequence[float] | None = None,
) -> tuple[list[DiscreteGaussian], Fraction]:
    """The noise on the residual of each marginal times its number of cells; and the sum of squared changes, each over
    its variance, that one person can bring about in all of them together: twice what they cost.

    Raises:
        BadWorkload: An attribute has one value.
        BadSetting: The noise is too wide for answers to hold it.
    """
    _check.positive("rho", rho)
    sizes = [domain.project(attributes).sizes for attributes in marginals]
    if not all(every and min(every) > 1 for every in sizes):
        raise BadWorkload("An attribute with one value has no residual: leave those out, and the empty marginal.")
    parts = dict(zip(marginals, shares(weights, [1] * len(sizes)), strict=True))
    changed = neighbours.residuals_squared(dict(zip(domain, domain.sizes, strict=True)), parts)
    precision = 2 * Fraction(rho) / changed
    variances = [1 / (precision * share) for share in parts.values()]
    for variance in variances:
        residual.require_drawable(variance)
    noises = [DiscreteGaussian(variance * prod(each) ** 2) for variance, each in zip(variances, sizes, strict=True)]
    return noises, precision * changed
