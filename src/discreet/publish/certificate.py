"""The certificate: how wrong the published answers can be, measured privately.

With the answers fixed, M = the largest |count - answer * total| over the workload, rounded up, has sensitivity C.
The Curator releases M plus discrete Gaussian noise Z. Since Z is symmetric, M <= (M + Z) + q holds with probability
P(Z >= -q) = P(Z <= q), so q is the noise's quantile at the stated confidence.

Where the number of rows n is private, `total` is a noisy one, T. A query that holds for a share f of the rows has the
count f n, and f - answer = ((f n - answer * T) + f (T - n)) / T. So the error e is at most (M + f |T - n|) / T, where f
is at most one, and at most answer + e; half of the doubt goes to M and half to n.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

import numpy as np

from discreet.models.rounded import RoundedRows
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import NoisyMaximum
from discreet.privacy.noise import DiscreteGaussian, quantile
from discreet.queries.answers import GRID, Answers, Zeros, differences
from discreet.queries.workload import Workload

CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True)
class Certificate:
    """A bound on the largest error over the workload.

    Attributes:
        bound: The largest error is at most this fraction of the rows, with the stated confidence.
        rows_bound: The same for the synthetic rows; None where there are none.
        confidence: Probability, over the noise of the certificate and of the number of rows, that both hold.
        noisy_maximum: The measured largest difference in rows, noise included.
        sigma: Scale of that noise, in rows.
    """

    bound: float
    rows_bound: float | None
    confidence: float
    noisy_maximum: int
    sigma: float

    def to_json(self) -> dict[str, Any]:
        """For release.json."""
        return asdict(self)


def certify(
    curator: Curator, workload: Workload, *, answers: Answers, rows: Answers | None, rho: Fraction
) -> Certificate:
    """Spend `rho` on the largest error of fixed answers; the synthetic rows' own distance to them is free."""
    found = curator.worst(workload, against=answers, rho=rho)
    bound = upper_bound(found) / answers.total
    if curator.total_variance:
        surer = (1 + CONFIDENCE) / 2
        total_off = quantile(DiscreteGaussian(curator.total_variance), (1 + surer) / 2)
        highest = distance(workload, answers, Zeros(answers.domain, answers.total))
        bound = _of_true_number(upper_bound(found, surer), total_off, answers.total, highest)
    gap = None if rows is None else distance(workload, answers, rows)
    return Certificate(
        bound=bound,
        rows_bound=None if gap is None else bound + gap,
        confidence=float(CONFIDENCE),
        noisy_maximum=found.value,
        sigma=float(found.sigma_squared) ** 0.5,
    )


def upper_bound(found: NoisyMaximum, confidence: Fraction = CONFIDENCE) -> int:
    """In rows: at least the true maximum with this probability over the noise."""
    return max(0, found.value + quantile(DiscreteGaussian(found.sigma_squared), confidence))


def _of_true_number(worst: int, total_off: int, total: int, highest: float) -> float:
    """The bound on fractions of the true number of rows, which `total` misses by at most `total_off`.

    Args:
        worst: Bound on the largest difference, in rows.
        total_off: In rows.
        total: The noisy number.
        highest: The largest answer.
    """
    bound = (worst + total_off) / total
    return min(bound, (worst + highest * total_off) / (total - total_off)) if total > total_off else bound


def at_most(bound: float) -> str:
    """A bound as a percentage, rounded up to three digits."""
    if bound <= 0:
        return "0 %"
    unit = 10.0 ** (floor(log10(100 * bound)) - 2)
    return f"{ceil(100 * bound / unit - 1e-9) * unit:.3g} %"


def distance(workload: Workload, one: Answers, other: Answers) -> float:
    """Largest difference between two sets of public answers, as a fraction of the rows."""
    if isinstance(one, RoundedRows) and isinstance(other, RoundedRows) and one.codes is other.codes:
        return 0.0
    largest = 0
    for threshold in workload:
        for piece in differences(one, threshold, other.units):
            largest = max(largest, int(np.abs(piece.values).max(initial=0)))
    return largest / GRID / one.total
