"""Smoothing: what neighbouring values of an attribute say about each other.

Attributes with many values are nearly always numbers or dates in bins, and then neighbouring bins hold about as many
rows. At small budgets that is worth more than anything else that can be done: on ADULT at epsilon 0.1 the noise on a
bin of `age` is as large as the bin, and a product of exact single attributes would have a lower total variation than
any published mechanism reaches. Smoothing comes in twice.

A noisy marginal of one attribute is *calmed* before rows are fitted to it: it is cut into Haar wavelets at every shift
(so that it matters nothing where bins begin), and the coefficients of each scale are shrunk to their posterior mean
under a prior, some zero and the others normal, whose two numbers are the likeliest ones. Where values have no order,
neighbours differ as much as any two values, the prior finds no zeros, and nothing is smoothed. And the steps of a fit
are *smoothed* along attributes of many values, so that what neighbouring values share is learned first, and differences
between them only if the fit goes on for long. All of this is post-processing.

References: Coifman, Donoho (1995), "Translation-invariant de-noising"; Johnstone, Silverman (2005), "Empirical Bayes
selection of wavelet thresholds".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.models.targets import Target

Floats = NDArray[np.float64]

STANDS_OUT = 2.5
"""Standard deviations by which a value that is kept differs from what is smoothed."""

MANY, MOST = 20, 2**11
"""Steps are smoothed along attributes with at least so many values, which are taken to be in order, and at most so
many: what is passed on is a matrix of values by values."""

_WIDTHS = (1, 2, 4, 8, 16)
"""Widths of the smoothing of steps, in values."""

_ROUGH = 1 / 3
"""Roughness of values from which on neighbours say nothing about each other."""

_SLABS = 2.0 ** np.array([*range(6), *range(6, 40, 4)])
"""Candidates for the prior's deviation, in deviations of the noise."""

_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0])
"""Candidates for the prior's share of coefficients that are not zero."""

_MOST_TRUSTED = 3.0
"""A calmed marginal weighs at most so many times what the noisy one does."""


def calm(target: Target, shifts: Sequence[float]) -> Target:
    """A marginal of one attribute without what is likely to be noise, as a distribution.

    Each half of the rows is to be fitted to y + shift * z and judged by what it has not seen, so each of these is
    calmed by itself; the result stands for both again.

    Args:
        target: Of one attribute.
        shifts: Of the two halves; the second is minus the first.
    """
    first, second = (
        on_simplex(shrunk(target.y + shift * target.z, target.sigma * sqrt(1 + shift**2))) for shift in shifts
    )
    z = (first - second) / (shifts[0] - shifts[1])
    gained = target.sigma**2 / max(float(np.mean(z**2)), 1e-30)  # how much of the noise is gone
    sigma = target.sigma / sqrt(min(max(gained, 1.0), _MOST_TRUSTED))
    return replace(target, y=(first + second) / 2, z=z.astype(np.float32), sigma=sigma)


def shrunk(y: Floats, sigma: float) -> Floats:
    """Noisy values in order, smoothed as far as they allow.

    A value that stands out of what is smoothed stays as it is, and the others are smoothed without it: many tables have
    round numbers that far more rows hold than their neighbours.
    """
    apart = np.zeros(len(y), dtype=bool)
    places = np.arange(len(y))
    while True:
        others = np.interp(places, places[~apart], y[~apart])
        smooth = _haar(others, sigma)
        further = ~apart & (np.abs(y - smooth) > STANDS_OUT * sigma)
        if not further.any():
            return np.where(apart, y, smooth)
        apart |= further
        if apart.all():
            return y.copy()


def _haar(y: Floats, sigma: float) -> Floats:
    """Values in order, with Haar wavelets shrunk at every shift; mirrored at both ends."""
    smooth = _scale(np.concatenate([y, y[::-1]]), sigma, 1)
    both: Floats = (smooth[: len(y)] + smooth[len(y) :][::-1]) / 2
    return both


def _scale(values: Floats, sigma: float, step: int) -> Floats:
    """Averages of stretches of `step` values at every shift (in a circle, with noise `sigma`), smoothed."""
    if 2 * step >= len(values):
        return values
    following = np.roll(values, -step)
    halved = sigma / sqrt(2)  # of sums and differences of two independent ones, over two
    mean = _scale((values + following) / 2, halved, 2 * step)
    difference = _posterior_mean((values - following) / 2, halved)
    smooth: Floats = (mean + difference + np.roll(mean - difference, step)) / 2
    return smooth


def _posterior_mean(noisy: Floats, sigma: float) -> Floats:
    """Coefficients given their noisy values, under the likeliest prior: zero, or normal."""
    squared = -0.5 * (noisy / sigma) ** 2
    wide = 1 + _SLABS[:, None] ** 2
    slab = squared / wide - 0.5 * np.log(wide)  # logarithms, up to a constant
    with np.errstate(divide="ignore"):
        empty, full = np.log(1 - _SHARES)[:, None, None], np.log(_SHARES)[:, None, None]
    mixed = np.logaddexp(empty + squared, full + slab)
    likelihood = mixed.sum(axis=2)
    share, deviation = np.unravel_index(int(np.argmax(likelihood)), likelihood.shape)
    if likelihood[share, deviation] < squared.sum() + 1:
        return np.zeros_like(noisy)
    present = np.exp(full[share, 0, 0] + slab[deviation] - mixed[share, deviation])
    mean: Floats = noisy * present * (1 - 1 / wide[deviation])
    return mean


def on_simplex(values: Floats) -> Floats:
    """The closest distribution: what remains above a level that makes it add up to one."""
    falling = np.sort(values)[::-1]
    levels = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    level = levels[np.flatnonzero(falling > levels)[-1]]
    closest: Floats = np.maximum(values - level, 0)
    return closest


def kernel(y: Floats, sigma: float, share: float) -> NDArray[np.float32] | None:
    """A matrix that passes `share` of a step on to neighbouring values, as far as those hold about as many rows.

    None where that leaves every step as it is: no order is found, or there are too few or too many values for it.

    Values that clearly have more than both neighbours together stand apart (round numbers, or what is missing) and keep
    their steps to themselves. Of the others the rough ones are smoothed less: `share` is multiplied by 1 - 3 R, R being
    the sum of distances to the mean of both neighbours over the sum of values. For values in order R is 0.05 to 0.15,
    for values without order 0.3 and more (ADULT, LOANS), and then nothing is passed on.

    What is passed on adds up, so that steps which neighbours share are many times as large. Not so what all smoothed
    values share, against those apart: nothing is stiffer, and where one apart holds a third of the table (five hundred
    first names, and all others), rows would swing between the two.

    Args:
        y: Calmed shares of an attribute's values.
        sigma: Their standard deviation.
        share: Of a step.
    """
    if not MANY <= len(y) <= MOST:
        return None
    apart = y > _beside(y) * 2 + STANDS_OUT * sigma
    places = np.arange(len(y))
    rest = np.interp(places, places[~apart], y[~apart])
    rough = np.abs(rest - _beside(rest))[~apart].sum() / max(float(rest[~apart].sum()), 1e-12)
    share *= max(0.0, 1 - rough / _ROUGH)
    if not share:
        return None
    distance = places[:, None] - places
    widths = [width for width in _WIDTHS if 2 * width < len(y)]
    spread = np.zeros(distance.shape)
    for width in widths:
        spread += np.exp(-0.5 * (distance / width) ** 2)
    others = np.diag(~apart) - np.outer(~apart, ~apart) / max(1, int((~apart).sum()))  # without what they share
    passed_on = share * others @ (spread / len(widths) - np.eye(len(y))) @ others
    return np.asarray(np.eye(len(y)) + passed_on, np.float32)


def _beside(y: Floats) -> Floats:
    """The mean of both neighbours of each value; the first and the last have one."""
    return np.asarray((np.r_[y[1], y[:-1]] + np.r_[y[1:], y[-2]]) / 2)
