"""Smoothing: what is smooth becomes smoother, what is not stays, and distributions stay distributions."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.models import smooth
from discreet.models.targets import Target

SIGMA = 0.004
SHIFTS = (0.5, -0.5)


def bell(size: int = 80) -> np.ndarray:
    values = np.exp(-0.5 * ((np.arange(size) - 30) / 12) ** 2)
    scaled: np.ndarray = values / values.sum()
    return scaled


def noisy(values: np.ndarray, seed: int) -> np.ndarray:
    return values + SIGMA * np.random.default_rng(seed).standard_normal(len(values))


def off(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.sqrt(np.mean((one - other) ** 2)))


def test_a_smooth_marginal_loses_most_of_its_noise() -> None:
    errors = [off(smooth.shrunk(noisy(bell(), seed), SIGMA), bell()) for seed in range(20)]
    assert np.mean(errors) < SIGMA / 2


def test_values_without_order_keep_what_they_have() -> None:
    values = np.random.default_rng(1).permutation(np.linspace(0, 0.1, 20))
    errors = [off(smooth.shrunk(noisy(values, seed), SIGMA), values) for seed in range(20)]
    assert np.mean(errors) < 1.2 * SIGMA


def test_round_numbers_that_many_rows_hold_stand_out() -> None:
    values = bell()
    values[[40, 60]] += 0.05
    found = np.mean([smooth.shrunk(noisy(values, seed), SIGMA) for seed in range(20)], axis=0)
    assert found[[40, 60]] == pytest.approx(values[[40, 60]], abs=SIGMA)
    assert found[[41, 61]] == pytest.approx(values[[41, 61]], abs=SIGMA / 2)


def test_without_noise_nothing_changes() -> None:
    values = np.random.default_rng(0).dirichlet(np.ones(30))
    assert np.allclose(smooth.shrunk(values, 1e-9), values, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_values(size: int) -> None:
    assert smooth.shrunk(np.full(size, 1 / size), 0.01) == pytest.approx(np.full(size, 1 / size))


def test_each_half_is_calmed_by_itself_and_both_are_distributions() -> None:
    fresh = np.random.default_rng(5).standard_normal(80).astype(np.float32) * np.float32(SIGMA)
    target = Target(("age",), noisy(bell(), 4), fresh, SIGMA)
    calmed = smooth.calm(target, SHIFTS)
    for shift in SHIFTS:
        half = calmed.y + shift * calmed.z
        assert half.min() >= -1e-9
        assert half.sum() == pytest.approx(1, abs=1e-5)
        alone = smooth.on_simplex(smooth.shrunk(target.y + shift * target.z, SIGMA * np.sqrt(1.25)))
        assert np.allclose(half, alone, atol=1e-6)
    assert target.sigma / 2 < calmed.sigma < target.sigma
    assert off(calmed.y, bell()) < off(target.y, bell()) / 2


def test_the_closest_distribution() -> None:
    assert smooth.on_simplex(np.array([0.6, 0.5, -0.1])) == pytest.approx([0.55, 0.45, 0])
    given = np.random.default_rng(0).dirichlet(np.ones(7))
    assert smooth.on_simplex(given) == pytest.approx(given)


HILL = np.exp(-0.5 * ((np.arange(30) - 12) / 6) ** 2) / 15


def passing_on(y: np.ndarray, share: float = 0.7) -> np.ndarray:
    found = smooth.kernel(y, 0.001, share)
    assert found is not None
    return found


def test_a_kernel_passes_on_its_share() -> None:
    assert smooth.kernel(HILL, 0.001, 0.0) is None
    found, half = (passing_on(HILL, share) for share in (0.7, 0.35))
    assert np.allclose(found, found.T)
    assert np.all(np.linalg.eigvalsh(found) > 0), "a step along it must go down"
    assert np.allclose(found - np.eye(30), 2 * (half - np.eye(30)), atol=1e-6)
    assert found[10, 11] - found[10, 25] > 0.4
    wave = np.cos(np.arange(30) * np.pi / 15)
    assert wave @ found @ wave > 3 * wave @ wave, "what neighbours share is learned first"


def test_values_that_stand_apart_keep_their_steps() -> None:
    """The last value, as where some are missing, and a round number; their neighbours go on without them."""
    spiky = HILL.copy()
    spiky[[10, 29]] = 0.3
    found = passing_on(spiky)
    for value in (10, 29):
        assert np.array_equal(found[value], np.eye(30)[value])
        assert np.array_equal(found[:, value], np.eye(30)[value])
    assert found[9, 11] - found[9, 25] > 0.3
    assert np.all(np.linalg.eigvalsh(found) > 0)
    others = np.ones(30)
    others[[10, 29]] = 0
    assert np.allclose(found @ others, others, atol=1e-5), "what all others share, against these, is not enlarged"


def test_values_without_order_are_not_smoothed() -> None:
    unordered = np.random.default_rng(0).permutation(np.arange(1, 41) / 820)
    assert smooth.kernel(unordered, 0.0001, 0.7) is None


@pytest.mark.parametrize(("size", "smoothed"), [(19, False), (20, True), (2**11, True), (2**11 + 1, False)])
def test_steps_are_smoothed_where_a_matrix_of_values_by_values_is_small(size: int, smoothed: bool) -> None:
    assert (smooth.kernel(bell(size), 1e-4, 0.7) is not None) == smoothed
