"""Error bars: what they rest on, and that they hold as often as they say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.readable import small_table

import discreet
from discreet.data.domain import Domain
from discreet.data.table import Table
from discreet.errors import BadRelease, BadSetting
from discreet.mechanisms import direct
from discreet.models.residuals import ResidualCounts
from discreet.privacy.curator import NUMBER_OF_ROWS
from discreet.privacy.event import GaussianEvent
from discreet.publish import bootstrap, starting
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


def coverage(threshold: Threshold, workload: str, mechanism: str = "gaussian", **other: Any) -> tuple[float, float]:
    """How often measured intervals hold in 200 releases, and how often if noise were said to be a fifth smaller."""
    held: list[np.ndarray] = []
    narrow: list[np.ndarray] = []
    for seed in range(200):
        made = discreet.release(TABLE, workload, epsilon=1.0, mechanism=mechanism, certificate=0, seed=seed, **other)
        estimates = fractions(made.answers, threshold)
        for release, found in ((made, held), (quieter(made), narrow)):
            bars = Intervals(release).of(threshold, np.arange(len(estimates)), estimates)
            assert {KINDS[kind] for kind in bars.kind} == {"measured"}
            found.append((bars.low - 1e-12 <= truth(threshold)) & (truth(threshold) <= bars.high + 1e-12))
    return float(np.mean(held)), float(np.mean(narrow))


def quieter(made: Release) -> Release:
    """The same release, as if all its noise had been a fifth smaller."""
    smaller = Fraction(16, 25)
    return replace(
        made,
        measurements=[replace(found, sigma_squared=found.sigma_squared * smaller) for found in made.measurements],
        charges=tuple(
            replace(charge, event=GaussianEvent(2 * charge.rho / smaller)) if charge.label == NUMBER_OF_ROWS else charge
            for charge in made.charges
        ),
    )


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
    middle = made.residuals.counts(PAIR.attributes) / 400
    reach = 1.96 * made.residuals.variance(PAIR.attributes) ** 0.5 / 400
    assert (middle > reach).any()
    assert bars.low == pytest.approx(np.where(middle > -reach, np.maximum(0, middle - reach), middle - reach), abs=1e-5)
    assert bars.high == pytest.approx(middle + reach, abs=1e-5)
    deep = Threshold(("age", "sex", "income"))
    assert KINDS[Intervals(made).of(deep, np.arange(1), np.zeros(1)).kind[0]] == "unknown"  # was not measured


@pytest.mark.parametrize("mechanism", ["gaussian", "residual-planner"])
@pytest.mark.parametrize(
    ("threshold", "workload"),
    [(Threshold(("sex",)), "all:1"), (Threshold(("age", "sex", "income"), 1), "all:3")],
    ids=["large answers", "larger ones"],
)
def test_they_hold_the_true_fraction_where_the_number_of_rows_is_noisy(
    threshold: Threshold, workload: str, mechanism: str
) -> None:
    if mechanism == "gaussian" and not threshold.is_marginal:
        workload += "@1"
    held, narrow = coverage(threshold, workload, mechanism, neighbours="add-remove", delta=1e-6)
    assert held == pytest.approx(0.95, abs=0.03), "one noisy number of rows for all queries of a release"
    assert narrow < 0.92, "intervals that are too narrow must be noticed"


def test_its_noise_is_read_off_what_was_paid_for_it(tmp_path: Path) -> None:
    common: dict[str, Any] = {"epsilon": 1.0, "certificate": 0, "mechanism": "residual-planner", "seed": 1}
    made = discreet.release(TABLE, "all:1", neighbours="add-remove", delta=1e-6, **common)
    (paid,) = (charge.rho for charge in made.charges if charge.label == "number of rows")
    assert made.total_variance == 1 / (2 * paid)
    made.save(tmp_path / "release")
    again = Release.open(tmp_path / "release")
    assert isinstance(again.answers, ResidualCounts)
    assert again.answers.total_variance == pytest.approx(float(made.total_variance))
    assert again.interval("sex=Male") == made.interval("sex=Male")
    assert discreet.release(TABLE, "all:1", **common).total_variance == 0


def test_where_there_may_be_no_rows_at_all_any_fraction_will_do() -> None:
    made = discreet.release(
        TABLE, "sex", epsilon=1e-3, delta=1e-6, neighbours="add-remove", mechanism="gaussian", certificate=0, seed=2
    )
    assert made.answers.total < 1.96 * made.total_variance**0.5
    found = made.interval("sex=Male")
    assert (found.low, found.high) == (0, 1)


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


@pytest.mark.parametrize("mechanism", ["pmw-pub", "pep-pub", "gem-pub"])
def test_a_bootstrap_starts_from_the_public_table_where_the_release_did(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = small_table(300)
    small = {"rounds": 2} | ({"rows": 20, "hidden": "8", "learning": 5} if mechanism == "gem-pub" else {})
    made = discreet.release(TABLE, "all:2", epsilon=2.0, mechanism=mechanism, public=public, settings=small, seed=1)
    query = "age=20-39, sex=Male, income=15"
    assert made.interval(query).kind == "unknown"
    with pytest.raises(BadSetting, match="starts from a public table of the same schema: give one"):
        made.bootstrap()
    with pytest.raises(BadSetting, match="another schema"):
        made.bootstrap(public=discreet.read(pa.table({"a": [0, 1]}), schema={"a": 2}))
    started: list[np.ndarray] = []

    def watched(domain: Domain, table: Table, codes: Any = starting.codes) -> np.ndarray:
        started.append(codes(domain, table))
        return started[-1]

    monkeypatch.setattr(starting, "codes", watched)
    found = made.bootstrap(public=public).interval(query)
    assert found.kind == "estimated" and found.low < found.high
    assert np.array_equal(started[0], public.codes())


def test_only_a_mechanism_that_starts_from_a_public_table_takes_one() -> None:
    made = discreet.release(TABLE, "all:2", epsilon=2.0, rows=20, settings={"max_steps": 8}, seed=1)
    with pytest.raises(BadSetting, match="auto does not start from a public table"):
        made.bootstrap(public=small_table(50))


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


def test_nothing_is_said_of_what_was_neither_asked_nor_measured(tmp_path: Path) -> None:
    made = discreet.release(TABLE, "age, sex", epsilon=1.0, rows=20, settings={"max_steps": 8}, seed=1)
    assert made.unseen == ("income", "born")
    told = made.warning_of_unseen()
    assert told is not None and told.startswith("Nothing was asked or measured of income, born: ")
    with_bars = made.bootstrap()
    assert with_bars.interval("sex=Male, income=15").kind == "unknown"
    assert with_bars.interval("1 of (age=20-39, sex=Male)").kind != "unknown"
    assert not Intervals(made).needs_estimate(Threshold(("income",)), np.arange(1)), "no bootstrap can help"
    made.save(tmp_path / "out")
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert told in report and "income: not asked or measured, so not from the table" in report
    whole = discreet.release(TABLE, "all:1", epsilon=1.0, rows=20, settings={"max_steps": 8}, seed=1)
    assert whole.unseen == () and whole.warning_of_unseen() is None
    counts = discreet.release(TABLE, "age, sex", epsilon=1.0, mechanism="gaussian", seed=1)
    assert counts.warning_of_unseen() is None, "there are no rows that could show anything"


def test_a_bootstrap_looks_at_what_has_no_other_error_bar() -> None:
    made = discreet.release(TABLE, "age, sex", epsilon=1.0, rows=20, settings={"max_steps": 8}, certificate=0, seed=1)
    pairs = [one for one in bootstrap._panel(made) if len(one.attributes) == 2 and one.is_marginal]
    assert pairs, "a kind without any such query has an estimate all the same"
    wider = discreet.release(
        TABLE, "age, sex; income, born", epsilon=1.0, rows=20, settings={"max_steps": 8}, certificate=0, seed=1
    )
    pairs = [one for one in bootstrap._panel(wider) if len(one.attributes) == 2 and one.is_marginal]
    assert len(pairs) == 4 and PAIR not in pairs


def test_a_bootstrap_never_looks_at_what_is_made_up() -> None:
    wide = discreet.read(
        pa.table({f"x{at}": [0, 1] * 20 for at in range(40)}), schema={f"x{at}": 2 for at in range(40)}
    )
    made = discreet.release(
        wide, "x0, x1; x2, x3; x4, x5", epsilon=1.0, rows=20, settings={"max_steps": 8}, certificate=0, seed=1
    )
    panel = bootstrap._panel(made)
    assert {name for one in panel for name in one.attributes} == {f"x{at}" for at in range(6)}
    assert {len(one.attributes) for one in panel} == {1, 2, 3}
    apart = [one for one in panel if len(one.attributes) == 2 and one.is_marginal]
    assert len(apart) == 12, "of the fifteen pairs three were measured"


def test_where_there_is_nothing_to_compare_nothing_is_estimated() -> None:
    many = discreet.read(pa.table({"x": [0, 1] * 20}), schema={"x": 300_000})
    made = discreet.release(many, "all:1", epsilon=1.0, mechanism="mwem", rounds=2, certificate=0, seed=1)
    with pytest.raises(BadRelease, match="more than 262,144 values"):
        made.bootstrap()
    assert made.interval("x=5").kind in ("measured", "unknown")


def test_errors_larger_on_the_table_than_on_the_model_widen_estimates() -> None:
    """Weights that hardly move from even ones err little on rows like themselves, and much on the table."""
    common: dict[str, Any] = {"epsilon": 2.0, "mechanism": "mwem", "rounds": 2, "seed": 1}
    text = "age=20-39, sex=Male, income=15"
    made = discreet.release(TABLE, "all:2", **common)
    with_bars = made.bootstrap()
    assert made.certificate is not None and with_bars.spread is not None
    unaware = replace(made, certificate=None).bootstrap()
    assert unaware.spread is not None
    ratios = [
        one / other
        for kind, reaches in with_bars.spread.reaches.items()
        for one, other in zip(reaches, unaware.spread.reaches[kind], strict=True)
        if kind[0] == 3
    ]
    assert min(ratios) == pytest.approx(max(ratios)) and min(ratios) > 2
    assert with_bars.interval(text).kind == "estimated"


def test_answers_counted_on_few_rows_are_no_closer_than_one_of_them() -> None:
    made = discreet.release(TABLE, "all:2", epsilon=1.0, mechanism="dualquery", rounds=5, seed=1)
    assert made.codes is not None
    with_bars = made.bootstrap()
    assert with_bars.spread is not None
    least = min(reach for reaches in with_bars.spread.reaches.values() for reach in reaches)
    assert least >= 1 / len(made.codes) > 0
