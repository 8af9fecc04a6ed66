"""Where random bits come from, and decisions that are exact however few bits they use.

A real number U, uniform on [0, 1), is known only through its first bits. To decide whether U lies below a
probability p, p is enclosed between two integers over 2^bits; if the known bits of U do not decide, more bits are
drawn and p is enclosed more tightly. The decision has probability exactly p, free of floating-point error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Enclosure = Callable[[int], tuple[int, int]]
"""Given `bits`, integers (low, high) with low <= p * 2^bits <= high; their gap shrinks relative to 2^bits."""

WORD = 64


class Entropy(Protocol):
    """A source of uniform random 64-bit words."""

    @property
    def seed(self) -> int | None:
        """The seed, where there is one: a release must say so."""

    def words(self, count: int) -> Words:
        """Draw `count` independent words."""


class SystemEntropy:
    """The operating system's cryptographic generator: the default for anything that leaves the building."""

    seed: int | None = None

    def words(self, count: int) -> Words:
        """Draw `count` independent words."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededEntropy:
    """Repeatable words for tests and experiments. Whoever knows the seed can subtract the noise."""

    def __init__(self, seed: int) -> None:
        self.seed: int | None = seed
        self._generator = np.random.Philox(seed)

    def words(self, count: int) -> Words:
        """Draw `count` independent words."""
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)


def source(seed: int | None) -> Entropy:
    """The system's entropy, or a seeded stand-in."""
    return SystemEntropy() if seed is None else SeededEntropy(seed)


def below(entropy: Entropy, limit: int) -> int:
    """An integer uniform on 0 .. limit-1, of any length, by rejection."""
    words = -(-limit.bit_length() // WORD)
    surplus = words * WORD - limit.bit_length()
    while True:
        value = int.from_bytes(entropy.words(words).tobytes(), "little") >> surplus
        if value < limit:
            return value


def below_many(entropy: Entropy, limit: int, count: int) -> NDArray[np.int64]:
    """Integers uniform on 0 .. limit-1, for limits up to 2^62."""
    drawn = np.empty(count, dtype=np.int64)
    open_ = np.arange(count)
    shift = np.uint64(WORD - max(1, (limit - 1).bit_length()))
    while len(open_):
        drawn[open_] = (entropy.words(len(open_)) >> shift).astype(np.int64)
        open_ = open_[drawn[open_] >= limit]
    return drawn


def happens(entropy: Entropy, probability: Enclosure, *, known: int = 0, bits: int = 0) -> bool:
    """True with exactly the enclosed probability; the first bits of U may be known already."""
    while True:
        known = known << WORD | int(entropy.words(1)[0])
        bits += WORD
        low, high = probability(bits)
        if known < low:
            return True
        if known >= high:
            return False


def happen(entropy: Entropy, exponents: NDArray[np.float64], exact: Callable[[int], Fraction]) -> NDArray[np.bool_]:
    """Independent events with probabilities exp(-exponent), exactly.

    Args:
        entropy: Random bits.
        exponents: Non-negative, each within a relative 2^-44 of the exact one.
        exact: The exact exponent at a position, asked for only where floating point cannot decide.
    """
    words = entropy.words(len(exponents))
    chance = np.exp(-exponents) * 2.0**WORD
    margin = 2.0 ** (WORD - 36)  # far above the errors of the exponents, of exp and of rounding the words
    drawn = words.astype(np.float64)
    outcome = drawn < chance
    for at in np.flatnonzero(np.abs(drawn - chance) < margin):
        outcome[at] = happens(entropy, exp_minus(exact(int(at))), known=int(words[at]), bits=WORD)
    return outcome


def exp_minus(exponent: Fraction) -> Enclosure:
    """Enclosures of exp(-exponent) for a rational exponent >= 0.

    The exponent is halved until it is at most 1, the alternating Taylor series is summed in integers (two
    consecutive partial sums enclose the limit), and the result is squared back, rounding outwards each time.
    """
    halvings = max(0, (exponent.numerator // exponent.denominator).bit_length())
    small = exponent / 2**halvings

    def enclose(bits: int) -> tuple[int, int]:
        working = bits + 2 * halvings + 32
        low, high = _exp_minus_small(small, working)
        for _ in range(halvings):
            low = low * low >> working
            high = -(-high * high >> working)
        return low >> (working - bits), -(-high >> (working - bits))

    return enclose


def _exp_minus_small(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Enclosure of exp(-exponent) for 0 <= exponent <= 1, by the alternating series."""
    top, bottom = exponent.numerator, exponent.denominator
    low = high = term_low = term_high = 1 << bits
    order = 0
    while term_high > 1:
        order += 1
        term_low = term_low * top // (bottom * order)
        term_high = -(-term_high * top // (bottom * order))
        if order % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    # What the series leaves out is smaller than its last term, whichever its sign.
    return max(0, low - term_high), high + term_high
