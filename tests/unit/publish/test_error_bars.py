"""Error bars: what they rest on, and that they hold as often as they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.readable import small_table

import discreet
from discreet.errors import BadRelease
from discreet.mechanisms import direct
from discreet.publish import bootstrap
from discreet.publish.intervals import KINDS, Intervals
from discreet.publish.release import Release
from discreet.publish.spread import EDGES, Spread
from discreet.queries.answers import fractions
from discreet.queries.threshold import Threshold

TABLE = small_table(400)
PAIR = Threshold(("age", "sex"))


def truth(threshold: Threshold) -> np.ndarray:
    """By the definition: rows that match at least r of the values."""
    names = threshold.attributes
    codes = TABLE.codes()[:, [TABLE.domain.index(name) for name in names]]
    asked = TABLE.domain.project(names).unravel(np.arange(threshold.cells(TABLE.domain)))
    hits = (codes[None] == asked[:, None]).sum(axis=2) >= threshold.r
    return np.asarray(hits.mean(axis=1))


def coverage(threshold: Threshold, workload: str, mechanism: str = "gaussian") -> tuple[float, float]:
    """How often measured intervals of plain noise hold in 200 releases, and how often they would a fifth narrower."""
    held, narrow = [], []
    for seed in range(200):
        made = discreet.release(TABLE, workload, epsilon=1.0, mechanism=mechanism, certificate=0, seed=seed)
        estimates = fractions(made.answers, threshold)
        bars = Intervals(made).of(threshold, np.arange(len(estimates)), estimates)
        assert {KINDS[kind] for kind in bars.kind} == {"measured"}
        off, reach = np.abs(truth(threshold) - (bars.high + bars.low) / 2), (bars.high - bars.low) / 2
        held.append(off <= reach + 1e-12)
        narrow.append(off <= 0.8 * reach)
    return float(np.mean(held)), float(np.mean(narrow))


@pytest.mark.parametrize(
    ("threshold", "workload"),
    [(PAIR, "all:2"), (Threshold(("income",)), "all:2"), (Threshold(("age", "sex", "income"), 2), "all:3@2")],
    ids=["a marginal", "a sum of one", "a combination of several"],
)
def test_measured_intervals_hold_as_often_as_they_say(threshold: Threshold, workload: str) -> None:
    held, narrow = coverage(threshold, workload)
    assert held == pytest.approx(0.95, abs=0.02)
    assert narrow < 0.92, "intervals that are too narrow must be noticed"


@pytest.mark.parametrize("r", [1, 2, 3])
def test_so_do_those_of_marginals_put_together_from_residuals(r: int) -> None:
    held, narrow = coverage(Threshold(("age", "sex", "income"), r), "all:3", "residual-planner")
    assert held == pytest.approx(0.95, abs=0.02)
    assert narrow < 0.92, "intervals that are too narrow must be noticed"


def test_rows_fitted_to_residuals_have_the_intervals_of_these() -> None:
    settings = {"measures": "residuals", "max_steps": 8}
    made = discreet.release(TABLE, "all:2", epsilon=1.0, rows=20, settings=settings, certificate=0, seed=1)
    assert made.residuals is not None
    estimates = fractions(made.answers, PAIR)
    bars = Intervals(made).of(PAIR, np.arange(len(estimates)), estimates)
    assert {KINDS[kind] for kind in bars.kind} == {"measured"}
    assert (bars.low + bars.high) / 2 == pytest.approx(made.residuals.counts(PAIR.attributes) / 400, abs=1e-6)
    reach = 1.96 * made.residuals.variance(PAIR.attributes) ** 0.5 / 400
    assert bars.high - bars.low == pytest.approx(2 * reach, rel=1e-3)
    deep = Threshold(("age", "sex", "income"))
    assert KINDS[Intervals(made).of(deep, np.arange(1), np.zeros(1)).kind[0]] == "unknown"  # was not measured


def test_a_noisy_number_of_rows_is_part_of_them() -> None:
    settings = {"measures": "residuals", "max_steps": 8}
    common: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "rows": 20,
        "settings": settings,
        "certificate": 0,
        "seed": 1,
    }
    made = discreet.release(TABLE, "all:2", neighbours="add-remove", **common)
    assert made.residuals is not None
    assert made.residuals.total_variance == made.notes["total_variance"] > 0
    everybody = Threshold(("sex",))
    without = replace(made, notes={**made.notes, "total_variance": 0.0})

    def width(release: Release) -> float:
        bars = Intervals(release).of(everybody, np.arange(2), np.zeros(2))
        return float((bars.high - bars.low)[0])

    assert width(made) > width(without) > 0


def test_counts_that_are_not_listed_have_intervals_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "MOST_CELLS", 0)
    assert coverage(PAIR, "all:2")[0] >= 0.93


def test_so_have_those_of_a_marginal_that_lists_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "MOST_CELLS", 0)
    made = discreet.release(TABLE, "all:2", epsilon=4.0, mechanism="gaussian", certificate=0, seed=1)
    none = np.zeros(0, dtype=np.int64)
    bare = replace(made, measurements=[replace(found, cells=none, counts=none) for found in made.measurements])
    bars = Intervals(bare).of(PAIR, np.arange(2), np.zeros(2))
    assert [KINDS[kind] for kind in bars.kind] == ["measured"] * 2
    assert (bars.low == 0).all() and (bars.high > 0).all() and (bars.high < 1).all()


def test_the_certified_band_is_around_the_answer_and_only_for_the_workload() -> None:
    made = discreet.release(TABLE, "all:2", epsilon=4.0, mechanism="all-zero", seed=1)
    assert made.certificate is not None
    found = made.interval("age=20-39, sex=Male")
    assert (found.estimate, found.low, found.kind) == (0, 0, "certified")
    assert found.high == made.certificate.bound
    assert made.interval("sex=Male").kind == "unknown"


def test_the_certified_one_is_given_where_it_is_clearly_narrower() -> None:
    made = discreet.release(TABLE, "all:2", epsilon=4.0, mechanism="gaussian", seed=1, certificate=0.02)
    assert made.interval("age=20-39, sex=Male").kind == "measured"
    made = discreet.release(TABLE, "all:2", epsilon=0.5, rows=20, settings={"max_steps": 80}, seed=1, certificate=0.9)
    assert made.certificate is not None
    assert made.interval("age=20-39, sex=Male").kind == "certified"
    doubtful = replace(made.certificate, sigma=made.certificate.sigma * 100)
    assert replace(made, certificate=doubtful).interval("age=20-39, sex=Male").kind == "measured"


def test_single_queries_that_were_measured_say_so() -> None:
    made = discreet.release(
        TABLE,
        "all:2",
        epsilon=4.0,
        mechanism="rap-paper",
        rounds=2,
        per_round=3,
        rows=20,
        settings={"steps": 20},
        certificate=0,
        seed=1,
    )
    table = made.answer("all:2").to_pandas()  # type: ignore[union-attr]
    assert (table.interval == "measured").sum() == 6
    assert set(table.interval) == {"measured", "unknown"}
    assert (table.low <= table.high).all()


def test_a_bootstrap_estimates_what_is_neither_measured_nor_certified(tmp_path: Path) -> None:
    made = discreet.release(TABLE, "all:2", epsilon=2.0, rows=20, settings={"max_steps": 40}, seed=1)
    threshold = "age=20-39, sex=Male, income=15"
    assert made.interval(threshold).kind == "unknown"
    with_bars = made.bootstrap(2)
    found = with_bars.interval(threshold)
    assert found.kind == "estimated"
    assert 0 <= found.low <= found.estimate <= found.high < 1
    assert with_bars.charges == made.charges, "it must be free"
    assert with_bars.interval("age=20-39, sex=Male").kind != "estimated"
    with_bars.save(tmp_path / "out")
    assert Release.open(tmp_path / "out").interval(threshold) == found
    assert made.bootstrap(2).spread == with_bars.spread, "the same seed, the same error bars"


def test_more_budget_gives_narrower_estimates() -> None:
    widths = []
    for epsilon in (0.1, 10.0):
        made = discreet.release(TABLE, "all:2", epsilon=epsilon, rows=20, settings={"max_steps": 200}, seed=1)
        found = made.bootstrap().interval("age=20-39, sex=Male, income=15")
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 2


@pytest.mark.parametrize("mechanism", ["gaussian", "all-zero"])
def test_a_bootstrap_needs_rows(mechanism: str) -> None:
    made = discreet.release(TABLE, "all:2", epsilon=1.0, mechanism=mechanism, seed=1)
    with pytest.raises(BadRelease, match="makes no rows"):
        made.bootstrap()


def test_sizes_and_kinds_are_looked_up_where_they_belong() -> None:
    rising = tuple(float(at) for at in range(len(EDGES) + 1))
    spread = Spread({(1, 1): rising, (2, 1): (9.0,) * 9, (2, 2): tuple(10 * at for at in rising)}, 1)
    at = np.array([0.0, 0.0002, 0.5])
    assert list(spread.reach(Threshold(("a",)), at)) == [0, 1, 8]
    assert list(spread.reach(Threshold(("a", "b", "c")), at)) == [0, 10, 80]
    assert list(spread.reach(Threshold(("a", "b", "c"), 2), at)) == [9, 9, 9]
    assert Spread.from_json(spread.to_json()) == spread


def test_a_bootstrap_under_add_remove_pays_for_its_number_of_rows_too() -> None:
    made = discreet.release(
        TABLE,
        "all:2",
        epsilon=2.0,
        delta=1e-6,
        neighbours="add-remove",
        rows=20,
        settings={"max_steps": 40},
        seed=1,
    )
    assert made.bootstrap().interval("age=20-39, sex=Male, income=15").kind == "estimated"


def test_fewer_rows_than_the_table_has_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_table(4000)
    made = discreet.release(table, "all:2", epsilon=1.0, rows=20, settings={"max_steps": 100}, seed=1)
    text = "age=20-39, sex=Male, income=15"
    whole = made.bootstrap(3).interval(text)
    monkeypatch.setattr(bootstrap, "_MOST_ROWS", 1000)
    fewer = made.bootstrap(3).interval(text)
    assert 0.5 < (fewer.high - fewer.low) / (whole.high - whole.low) < 2
