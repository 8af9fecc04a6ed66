"""Integer noise that is exact and fast: the discrete Gaussian and the discrete Laplace.

Exact means: the distribution of the output is the stated one, not a floating-point approximation, so the privacy
proofs hold to the letter. Fast means: one table look-up per draw.

The table holds floor(2^64 * CDF(x)), each entry certified by interval arithmetic on integers. A draw is a uniform
64-bit word, the first bits of a real number U; where the word decides on which side of every CDF value U lies, the
outcome is certain. A word that equals an entry (the first is 0 and the last is all ones, so this includes both tails)
is extended by further bits against a table of higher precision: about one draw in 10^15. When the noise is very
wide, or only a few draws are needed, building a table does not pay and exact rejection sampling is used instead.

Reference: Canonne, Kamath, Steinke (2020), "The Discrete Gaussian for Differential Privacy".
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.errors import BadSetting, Bug
from discreet.privacy import rejection
from discreet.privacy.entropy import WORD, Entropy, exp_minus

Ints = NDArray[np.int64]

WIDEST = 2**50
"""Largest standard deviation of noise: beyond it, sums of 64-bit integers could overflow."""

WIDEST_TABLE = 2**15
"""Standard deviation above which a table would be too large."""

_CHUNK = 2**20
_GUIDE_BITS = 16


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers; sigma^2 is rational."""

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        _check.positive("sigma_squared", self.sigma_squared)
        if self.sigma_squared > WIDEST**2:
            raise BadSetting("This step would need noise with a standard deviation above 2^50 rows: spend more on it.")

    @property
    def spread(self) -> float:
        """Standard deviation, or a hair above it."""
        return math.sqrt(self.sigma_squared)

    @property
    def first_exponent(self) -> Fraction:
        """-log(P(1) / P(0))."""
        return 1 / (2 * self.sigma_squared)

    growth = 2
    """Each further step multiplies the ratio P(x+1) / P(x) by (P(1) / P(0))^growth."""

    def reject(self, count: int, entropy: Entropy) -> Ints:
        """Draws by rejection."""
        return rejection.gaussian(entropy, self.sigma_squared, count)

    def tail_bound(self, probability: Fraction) -> float:
        """A point that is exceeded with at most the remaining probability."""
        return self.spread * max(0.0, NormalDist().inv_cdf(float(probability)))


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(x) proportional to exp(-|x| / scale) on the integers; the scale is rational.

    Its variance is that of two geometric variables, close to 2 * scale^2 when the scale is large.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        _check.positive("scale", self.scale)

    @property
    def spread(self) -> float:
        """Standard deviation."""
        half = float(0.5 / self.scale)
        return 1 / (math.sqrt(2) * math.sinh(half)) if half < 700 else 0.0

    @property
    def first_exponent(self) -> Fraction:
        """-log(P(1) / P(0))."""
        return 1 / self.scale

    growth = 0
    """The ratio P(x+1) / P(x) stays the same."""

    def reject(self, count: int, entropy: Entropy) -> Ints:
        """Draws by rejection."""
        return rejection.laplace(entropy, self.scale, count)

    def tail_bound(self, probability: Fraction) -> float:
        """A point that is exceeded with at most the remaining probability."""
        return float(self.scale) * -math.log(float(1 - probability))


Noise = DiscreteGaussian | DiscreteLaplace


def tabled(spread: float, size: int) -> bool:
    """Whether so many draws of noise this wide are looked up in a table; building one pays only then."""
    return spread <= WIDEST_TABLE and size >= spread


def draw(noise: Noise, size: int, entropy: Entropy) -> Ints:
    """Independent draws; exact for every size and scale."""
    if not tabled(noise.spread, size):
        return noise.reject(size, entropy)
    table = _Table.of(noise)
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        stop = min(size, start + _CHUNK)
        out[start:stop] = table.look_up(entropy.words(stop - start), entropy)
    return out


def decide(noise: Noise, words: NDArray[np.uint64], entropy: Entropy) -> Ints:
    """Draws of which the first 64 bits of U are given; further bits come from the entropy where they are needed."""
    return _Table.of(noise).look_up(words, entropy)


def tail_bits(noise: Noise, least: int) -> int:
    """The most bits j with 2^-j >= P(X >= least), certified: a draw reaches `least` only if U begins with j ones."""
    if noise.spread > WIDEST_TABLE:
        raise BadSetting(f"Noise this wide (deviation {noise.spread:,.0f} rows) has no table: spend more on it.")
    word = 2 * WORD
    first, floors = _cumulative(noise, word)
    if least <= first:
        return 0
    below = floors[least - 1 - first] if least - 1 - first < len(floors) else (1 << word) - 1
    return word - ((1 << word) - below).bit_length()  # P(X >= least) < 2^word - floor, over 2^word


def quantile(noise: Noise, probability: Fraction) -> int:
    """The least x with P(X <= x) >= probability, certified; for very wide noise at most a hair above it.

    Above the widest table, P(X >= x + 1) <= P(N(0, sigma^2) >= x) bounds a discrete Gaussian by a continuous one
    (Canonne, Kamath, Steinke 2020, Proposition 25), and a discrete Laplace's tail is at most exp(-x / scale).
    """
    if not 0 < probability < 1:
        raise Bug(f"A quantile needs a probability inside (0, 1), not {probability}.")
    if noise.spread > WIDEST_TABLE:
        return math.ceil(noise.tail_bound(probability) * (1 + 2.0**-30)) + 1
    word = 2 * WORD
    first, floors = _cumulative(noise, word)
    # floor(2^word * CDF) >= ceil(2^word * probability) implies CDF >= probability.
    return first + bisect_right(floors, math.ceil(probability * 2**word) - 1)


class _Table:
    """The inverse of a CDF at 64 bits, with a guide that answers most words at once."""

    def __init__(self, noise: Noise, *, word: int = WORD) -> None:
        self._noise = noise
        self._word = word
        self._first, floors = _cumulative(noise, word)
        self._floors = np.array(floors, dtype=np.uint64)
        guide_bits = min(word, _GUIDE_BITS)
        self._shift = np.uint64(word - guide_bits)
        starts = np.arange(2**guide_bits, dtype=np.uint64) << self._shift
        ends = starts | np.uint64((1 << (word - guide_bits)) - 1)
        low = np.searchsorted(self._floors, starts, side="left")
        certain = low == np.searchsorted(self._floors, ends, side="right")
        self._guide = np.where(certain, low, -1).astype(np.int32)

    @staticmethod
    @lru_cache(maxsize=16)
    def of(noise: Noise) -> _Table:
        """Build once, use often."""
        return _Table(noise)

    def look_up(self, words: NDArray[np.uint64], entropy: Entropy) -> Ints:
        """One outcome for each word; words that decide nothing take more bits."""
        outcome: Ints = self._guide[words >> self._shift].astype(np.int64)
        open_ = np.flatnonzero(outcome < 0)
        rest = words[open_]
        position = np.searchsorted(self._floors, rest, side="right")
        outcome[open_] = position
        outcome += self._first
        for index in open_[self._floors[position - 1] == rest]:
            outcome[index] = _extend(self._noise, int(words[index]), self._word, entropy)
        return outcome


def _extend(noise: Noise, known: int, bits: int, entropy: Entropy) -> int:
    """Decide a draw whose first bits were not enough."""
    while True:
        known = known << WORD | int(entropy.words(1)[0])
        bits += WORD
        first, floors = _cumulative(noise, bits)
        position = bisect_right(floors, known)
        if floors[position - 1] != known:
            return first + position


@lru_cache(maxsize=8)
def _cumulative(noise: Noise, word: int) -> tuple[int, list[int]]:
    """floor(2^word * CDF(x)) for x = first, first + 1, ...: from the last zero to the first that is all ones."""
    precision = 2 * word + 96
    while True:
        floors = _certified_floors(noise, word, precision)
        if floors is not None:
            return floors
        precision *= 2


def _certified_floors(noise: Noise, word: int, precision: int) -> tuple[int, list[int]] | None:
    """One attempt at `_cumulative`; None if the enclosures at this precision leave an entry open."""
    low, high = zip(*_weights(noise, precision), strict=True)
    # Beyond the last weight the ratios only fall, so what remains is at most a geometric series.
    gap = (1 << precision) - -(-(high[-1] << precision) // low[-2])
    if gap <= 0:
        return None
    tail = (high[-1] << precision) // gap + 1
    total_low = 2 * sum(low) - low[0]
    total_high = 2 * (sum(high) + tail) - high[0]
    reach = len(low) - 1
    sum_low, sum_high = 0, tail
    largest = (1 << word) - 1  # no CDF value reaches 1
    floors: list[int] = []
    for x in range(-reach, reach + 1):
        sum_low += low[abs(x)]
        sum_high += high[abs(x)]
        floor = (sum_low << word) // total_high
        if floor != min(largest, (sum_high << word) // total_low):
            return None
        if floor == 0:
            floors.clear()
            first = x
        floors.append(floor)
        if floor == largest:
            break
    return first, floors


def _weights(noise: Noise, precision: int) -> Iterator[tuple[int, int]]:
    """Enclosures of P(x)/P(0) * 2^precision for x = 0, 1, ... until they vanish at this precision."""
    base_low, base_high = exp_minus(noise.first_exponent)(precision)
    step_low = step_high = 1 << precision
    for _ in range(noise.growth):
        step_low = step_low * base_low >> precision
        step_high = -(-step_high * base_high >> precision)
    weight_low = weight_high = 1 << precision
    ratio_low, ratio_high = base_low, base_high
    while True:
        yield weight_low, weight_high
        if weight_high < 1 << (precision // 4):
            return
        weight_low = weight_low * ratio_low >> precision
        weight_high = -(-weight_high * ratio_high >> precision)
        ratio_low = ratio_low * step_low >> precision
        ratio_high = -(-ratio_high * step_high >> precision)
