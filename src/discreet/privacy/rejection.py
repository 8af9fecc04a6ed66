"""Exact integer noise by rejection: for very wide noise, or very few draws.

Reference: Canonne, Kamath, Steinke (2020), "The Discrete Gaussian for Differential Privacy", Algorithms 1-3, with
their series of Bernoulli trials for exp(-x) replaced by lazily refined enclosures.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.entropy import Entropy, below, below_many, exp_minus, happen, happens

Ints = NDArray[np.int64]


def laplace(entropy: Entropy, scale: Fraction, count: int) -> Ints:
    """Draws with P(x) proportional to exp(-|x| / scale), one at a time: the scale may be any fraction."""
    return np.array([_laplace(entropy, scale) for _ in range(count)], dtype=np.int64)


def _laplace(entropy: Entropy, scale: Fraction) -> int:
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


def gaussian(entropy: Entropy, sigma_squared: Fraction, count: int) -> Ints:
    """Draws with P(x) proportional to exp(-x^2 / (2 sigma^2)), from wider Laplace noise; sigma below 2^50."""
    width = isqrt(sigma_squared.numerator // sigma_squared.denominator) + 1
    kept: list[Ints] = []
    missing = count
    while missing:
        candidate = _wide_laplace(entropy, width, 2 * missing + 16)
        size = np.abs(candidate)
        excess = (size - float(sigma_squared / width)) ** 2 / float(2 * sigma_squared)

        def exact(at: int, size: Ints = size) -> Fraction:
            return (int(size[at]) - sigma_squared / width) ** 2 / (2 * sigma_squared)

        accepted = candidate[happen(entropy, excess, exact)][:missing]
        kept.append(accepted)
        missing -= len(accepted)
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def _wide_laplace(entropy: Entropy, width: int, tries: int) -> Ints:
    """Draws with P(x) proportional to exp(-|x| / width), a random number of them: what is left of `tries`."""
    remainder = below_many(entropy, width, tries)
    kept = happen(entropy, remainder / width, lambda at: Fraction(int(remainder[at]), width))
    magnitude = remainder[kept]
    going = np.arange(len(magnitude))
    while len(going):  # each further turn has probability exp(-1)
        going = going[happen(entropy, np.ones(len(going)), lambda _: Fraction(1))]
        magnitude[going] += width
    negative = below_many(entropy, 2, len(magnitude)) == 1
    signed: Ints = np.where(negative, -magnitude, magnitude)
    kept_once: Ints = signed[~(negative & (magnitude == 0))]  # zero has one sign only
    return kept_once
