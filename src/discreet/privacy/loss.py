"""Privacy loss: zero-concentrated DP inside, (epsilon, delta) outside, and the roads between them.

Every conversion rounds towards safety: an epsilon is rounded up and a rho that may be spent is rounded down, by
more than the floating-point error of the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet import _check
from discreet.errors import BadSetting

_SAFETY = 1e-10
"""Relative margin; the formulas below are accurate to about 1e-13."""

CONVERSIONS = ("tight", "closed-form")
"""`tight`: Canonne, Kamath, Steinke (2020). `closed-form`: Bun, Steinke (2016), as in the RAP papers."""


def epsilon_of(rho: float | Fraction, delta: float, *, conversion: str = "tight") -> float:
    """The epsilon that rho-zCDP guarantees at this delta.

    tight:        min over alpha > 1 of  alpha rho + log(1 / (alpha delta)) / (alpha - 1) + log(1 - 1/alpha)
    closed-form:  rho + 2 sqrt(rho log(1/delta))

    Both hold for every rho-zCDP mechanism; the first is never larger.

    Example:
        >>> round(epsilon_of(0.5, 1e-9), 2), round(epsilon_of(0.5, 1e-9, conversion="closed-form"), 2)
        (6.47, 6.94)
    """
    _check_delta(delta)
    _check.one_of("conversion", conversion, CONVERSIONS)
    rho = float(rho)
    if rho < 0 or not math.isfinite(rho):
        raise BadSetting(f"rho must be a finite number of at least 0, not {rho!r}.")
    if rho == 0:
        return 0.0
    closed = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    if conversion == "closed-form":
        return closed * (1 + _SAFETY)

    def at(log_order: float) -> float:  # alpha = 1 + exp(log_order)
        above = math.exp(log_order)
        spread = -(math.log(delta) + math.log1p(above)) / above
        return (1 + above) * rho + spread - math.log1p(1 / above)

    # The minimum lies near alpha - 1 = sqrt(log(1/delta) / rho); the bracket is generous and the curve unimodal.
    centre = 0.5 * math.log(math.log(1 / delta) / rho) if delta < 1 else 0.0
    order = _minimise(at, centre - 12, centre + 12)
    return max(0.0, min(closed, at(order)) * (1 + _SAFETY))


def rho_of(epsilon: float, delta: float, *, conversion: str = "tight") -> Fraction:
    """The largest rho that may be spent within (epsilon, delta), exact as a fraction and rounded down."""
    _check.positive("epsilon", epsilon)
    _check_delta(delta)
    low, high = 0.0, max(1.0, 2 * epsilon)
    while epsilon_of(high, delta, conversion=conversion) <= epsilon:
        high *= 2
    for _ in range(200):
        middle = 0.5 * (low + high)
        if epsilon_of(middle, delta, conversion=conversion) <= epsilon:
            low = middle
        else:
            high = middle
    return Fraction(low)


def rho_of_pure(epsilon: float | Fraction) -> Fraction:
    """epsilon-DP implies (epsilon^2 / 2)-zCDP."""
    _check.positive("epsilon", epsilon)
    return Fraction(epsilon) ** 2 / 2


def rho_of_selection(epsilon: float | Fraction) -> Fraction:
    """One draw of the exponential mechanism at epsilon is (epsilon^2 / 8)-zCDP (Cesar, Rogers 2021, Lemma 3.2)."""
    _check.positive("epsilon", epsilon)
    return Fraction(epsilon) ** 2 / 8


def root_below(square: Fraction) -> Fraction:
    """A rational just below the square root: scales that come from roots err on the private side."""
    digits = 2**40
    scaled = square * digits**2
    return Fraction(math.isqrt(scaled.numerator // scaled.denominator), digits)


def _check_delta(delta: float) -> None:
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0 < delta < 1:
        raise BadSetting(f"delta must lie strictly between 0 and 1, not {delta!r}.")


def _minimise(function: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search; any point it returns gives a valid bound, so accuracy is only about tightness."""
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(90):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
    return 0.5 * (low + high)
