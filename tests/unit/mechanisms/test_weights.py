"""MWEM and PEP against direct optimisation of what they are said to minimise (Liu et al. 2021, A.3, C.1 and C.2)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

from discreet.data.domain import Domain
from discreet.data.table import read
from discreet.errors import BadSetting, BadWorkload, Bug
from discreet.mechanisms import weights
from discreet.mechanisms.weights import MwemSettings, PepSettings
from discreet.models.support import Distribution, Single, Support
from discreet.models.weighted import WHOLE, WeightedRows
from discreet.privacy.measurement import Measurement
from discreet.progress import SILENT
from discreet.publish.make import release
from discreet.publish.release import Release
from discreet.queries.answers import GRID
from discreet.queries.threshold import Threshold
from discreet.queries.workload import Workload

DOMAIN = Domain({"a": 3, "b": 2, "c": 2})
SUPPORT = Support(DOMAIN)
EVEN = Distribution.even(SUPPORT)
TOTAL = 1000


def single(names: tuple[str, ...], cell: int, count: int, r: int | None = None) -> Measurement:
    return Measurement(Threshold(names, r), np.array([cell]), np.array([count]), Fraction(1))


def whole(names: tuple[str, ...], counts: list[int]) -> Measurement:
    return Measurement(Threshold(names), None, np.array(counts), Fraction(1))


ASKED = [single(("a", "b"), 3, 400), single(("b", "c"), 0, 250), single(("a",), 2, 120), single(("a", "b"), 3, 380)]


def indicator(found: Measurement) -> np.ndarray:
    assert found.cells is not None
    codes = DOMAIN.unravel(np.arange(DOMAIN.size))
    wanted = DOMAIN.project(found.threshold.attributes).unravel(found.cells)[0]
    at = [DOMAIN.index(name) for name in found.threshold.attributes]
    return np.asarray((codes[:, at] == wanted).sum(axis=1) >= found.threshold.r, float)


def best(objective: Callable[[np.ndarray], float], equal: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """The distribution of least objective under linear constraints."""
    constraints = [{"type": "eq", "fun": lambda d, q=q, a=a: d @ q - a} for q, a in equal]
    found = minimize(
        objective,
        np.full(DOMAIN.size, 1 / DOMAIN.size),
        bounds=[(1e-9, 1)] * DOMAIN.size,
        constraints=[{"type": "eq", "fun": lambda d: d.sum() - 1}, *constraints],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert found.success
    return np.asarray(found.x)


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_mwem_minimises_its_loss(rate: float) -> None:
    model = weights._Mwem(EVEN, TOTAL, MwemSettings(rate=rate))
    gains = np.zeros(DOMAIN.size)
    for number, found in enumerate(ASKED):
        query, before = indicator(found), model._weights.copy()
        gains += query * (found.counts[0] / TOTAL - query @ before)
        model.fit(ASKED[: number + 1], SILENT)
    direct = best(lambda d: float(-rate * d @ gains + d @ np.log(d)), [])
    assert model._weights == pytest.approx(direct, abs=1e-5)


def test_mwem_publishes_the_average_of_its_rounds() -> None:
    model = weights._Mwem(EVEN, TOTAL, MwemSettings())
    seen = []
    for number in range(len(ASKED)):
        model.fit(ASKED[: number + 1], SILENT)
        seen.append(model._weights.copy())
    published = model.published()
    assert isinstance(published, WeightedRows)
    assert published.shares / WHOLE == pytest.approx(np.mean(seen, axis=0), abs=1e-9)


def test_passes_over_past_measurements_come_closer_to_all_of_them() -> None:
    def gap(passes: int) -> float:
        model = weights._Mwem(EVEN, TOTAL, MwemSettings(passes=passes))
        for number in range(3):
            model.fit(ASKED[: number + 1], SILENT)
        return max(float(abs(found.counts[0] / TOTAL - indicator(found) @ model._weights)) for found in ASKED[:3])

    assert gap(200) < 0.001
    assert gap(0) > 0.1


def test_pep_finds_the_closest_distribution_that_agrees() -> None:
    consistent = ASKED[:3]
    model = weights._Pep(EVEN, TOTAL, PepSettings(steps=2000, tolerance=1e-9))
    model.fit(consistent, SILENT)
    equal = [(indicator(found), found.counts[0] / TOTAL) for found in consistent]
    direct = best(lambda d: float(d @ np.log(d)), equal)
    assert model._weights == pytest.approx(direct, abs=1e-5)


def test_pep_over_rounds_ends_where_it_would_have_at_once() -> None:
    model = weights._Pep(EVEN, TOTAL, PepSettings(steps=2000, tolerance=1e-9))
    for number in range(3):
        model.fit(ASKED[: number + 1], SILENT)
    at_once = weights._Pep(EVEN, TOTAL, PepSettings(steps=2000, tolerance=1e-9))
    at_once.fit(ASKED[:3], SILENT)
    assert model._weights == pytest.approx(at_once._weights, abs=1e-6)


def test_pep_satisfies_whole_marginals() -> None:
    found = [whole(("a", "b"), [100, 200, 50, 250, 300, 100]), whole(("b", "c"), [150, 300, 400, 150])]
    model = weights._Pep(EVEN, TOTAL, PepSettings(steps=500, tolerance=1e-9))
    model.fit(found, SILENT)
    full = model._weights.reshape(DOMAIN.sizes)
    assert full.sum(axis=2).reshape(-1) * TOTAL == pytest.approx(found[0].counts, abs=1e-3)
    assert full.sum(axis=0).reshape(-1) * TOTAL == pytest.approx(found[1].counts, abs=1e-3)


def test_pep_holds_a_marginal_that_was_measured_again_to_the_mean() -> None:
    """By precision: the second is a quarter as precise. Projections onto each in turn would end at one of them."""
    first, again = [100, 200, 50, 250, 300, 100], [150, 150, 100, 200, 350, 50]
    noisier = Measurement(Threshold(("a", "b")), None, np.array(again), Fraction(4))
    model = weights._Pep(EVEN, TOTAL, PepSettings(steps=50, tolerance=1e-9))
    for found in ([whole(("a", "b"), first)], [whole(("a", "b"), first), noisier]):
        model.fit(found, SILENT)
    mean = 0.8 * np.array(first) + 0.2 * np.array(again)
    assert model._weights.reshape(DOMAIN.sizes).sum(axis=2).reshape(-1) * TOTAL == pytest.approx(mean, abs=1e-6)
    assert model.notes()["steps"] == [1, 1]


def test_answers_beyond_zero_and_one_leave_every_row_some_weight() -> None:
    model = weights._Pep(EVEN, TOTAL, PepSettings())
    model.fit([single(("a", "b"), 1, -40), single(("c",), 0, 1100)], SILENT)
    assert (model._weights > 0).all()
    assert model._weights.sum() == pytest.approx(1)


def test_a_step_of_mwem_leaves_rows_that_do_not_match_in_proportion() -> None:
    found = single(("a", "b", "c"), 5, 300, r=2)
    (constraint,) = SUPPORT.constraints(found, TOTAL)
    assert isinstance(constraint, Single)
    assert constraint.rows.tolist() == np.flatnonzero(indicator(found)).tolist()
    model = weights._Mwem(EVEN, TOTAL, MwemSettings())
    model.fit([found], SILENT)
    others = np.delete(model._weights, constraint.rows)
    assert others == pytest.approx(np.full(len(others), others[0]))


def test_weighted_rows_answer_and_are_drawn_as_they_weigh() -> None:
    share = np.random.default_rng(0).dirichlet(np.ones(DOMAIN.size))
    listed = Support(DOMAIN, DOMAIN.unravel(np.arange(DOMAIN.size)))
    one, other = (WeightedRows.publish(TOTAL, support, share) for support in (SUPPORT, listed))
    assert one.shares.sum() == WHOLE
    for names in [("a",), ("b", "c"), ("a", "b", "c")]:
        assert one.units(names).dense(DOMAIN.project(names).size).tolist() == (
            other.units(names).dense(DOMAIN.project(names).size).tolist()
        )
    exact = share.reshape(DOMAIN.sizes).sum(axis=(0, 1)) * TOTAL * GRID
    assert one.units(("c",)).dense(2) == pytest.approx(exact, abs=1)
    drawn = DOMAIN.ravel(one.draw(997, np.random.default_rng(1)))
    assert np.abs(np.bincount(drawn, minlength=DOMAIN.size) - 997 * share).max() <= 1


def test_large_domains_and_too_many_picks_are_refused() -> None:
    wide = Domain({f"x{number}": 10 for number in range(8)})
    with pytest.raises(BadWorkload, match=r"pep weighs every combination.*4\.8 GB.*does not grow"):
        weights.check(Workload(wide, [Threshold(("x0", "x1"))]), PepSettings(), "pep")
    few = Workload(DOMAIN, [Threshold(("a",))])
    with pytest.raises(BadSetting, match="more than the workload's 3"):
        weights.check(few, PepSettings(rounds=4), "pep")
    weights.check(few, MwemSettings(rounds=4), "mwem")  # may select a query again


def test_public_rows_start_as_often_as_they_occur_and_nothing_else_has_weight() -> None:
    public = np.array([[0, 1, 1], [2, 0, 0], [0, 1, 1], [1, 1, 0]])
    start = Distribution.of_rows(DOMAIN, public)
    assert start.support.codes is not None
    assert sorted(zip(start.support.codes.tolist(), start.weights.tolist(), strict=True)) == [
        ([0, 1, 1], 0.5),
        ([1, 1, 0], 0.25),
        ([2, 0, 0], 0.25),
    ]
    model = weights._Pep(start, TOTAL, PepSettings(steps=100))
    model.fit([single(("c",), 1, 300)], SILENT)
    assert (
        model.answers().units(("a", "b", "c")).cells.tolist()
        == DOMAIN.ravel([[0, 1, 1], [1, 1, 0], [2, 0, 0]]).tolist()
    )
    assert model.answers().units(("c",)).dense(2) / (TOTAL * GRID) == pytest.approx([0.7, 0.3], abs=1e-6)


def test_what_no_public_row_matches_does_not_hold_up_the_rest() -> None:
    start = Distribution.of_rows(DOMAIN, np.array([[0, 1, 1], [2, 0, 0]]))
    model = weights._Pep(start, TOTAL, PepSettings(steps=5))
    model.fit([single(("a",), 1, 900), single(("b",), 1, 300)], SILENT)
    assert model._weights == pytest.approx([0.3, 0.7])


def test_an_attribute_may_be_called_weight(tmp_path: Path) -> None:
    rows = {"weight": [0, 1, 1, 0] * 50, "weight_": [0, 0, 1, 1] * 50}
    table = read(pa.table(rows), schema={"weight": 2, "weight_": 2})
    made = release(table, "all:2", mechanism="pep", epsilon=1.0, rounds=2, seed=0, out=tmp_path / "out")
    back = Release.open(tmp_path / "out")
    assert back.answers.units(("weight", "weight_")).values.tolist() == (
        made.answers.units(("weight", "weight_")).values.tolist()
    )


def test_queries_that_every_row_matches_or_none_say_nothing_about_weights() -> None:
    support = Support(DOMAIN, np.array([[0, 0, 0], [1, 0, 1], [2, 0, 1]]))  # b is always 0
    assert support.constraints(single(("b",), 0, 700), TOTAL) == []
    assert support.constraints(single(("b",), 1, 300), TOTAL) == []
    assert len(support.constraints(single(("c",), 1, 300), TOTAL)) == 1
    asked = [single(("b",), 0, 700), single(("a",), 0, 250), single(("a",), 1, 250)]
    start = Distribution(support, np.full(3, 1 / 3))
    for model in (
        weights._Pep(start, TOTAL, PepSettings(steps=200)),
        weights._Mwem(start, TOTAL, MwemSettings(passes=500)),
    ):
        model.fit(asked[:1], SILENT)
        model.fit(asked, SILENT)
        np.testing.assert_allclose(model._weights, [0.25, 0.25, 0.5], atol=1e-3)


def test_a_part_without_weight_stays_so_and_nothing_is_divided_by_it() -> None:
    held = Single(np.array([0, 1]), np.array([0.0, 1.0]))
    changed = np.array([0.5, 0.5, 0.0])
    held.scale(changed, np.array([0.0, 0.5]))
    assert changed.tolist() == [0.25, 0.25, 0.0]


def test_many_damped_steps_keep_their_total() -> None:
    """Answers that add up to little shrink all weights in every pass, until an error in their total is all that counts.

    Weights come to rest where each is as far from its answer as every other: 17/60, 20/60 and 23/60.
    """
    model = weights._Mwem(EVEN, TOTAL, MwemSettings(passes=2000, rate=0.1))
    model.fit([single(("a",), value, count) for value, count in enumerate((50, 100, 150))], SILENT)
    found = model._weights.reshape(DOMAIN.sizes).sum(axis=(1, 2))
    np.testing.assert_allclose(found, [17 / 60, 20 / 60, 23 / 60], atol=0.01)


def test_noise_on_empty_cells_is_taken_off_all_cells_alike() -> None:
    noisy = whole(("a", "b"), [500, 480, 30, -30, 30, -10])
    (marginal,) = SUPPORT.constraints(noisy, TOTAL)
    found = marginal.feasible(1e-6, np.ones(6, bool))
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found, [0.49, 0.47, 0.02, 0, 0.02, 0], atol=1e-5)


@pytest.mark.parametrize("passes", [0, 20])
def test_noise_far_larger_than_the_table_leaves_a_distribution(passes: int) -> None:
    model = weights._Mwem(EVEN, TOTAL, MwemSettings(passes=passes))
    noisy = [10**7, -(10**7), 10**7, -(10**8)]
    model.fit([single(("a",), at % 3, count) for at, count in enumerate(noisy)], SILENT)
    model.fit([single(("a",), 2, -(10**9)), *[single(("b",), value, -(10**9)) for value in range(2)]] * 20, SILENT)
    published = model.published()
    assert isinstance(published, WeightedRows)
    assert published.shares.sum() == WHOLE and published.shares.min() >= 0


def test_noise_that_is_negative_time_and_again_leaves_a_distribution() -> None:
    model = weights._Mwem(EVEN, TOTAL, MwemSettings(passes=20))
    asked = [(("a",), 0), (("a",), 1), (("a",), 2), (("b",), 0), (("b",), 1)]
    drawn = np.random.default_rng(0).integers(5, size=80)
    model.fit([single(asked[at][0], asked[at][1], -(10**6)) for at in drawn], SILENT)
    published = model.published()
    assert isinstance(published, WeightedRows)
    assert published.shares.sum() == WHOLE and published.shares.min() >= 0


def test_weights_that_are_no_numbers_are_never_published() -> None:
    with pytest.raises(Bug, match="not finite"):
        WeightedRows.publish(TOTAL, SUPPORT, np.full(SUPPORT.size, np.nan))
