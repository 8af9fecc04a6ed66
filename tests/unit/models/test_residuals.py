"""Marginals put together from residuals: exact, consistent, and of the variance they state."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.tables import DOMAIN, brute_force, random_table

from discreet.data.domain import Domain
from discreet.errors import BadWorkload
from discreet.models.residuals import ResidualCounts, share, subsets
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.measurement import Measurement
from discreet.privacy.neighbours import Neighbours
from discreet.queries.answers import GRID
from discreet.queries.threshold import Threshold

NAMES = ("age", "sex", "race")
TABLE = random_table(300)


def answers(rho: Fraction, *, seed: int = 0) -> ResidualCounts:
    curator = Curator(TABLE, budget=Budget(rho), neighbours=Neighbours(), entropy=SeededEntropy(seed))
    every = list(subsets(DOMAIN, DOMAIN.attributes))
    return ResidualCounts(DOMAIN, curator.total, curator.measure_residuals(every, rho=rho))


def test_without_noise_the_counts_come_back() -> None:
    found = answers(Fraction(10**12))
    for names in [*subsets(DOMAIN, NAMES), ("one",), ("sex", "one"), DOMAIN.attributes]:
        exact = brute_force(TABLE, names, len(names))
        assert np.array_equal(found.units(names).dense(len(exact)), exact * GRID)


def test_marginals_agree_with_each_other_and_with_the_total() -> None:
    found = answers(Fraction(1, 50))
    whole = found.counts(NAMES).reshape(4, 2, 3)
    assert whole.min() < 0
    assert whole.sum() == pytest.approx(300)
    assert np.allclose(whole.sum(axis=1).reshape(-1), found.counts(("age", "race")))
    assert np.allclose(whole.sum(axis=(0, 2)), found.counts(("sex",)))
    units = found.units(NAMES).dense(24).reshape(4, 2, 3)
    assert np.abs(units.sum(axis=2).reshape(-1) - found.units(("age", "sex")).dense(8)).max() <= 2


def test_the_stated_variance_is_that_of_the_noise() -> None:
    runs = [answers(Fraction(1, 10), seed=seed) for seed in range(1000)]
    for names in [("sex",), ("age", "race"), NAMES]:
        exact = brute_force(TABLE, names, len(names))
        seen = np.mean([(run.counts(names) - exact) ** 2 for run in runs], axis=0)
        assert np.allclose(seen, runs[0].variance(names), rtol=0.22)  # five deviations of a mean of 1000 squares


def test_noise_in_the_number_of_rows_is_spread_over_the_cells() -> None:
    known = ResidualCounts(DOMAIN, 300, [], total_variance=8.0)
    assert known.variance(("one",)) == 8.0
    flat = [Measurement(Threshold(("age",)), None, np.zeros(4, dtype=np.int64), Fraction(16), residual=True)]
    assert ResidualCounts(DOMAIN, 300, flat, total_variance=8.0).variance(("age",)) == 3 / 4 + 8 / 16
    assert share(Domain({"a": 4, "b": 5}), ("a",), ("a", "b")) == pytest.approx(3 / 4 / 25)


def test_what_was_not_measured_is_refused() -> None:
    flat = [Measurement(Threshold(("age",)), None, np.zeros(4, dtype=np.int64), Fraction(16), residual=True)]
    known = ResidualCounts(DOMAIN, 300, flat)
    assert known.counts(("age", "one")).tolist() == [75.0] * 4
    for ask in (known.units, known.variance):
        with pytest.raises(BadWorkload, match="age x sex was not measured"):
            ask(("age", "sex"))
