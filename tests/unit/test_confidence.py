from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from scipy import stats

from discreet.confidence import Mean, mean_of, rate_at_most, student_quantile
from discreet.errors import BadSetting


def test_quantiles_agree_with_scipy() -> None:
    for freedom in (1, 2, 3, 7, 30, 999, 10**5, 10**7):
        for level in (0.75, 0.95, 0.975, 0.995):
            assert student_quantile(freedom, level) == pytest.approx(stats.t.ppf(level, freedom), rel=1e-6)


def test_the_interval_is_students() -> None:
    values = [0.1, 0.4, 0.2, 0.7]
    found = mean_of(values, confidence=0.9)
    low, high = stats.t.interval(0.9, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((0.35, low, high))
    assert found.draws == 4


def test_counts_stand_for_repetitions() -> None:
    once, counted = mean_of([0.1, 0.1, 0.1, 0.4]), mean_of([0.1, 0.4], [3, 1])
    assert (counted.mean, counted.low, counted.high) == pytest.approx((once.mean, once.low, once.high))
    assert counted.draws == 4
    assert mean_of([0, 0, 0, 1]).low == 0  # errors are not negative


def test_one_draw_has_no_interval_and_none_no_mean() -> None:
    assert mean_of([0.25]) == Mean(0.25, None, None, 0.95, 1)
    assert str(mean_of([0.25])) == "0.25000"
    assert str(mean_of([0.25, 0.25])) == "0.25000 (0.25000 to 0.25000)"
    with pytest.raises(BadSetting, match="at least one value"):
        mean_of([])


def test_a_rate_is_bounded_by_chernoff_which_is_exact_for_nothing_seen() -> None:
    for draws in (1, 10, 500, 10**9):
        assert rate_at_most(0, draws) == pytest.approx(1 - 0.05 ** (1 / draws))
    for seen, draws in ((1, 10), (20, 50), (499, 500)):
        exact = stats.beta.ppf(0.95, seen + 1, draws - seen)  # Clopper and Pearson's
        assert exact <= rate_at_most(seen, draws) <= exact + 0.08
    assert rate_at_most(5, 5) == rate_at_most(0, 0) == 1


@pytest.mark.parametrize("confidence", [0, 1, -1, nan, inf, True, "sure"])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(BadSetting, match="confidence must lie"):
        rate_at_most(1, 2, confidence=confidence)
    with pytest.raises(BadSetting, match="confidence must lie"):
        mean_of([1, 2], confidence=confidence)
