"""Targets: whole noisy marginals as a fit sees them, with fresh public noise beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.models.residuals import assembled, assembled_variance
from discreet.privacy import residual
from discreet.privacy.measurement import Measurement
from discreet.queries.threshold import Attributes


@dataclass(frozen=True)
class Target:
    """One whole marginal.

    Attributes:
        attributes: Of the marginal.
        y: Noisy fractions of all its cells.
        z: Fresh public noise with the standard deviation of theirs.
        sigma: That standard deviation.
    """

    attributes: Attributes
    y: NDArray[np.float64]
    z: NDArray[np.float32]
    sigma: float


def merged(measurements: Sequence[Measurement]) -> dict[Attributes, tuple[NDArray[np.float64], float]]:
    """Noisy counts and their deviation by whole marginal: where one was measured again, the mean, weighed by precision.

    The squared loss of the mean is that of all its measurements, up to a constant.
    """
    sums: dict[Attributes, tuple[NDArray[np.float64], float]] = {}
    for found in measurements:
        precision = 1 / float(found.sigma_squared)
        before, known = sums.get(found.threshold.attributes, (np.zeros(len(found.counts)), 0.0))
        sums[found.threshold.attributes] = before + precision * found.counts, known + precision
    return {names: (weighed / precision, precision**-0.5) for names, (weighed, precision) in sums.items()}


def targets(measurements: Sequence[Measurement], *, total: int, seed: int) -> list[Target]:
    """Whole marginals as fractions of `total` rows.

    The noise `z` depends on the seed and a measurement's position only: a list that grows at its end keeps it.
    """
    made = []
    for position, found in enumerate(measurements):
        sigma = float(found.sigma_squared) ** 0.5 / total
        fresh = np.random.default_rng((seed, position)).standard_normal(found.counts.size, np.float32)
        made.append(Target(found.threshold.attributes, found.counts / total, np.float32(sigma) * fresh, sigma))
    return made


def joined(
    domain: Domain,
    measurements: Sequence[Measurement],
    marginals: Iterable[Attributes],
    *,
    total: int,
    seed: int,
    calm: Callable[[Target], Target],
) -> list[Target]:
    """Marginals put together from noisy residuals, as fractions of `total` rows.

    They share the noise of their residuals, and `z` is fresh noise that is shared in the same way, so but for what
    `calm` makes of single attributes it has the distribution of theirs over all marginals together.

    Args:
        domain: Public.
        measurements: Residuals.
        marginals: Smallest first; all their residuals were measured.
        total: Rows.
        seed: Public.
        calm: What is done to single attributes; larger marginals are put together with what comes of it.
    """
    y: dict[Attributes, NDArray[np.float64]] = {}
    z: dict[Attributes, NDArray[np.float64]] = {}
    variances: dict[Attributes, float] = {}
    for position, found in enumerate(measurements):
        names, cells = found.threshold.attributes, found.counts.size
        sizes = domain.project(names).sizes
        sigma = sqrt(found.sigma_squared) / cells / total
        fresh = np.random.default_rng((seed, position)).standard_normal(cells)
        y[names] = residual.projected(found.counts / cells / total, sizes)
        z[names] = residual.projected(sigma * fresh, sizes)
        variances[names] = sigma**2
    made = []
    for names in marginals:
        known, noise = (assembled(domain, parts, names, total=whole) for parts, whole in ((y, 1.0), (z, 0.0)))
        target = Target(
            names, known, noise.astype(np.float32), sqrt(assembled_variance(domain, variances, [(1, names)]))
        )
        if len(names) == 1:
            target = calm(target)
            y[names], z[names] = target.y - 1 / target.y.size, target.z.astype(np.float64)
        made.append(target)
    return made
