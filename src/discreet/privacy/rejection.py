"""Exact integer noise by rejection, one draw at a time: for very wide noise, or very few draws.

Reference: Canonne, Kamath, Steinke (2020), "The Discrete Gaussian for Differential Privacy", Algorithms 1-3, with
their series of Bernoulli trials for exp(-x) replaced by a lazily refined enclosure.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from discreet.privacy.entropy import Entropy, below, exp_minus, happens


def laplace(entropy: Entropy, scale: Fraction) -> int:
    """One draw with P(x) proportional to exp(-|x| / scale)."""
    top, bottom = scale.numerator, scale.denominator
    while True:
        remainder = below(entropy, top)
        if not happens(entropy, exp_minus(Fraction(remainder, top))):
            continue
        turns = 0
        while happens(entropy, exp_minus(Fraction(1))):
            turns += 1
        magnitude = (remainder + top * turns) // bottom
        negative = below(entropy, 2) == 1
        if negative and magnitude == 0:
            continue
        return -magnitude if negative else magnitude


def gaussian(entropy: Entropy, sigma_squared: Fraction) -> int:
    """One draw with P(x) proportional to exp(-x^2 / (2 sigma^2))."""
    width = isqrt(sigma_squared.numerator // sigma_squared.denominator) + 1
    while True:
        candidate = laplace(entropy, Fraction(width))
        excess = (abs(candidate) - sigma_squared / width) ** 2 / (2 * sigma_squared)
        if happens(entropy, exp_minus(excess)):
            return candidate
