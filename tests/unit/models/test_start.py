from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.models import fit, start
from discreet.models.fit import FitSettings
from discreet.models.targets import Target, targets
from discreet.privacy.measurement import Measurement
from discreet.queries.threshold import Threshold

DOMAIN = Domain({"a": 5, "b": 4, "c": 6})
TOTAL, ROWS = 20_000, 2000
SETTINGS = FitSettings(start=0.0)


def table(together: float) -> NDArray[np.int64]:
    """Independent values, but a share of rows that has the last value of every attribute, which no other row has."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, [size - 1 for size in DOMAIN.sizes], size=(TOTAL, len(DOMAIN)))
    codes[: int(together * TOTAL)] = [size - 1 for size in DOMAIN.sizes]
    return codes


def measured(codes: NDArray[np.int64], sigma: float) -> list[Target]:
    """Single attributes and pairs, with noise."""
    found: list[Measurement] = []
    for names in [(name,) for name in DOMAIN] + list(combinations(DOMAIN, 2)):
        part = DOMAIN.project(names)
        counts = np.bincount(part.ravel(codes[:, [DOMAIN.index(name) for name in names]]), minlength=part.size)
        noise = np.random.default_rng(len(found)).normal(0, sigma, part.size).round().astype(np.int64)
        found.append(Measurement(Threshold(names), None, counts + noise, Fraction(sigma) ** 2))
    return targets(found, total=TOTAL, seed=3)


def begun(found: list[Target], settings: FitSettings = SETTINGS) -> NDArray[np.float32]:
    """Probabilities, bits x rows."""
    return np.asarray(fit.probabilities(DOMAIN, start.mixture(DOMAIN, ROWS, found, settings=settings, seed=0)))


def test_the_mean_over_rows_is_the_single_attribute() -> None:
    codes = table(0.1)
    rows = begun(measured(codes, 1.0))
    for at, (first, size) in enumerate(zip(DOMAIN.offsets, DOMAIN.sizes, strict=True)):
        truth = np.bincount(codes[:, at], minlength=size) / TOTAL
        assert np.abs(rows[first : first + size].mean(axis=1) - truth).max() < 0.03  # of 2,000 guesses


def test_values_that_occur_together_start_together() -> None:
    last = np.array(DOMAIN.offsets) + np.array(DOMAIN.sizes) - 1
    rows = begun(measured(table(0.03), 1.0))[last]
    assert 0.01 < np.mean(rows[0] * rows[1] * rows[2]) < 0.03  # of 0.03; the product has 0.00003
    held = rows.min(axis=0) > 0.5
    assert 0.015 < held.mean() < 0.045
    assert rows[:, ~held].max() < 0.01  # and the others do not hold them


def test_independent_values_start_near_their_product() -> None:
    rows = begun(measured(table(0.0), 1.0))
    pair = np.einsum("ir,jr->ij", rows[:5], rows[5:9]) / ROWS
    assert np.abs(pair - np.outer(rows[:5].mean(axis=1), rows[5:9].mean(axis=1))).max() < 0.005


def test_what_may_be_noise_is_no_dependence() -> None:
    """With much noise on pairs that values occur together is not seen, and rows start near the product."""
    last = np.array(DOMAIN.offsets) + np.array(DOMAIN.sizes) - 1
    rows = begun(measured(table(0.1), 700.0))[last]
    assert rows.max() < 0.5


def test_each_half_starts_from_the_numbers_that_it_is_fitted_to() -> None:
    found = measured(table(0.0), 1000.0)
    one, other = np.split(begun(found), 2, axis=1)
    single = found[0]
    shift = SETTINGS.thinning * single.z
    apart = one[:5].mean(axis=1) - other[:5].mean(axis=1)
    assert np.corrcoef(apart, shift)[0, 1] > 0.9
