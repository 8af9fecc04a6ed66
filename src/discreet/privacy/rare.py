"""Noise on very many zeros of which only the large values are kept: drawn at a cost of what is kept, exactly.

A draw of noise is the inverse of its CDF at a real number U, uniform on [0, 1) and known by its bits (`noise`). It is
`least` or more only if U lies in the upper tail of probability p, and so only if the first j bits of U are ones, where
2^-j >= p. Those zeros, the candidates, are found by jumping: the number of zeros in front of the next candidate is
geometric. The bits of a candidate that are not known yet are drawn, its noise is looked up, and it is kept or not.

A jump is the largest g with V < (1 - 2^-j)^g for a uniform V. It is computed in floating point from 64 bits of V,
and where these or their rounding leave a doubt, by enclosures of the power and further bits: the distribution is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.entropy import WORD, Entropy
from discreet.privacy.noise import Noise, decide, tail_bits

Ints = NDArray[np.int64]

_MOST_BITS = 40
"""Jumps longer than 2^40 on average are never needed: candidates are then few enough to be looked at."""

MOST_DRAWS = 2**61
"""More could not be numbered without overflow on the way."""

_LONGEST = 2**62
"""Longer jumps lead past the last draw in any case."""


def exceeding(noise: Noise, zeros: int, least: int, entropy: Entropy) -> tuple[Ints, Ints]:
    """Which of many independent draws are at least `least`, by their numbers in ascending order, and their values.

    Args:
        noise: Its table must fit (see `noise.WIDEST_TABLE`).
        zeros: How many draws there are, at most `MOST_DRAWS`.
        least: Positive.
        entropy: Random bits.
    """
    bits = min(_MOST_BITS, tail_bits(noise, least))
    places = _candidates(zeros, bits, entropy)
    ones = np.uint64(((1 << bits) - 1) << (WORD - bits)) if bits else np.uint64(0)
    words = (entropy.words(len(places)) >> np.uint64(bits)) | ones
    values = decide(noise, words, entropy)
    kept = values >= least
    return places[kept], values[kept]


def _candidates(zeros: int, bits: int, entropy: Entropy) -> Ints:
    """Numbers of the draws whose first bits are all ones, ascending; each is one with probability 2^-bits."""
    if not bits:
        return np.arange(zeros)
    found: list[Ints] = []
    passed = 0
    while passed < zeros:
        expected = (zeros - passed) / 2**bits
        steps = np.minimum(_jumps(bits, int(expected + 4 * expected**0.5) + 8, entropy), zeros) + 1
        past = int(np.searchsorted(np.cumsum(steps, dtype=np.float64), 2.0 * zeros)) + 1  # sums beyond may overflow
        places = passed - 1 + np.cumsum(steps[:past])
        found.append(places[places < zeros])
        passed = int(places[-1]) + 1
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _jumps(bits: int, count: int, entropy: Entropy) -> Ints:
    """Independent geometric numbers: P(jump >= g) = (1 - 2^-bits)^g."""
    words = entropy.words(count)
    rate = -np.log1p(-(2.0**-bits))
    uniform = words.astype(np.float64) * 2.0**-WORD
    with np.errstate(divide="ignore"):
        ratio = -np.log(uniform) / rate
    # Errors of rounding and of the logarithm, and the bits of V that are not known yet.
    margin = 2.0**-48 * (ratio + 2.0**bits) + 2.0 ** (bits + 1) / np.maximum(words, 1)
    doubt = ~(np.abs(ratio - np.rint(ratio)) > margin)
    jumps: Ints = np.floor(np.minimum(ratio, 2.0**62)).astype(np.int64)
    for at in np.flatnonzero(doubt):
        jumps[at] = _exact_jump(bits, int(words[at]), entropy)
    return jumps


def _exact_jump(bits: int, word: int, entropy: Entropy) -> int:
    """The same from these first bits of V, and as many more as it takes."""
    known, length = word, WORD

    def reaches(jump: int) -> bool:
        """Whether V < (1 - 2^-bits)^jump."""
        nonlocal known, length
        while True:
            low, high = _power(bits, jump, length)
            if known < low or known >= high:
                return known < low
            known, length = known << WORD | int(entropy.words(1)[0]), length + WORD

    low, high = 0, 1
    while high < _LONGEST and reaches(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def _power(bits: int, exponent: int, length: int) -> tuple[int, int]:
    """Enclosure of (1 - 2^-bits)^exponent * 2^length, by squaring, rounded outwards each time."""
    working = length + 2 * exponent.bit_length() + bits + 32
    one = 1 << working
    base_low = base_high = one - (one >> bits)
    low = high = one
    while exponent:
        if exponent & 1:
            low, high = low * base_low >> working, -(-high * base_high >> working)
        base_low, base_high = base_low * base_low >> working, -(-base_high * base_high >> working)
        exponent >>= 1
    return low >> (working - length), -(-high >> (working - length))
