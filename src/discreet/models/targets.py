"""Targets: whole noisy marginals as a fit sees them, with fresh public noise beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
