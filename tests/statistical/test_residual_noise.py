"""Noise on residuals has the scale that is charged, and marginals put together from them the one that is stated.

The right scale is rejected with probability at most 1e-6; one that is off by 3 % is rejected.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.tables import CodedTable, brute_force, random_table

from discreet.data.domain import Domain
from discreet.models.residuals import ResidualCounts, subsets
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.measurement import Measurement
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.residual import scaled

DOMAIN = Domain({"a": 40, "b": 50, "c": 30})
NAMES = DOMAIN.attributes
RHO = Fraction(1, 10)
BOTH = [Neighbours("replace-one", 2), Neighbours("add-remove", 2)]


@pytest.fixture(scope="module", params=BOTH, ids=lambda some: some.relation)
def measured(request: pytest.FixtureRequest) -> tuple[CodedTable, list[Measurement]]:
    table = random_table(100, domain=DOMAIN)
    curator = Curator(table, budget=Budget(2 * RHO), neighbours=request.param, entropy=SeededEntropy(1))
    if not curator.neighbours.total_is_public:
        curator.measure_total(rho=RHO)
    return table, curator.measure_residuals(list(subsets(DOMAIN, NAMES)), rho=RHO)


def fits(squares: float, free: int) -> bool:
    """Whether a sum of squares of so many standard normal numbers is plausible."""
    return bool(stats.chi2.isf(1 - 5e-7, free) < squares < stats.chi2.isf(5e-7, free))


def noise_in(table: CodedTable, found: Measurement) -> NDArray[np.int64]:
    names = found.threshold.attributes
    return found.counts - scaled(brute_force(table, names, len(names)), DOMAIN.project(names).sizes)


def test_noise_on_residuals_has_its_scale_and_no_other(measured: tuple[CodedTable, list[Measurement]]) -> None:
    table, found = measured
    widest = found[-1]
    drawn = noise_in(table, widest) / float(widest.sigma_squared) ** 0.5
    assert len(drawn) == 60_000
    for scale, right in ((1.0, True), (0.97, False), (1.03, False)):
        assert fits(float((drawn / scale) @ (drawn / scale)), len(drawn)) == right
    assert stats.kstest(drawn, "norm").pvalue > 1e-6
    for each in found:
        assert fits(float((noise_in(table, each).astype(float) ** 2).sum() / each.sigma_squared), len(each.counts))


def test_the_noise_that_was_drawn_is_worth_the_charge(measured: tuple[CodedTable, list[Measurement]]) -> None:
    """What the two rows that differ most could learn, from scales estimated of the noise itself, against rho."""
    table, found = measured
    sizes = dict(zip(NAMES, DOMAIN.sizes, strict=True))
    stated = {each.threshold.attributes: len(each.counts) ** 2 / each.sigma_squared for each in found}
    (neighbours,) = [some for some in BOTH if some.residuals_squared(sizes, stated) / 2 == RHO]
    estimated = {
        each.threshold.attributes: Fraction(len(each.counts) ** 2 / float((noise_in(table, each) ** 2.0).mean()))
        for each in found
    }
    spread = 5 * (2 / 40) ** 0.5  # of the smallest residual, which has 30 entries at least, and a small share
    assert float(neighbours.residuals_squared(sizes, estimated) / 2 / RHO) == pytest.approx(1, rel=spread / 3)


@pytest.mark.parametrize("factor", [0.97, 1.0, 1.03])
def test_the_noise_in_a_marginal_has_the_stated_variance(
    measured: tuple[CodedTable, list[Measurement]], factor: float
) -> None:
    """Cells are nearly independent: the residual of the whole marginal has most of the dimensions."""
    table, found = measured
    answers = ResidualCounts(DOMAIN, table.rows(), found)
    errors = answers.counts(NAMES) - brute_force(table, NAMES, 3)
    squares = float(errors @ errors) / (answers.variance(NAMES) * factor**2)
    assert fits(squares, 60_000) == (factor == 1.0)
