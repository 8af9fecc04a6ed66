"""Confidence intervals: for the mean of independent draws, and for how often something not seen will be.

For the mean error of future queries the interval is Student's t: errors of thresholds are many, small and of one
scale, and an interval that holds for all bounded variables (Hoeffding, empirical Bernstein, betting) is at least
about 3 / draws wide, since something that happens once in so many draws may have stayed unseen. For usual numbers
of draws that is many times the error itself. So what may have stayed unseen is bounded on its own, exactly, by
`rate_at_most`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import log, sqrt
from typing import Any

import numpy as np

from discreet.errors import BadSetting

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Mean:
    """A mean with its confidence interval.

    Attributes:
        mean: Of the draws.
        low: End of the interval; None for a single draw, which says nothing about the spread.
        high: The other end.
        confidence: Probability that the interval holds the true mean, if the draws are independent and their mean
            about normal.
        draws: How many.
    """

    mean: float
    low: float | None
    high: float | None
    confidence: float
    draws: int

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean:.5f}"
        return f"{self.mean:.5f} ({self.low:.5f} to {self.high:.5f})"


def mean_of(values: Sequence[float], counts: Sequence[int] | None = None, *, confidence: float = CONFIDENCE) -> Mean:
    """Student's interval for the mean of independent, non-negative draws.

    Over several runs of a mechanism, give one value for each run (its mean): draws within a run share that run's
    noise, so pooling them would make the interval too narrow.

    Args:
        values: At least one.
        counts: How often each was drawn; once by default.
        confidence: Strictly between 0 and 1.
    """
    _confident(confidence)
    many = np.ones(len(values)) if counts is None else np.array(counts, dtype=np.float64)
    draws = int(many.sum())
    if not draws:
        raise BadSetting("A mean needs at least one value.")
    errors = np.array(values, dtype=np.float64)
    mean = float(many @ errors) / draws
    if draws == 1:
        return Mean(mean, None, None, confidence, 1)
    spread = sqrt(float(many @ np.square(errors - mean)) / (draws - 1) / draws)
    reach = student_quantile(draws - 1, (1 + confidence) / 2) * spread
    return Mean(mean, max(0.0, mean - reach), mean + reach, confidence, draws)


def rate_at_most(seen: int, draws: int, *, confidence: float = CONFIDENCE) -> float:
    """Upper bound on the probability of something that happened in `seen` of independent `draws`.

    Chernoff's: the largest p with draws * KL(seen / draws, p) <= log(1 / (1 - confidence)). It holds for every
    number of draws, and for `seen` = 0 it is the best there is: p with (1 - p)^draws = 1 - confidence.
    """
    _confident(confidence)
    if seen >= draws:
        return 1.0
    rate, allowed = seen / draws, log(1 / (1 - confidence)) / draws
    low, high = rate, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < 1 and _divergence(rate, middle) <= allowed else (low, middle)
    return high


@lru_cache(maxsize=1024)
def student_quantile(freedom: int, level: float) -> float:
    """Quantile of Student's t at a level above 1/2, to about six digits.

    With t = sqrt(freedom) tan(x), P(|T| < t) is the integral of cos^(freedom - 1) from 0 to x over that to pi/2.
    """
    x = np.linspace(0, min(np.pi / 2, 40 / sqrt(freedom)), 50_001)
    heights = np.cos(x) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum(heights[1:] + heights[:-1])])
    return sqrt(freedom) * float(np.tan(np.interp(2 * level - 1, area / area[-1], x)))


def _divergence(q: float, p: float) -> float:
    """KL(q, p) of two coins."""
    return (q * log(q / p) if q else 0.0) + (1 - q) * log((1 - q) / (1 - p))


def _confident(confidence: float) -> None:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise BadSetting(f"confidence must lie strictly between 0 and 1, not {confidence!r}.")
