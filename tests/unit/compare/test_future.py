from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from tests.readable import small_table
from tests.tables import DOMAIN, brute_force, random_table

import discreet
from discreet.compare.future import errors_by_threshold, expected_error, future_errors
from discreet.confidence import mean_of, rate_at_most
from discreet.data.table import Table
from discreet.errors import BadWorkload
from discreet.queries import parse
from discreet.queries.answers import Zeros, fractions
from discreet.queries.distribution import ThresholdDistribution
from discreet.queries.features import geometric
from discreet.queries.history import History
from discreet.queries.threshold import Threshold

ROWS = 300
TABLE = cast(Table, random_table(ROWS))
ZEROS = Zeros(DOMAIN, ROWS)


def truth(threshold: Threshold) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """All answers; their distance from zero is the error of all zeros."""
    return brute_force(random_table(ROWS), threshold.attributes, threshold.r) / ROWS


def test_errors_of_each_threshold_agree_with_brute_force() -> None:
    workload = parse.workload("all:2+all:3@1", DOMAIN)
    found = errors_by_threshold(ZEROS, TABLE, workload)
    assert list(found) == list(workload)
    for threshold, error in found.items():
        assert error.largest == pytest.approx(truth(threshold).max())
        assert error.mean == pytest.approx(truth(threshold).mean())


def test_present_and_future_error_are_those_of_the_definitions() -> None:
    workload = parse.workload("age; sex", DOMAIN)
    known, new = Threshold(("age",)), Threshold(("age", "race"))
    future = History(DOMAIN, [known, new], [3, 2])
    found = future_errors(ZEROS, TABLE, workload, future, confidence=0.9)
    largest = {threshold: float(truth(threshold).max()) for threshold in (*workload, new)}
    assert found.present_error == pytest.approx(max(largest[threshold] for threshold in workload))
    assert found.present_mean == pytest.approx(np.mean([largest[threshold] for threshold in workload]))
    drawn = [largest[known]] * 3 + [largest[new]] * 2
    assert found.future_error.mean == pytest.approx(np.mean(drawn))
    assert found.future_error.high == pytest.approx(mean_of(drawn, confidence=0.9).high)
    assert found.future_mean_error.mean == pytest.approx((3 * truth(known).mean() + 2 * truth(new).mean()) / 5)
    assert found.unseen == pytest.approx(0.4)
    assert found.unseen_error is not None
    assert found.unseen_error.mean == pytest.approx(largest[new])
    assert found.largest_error == pytest.approx(max(drawn))
    assert found.above_at_most == rate_at_most(0, 5, confidence=0.9)


def test_a_future_within_the_workload_has_nothing_unseen() -> None:
    workload = parse.workload("all:2", DOMAIN)
    found = future_errors(ZEROS, TABLE, workload, History(DOMAIN, [workload.thresholds[0]]))
    assert found.unseen == 0
    assert found.unseen_error is None
    assert found.future_error.low is None
    assert found.future_error.mean <= found.present_error


def test_the_expected_error_leaves_nothing_to_chance() -> None:
    distribution = ThresholdDistribution(geometric(reversed(DOMAIN.attributes)), 2)
    by_hand = sum(chance * float(truth(threshold).max()) for threshold, chance in distribution.every())
    exact = expected_error(ZEROS, TABLE, distribution)
    assert exact == pytest.approx(by_hand)
    future = History(DOMAIN, distribution.draw(2000, 0))
    drawn = future_errors(ZEROS, TABLE, parse.workload("all:1", DOMAIN), future).future_error
    assert drawn.low is not None and drawn.high is not None
    assert drawn.low <= exact <= drawn.high
    assert drawn.high - drawn.low < 0.05


def test_releases_are_evaluated_on_future_queries() -> None:
    table = small_table(300)
    made = discreet.release(table, history=["age, sex"] * 5, epsilon=2.0, rows=20, seed=0)
    found = discreet.evaluate(
        made, table, future=["age=20-39, sex=Male", {"attributes": ["age", "income"], "count": 3}]
    )
    assert found["private"] is False
    assert found["future"]["present_error"] == pytest.approx(found["max_error"])
    assert found["future"]["unseen"] == 0.75
    assert found["future"]["future_error"]["draws"] == 4
    assert "future" not in discreet.evaluate(made, table)
    direct = discreet.release(table, history=["age, sex"], epsilon=2.0, mechanism="gaussian", seed=0)
    with pytest.raises(BadWorkload, match="was not measured"):
        discreet.evaluate(direct, table, future=["age, income"])


def test_truths_are_fractions_of_the_true_number_of_rows_where_answers_are_of_a_noisy_one() -> None:
    table = small_table(300)
    made = discreet.release(
        table, "age, sex", epsilon=0.5, delta=1e-6, neighbours="add-remove", mechanism="gaussian", seed=1
    )
    assert made.answers.total != 300
    codes = table.codes()[:, :2]
    truth = np.bincount(codes[:, 0] * 2 + codes[:, 1], minlength=10) / 300
    off = np.abs(fractions(made.answers, Threshold(("age", "sex"))) - truth)
    found = discreet.evaluate(made, table, future=["age, sex"])
    assert found["max_error"] == pytest.approx(off.max(), abs=1e-6)
    assert found["mean_error"] == pytest.approx(off.mean(), abs=1e-6)
    assert found["future"]["present_error"] == pytest.approx(off.max(), abs=1e-6)
    worst = found["worst"][0]
    assert worst["truth"] == pytest.approx(truth[off.argmax()])
    assert worst["error"] == pytest.approx(off.max(), abs=1e-6)
