"""The certificate covers the true largest error as often as it says, and a wrong one would be noticed."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from tests.readable import small_table
from tests.tables import DOMAIN, brute_force, random_table

from discreet.data.table import read
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import Entropy, SeededEntropy
from discreet.privacy.measurement import NoisyMaximum
from discreet.privacy.neighbours import Neighbours
from discreet.publish.certificate import _of_true_number, upper_bound
from discreet.publish.make import release
from discreet.queries import parse
from discreet.queries.answers import Zeros

REPLAYS = 10_000
WORKLOAD = parse.workload("all:2", DOMAIN)


def coverage(confidence: Fraction, entropy: Entropy) -> float:
    """Share of replays of the certificate's step that cover the truth."""
    table = random_table(400)
    truth = max(int(brute_force(table, t.attributes, t.r).max()) for t in WORKLOAD)
    rho = Fraction(1, 2 * 20**2)  # noise of 20 rows
    curator = Curator(table, budget=Budget(rho * REPLAYS), neighbours=Neighbours(), entropy=entropy)
    zeros = Zeros(DOMAIN, 400)
    bounds = [upper_bound(curator.worst(WORKLOAD, against=zeros, rho=rho), confidence) for _ in range(REPLAYS)]
    return float(np.mean(np.array(bounds) >= truth))


def test_the_step_covers_the_truth_between_94_5_and_97_percent() -> None:
    assert 0.945 <= coverage(Fraction(95, 100), SeededEntropy(0)) <= 0.97


def test_a_certificate_that_is_too_short_would_be_noticed() -> None:
    assert coverage(Fraction(93, 100), SeededEntropy(0)) < 0.945


def test_whole_runs_are_covered() -> None:
    from discreet.compare.errors import errors

    table = small_table(2000)
    covered = 0
    for seed in range(100):
        made = release(table, "all:2", epsilon=1.0, rows=200, seed=seed)
        assert made.certificate is not None
        found = errors(made.answers, table, made.workload, made.schema)
        covered += found.max_error <= made.certificate.bound
    assert covered >= 89


def test_it_covers_true_fractions_where_the_number_of_rows_is_noisy() -> None:
    """A count as a share of a noisy number of rows is off by that noise, above all if the share is large."""
    rows, large = 2000, 1900
    table = read(pa.table({"a": [0] * large + [1] * (rows - large)}), schema={"a": 2})
    covered, as_if_known = 0, 0
    for seed in range(200):
        made = release(table, "a", epsilon=1.0, delta=1e-6, neighbours="add-remove", mechanism="gaussian", seed=seed)
        assert made.certificate is not None
        off = max(abs(made.answer(f"a={value}") - count / rows) for value, count in ((0, large), (1, rows - large)))  # type: ignore[operator]
        found = NoisyMaximum(made.certificate.noisy_maximum, Fraction(made.certificate.sigma) ** 2)
        covered += off <= made.certificate.bound
        as_if_known += off <= upper_bound(found) / made.answers.total
    assert covered >= 186
    assert as_if_known < 170, "a bound that leaves the noise of the number out must be noticed"


def test_small_answers_are_touched_less_by_the_number_of_rows() -> None:
    assert _of_true_number(50, 100, 2000, 1.0) == pytest.approx(150 / 2000)
    assert _of_true_number(50, 100, 2000, 0.01) == pytest.approx(51 / 1900)
    assert _of_true_number(50, 100, 80, 0.01) == pytest.approx(150 / 80)
