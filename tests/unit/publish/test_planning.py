"""Plans: public facts only, and reasons for what does not apply."""

from __future__ import annotations

from typing import Any

import pytest
from tests.readable import SCHEMA, small_rows, small_table

import discreet
from discreet.data.schema import Schema
from discreet.data.table import Table, read
from discreet.errors import BadData, BadSetting, BadWorkload
from discreet.mechanisms import graphical, oracles
from discreet.mechanisms.catalogue import catalogue
from discreet.publish.planning import Forecast, plan

FAR = {"attributes": [{"name": f"a{at}", "type": "integer", "min": 0, "max": 99} for at in range(6)]}


def by_name(told: list[Forecast]) -> dict[str, Forecast]:
    return {one.mechanism: one for one in told}


@pytest.fixture
def table() -> Table:
    return small_table(800)


def test_every_mechanism_is_told_of_and_the_best_comes_first(table: Table) -> None:
    told = discreet.plan(table, "all:2", epsilon=1.0)
    assert set(by_name(told)) == set(catalogue())
    applying = [one for one in told if one.refused is None]
    assert told[: len(applying)] == applying
    assert [one.largest_error for one in applying] == sorted(one.largest_error or 0 for one in applying)
    assert all(one.cells is None and one.seconds is None for one in told if one.refused is not None)
    assert by_name(told)["all-zero"].largest_error == 1


def test_nothing_is_counted_but_rows(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a plan looked at the table")

    for verb in ("counts", "count", "codes"):
        monkeypatch.setattr(Table, verb, refuse)
    assert len(plan(table, "all:2", epsilon=1.0)) == len(catalogue())
    monkeypatch.setattr(Table, "rows", refuse)
    told = plan(table, "all:2", epsilon=1.0, neighbours="add-remove", delta=1e-6, people=800)
    assert len(told) == len(catalogue())


def test_a_guess_stands_for_the_number_of_rows(table: Table) -> None:
    schema = Schema.load(SCHEMA)
    told, guessed = (plan(one, "all:2", epsilon=1.0, people=more) for one, more in ((table, None), (schema, 800)))
    assert [one.largest_error for one in told] == [one.largest_error for one in guessed]
    with pytest.raises(BadSetting, match="--people"):
        plan(schema, "all:2", epsilon=1.0)
    with pytest.raises(BadSetting, match="people must be a whole number"):
        plan(schema, "all:2", epsilon=1.0, people=0)


def test_a_private_number_of_rows_is_not_looked_up(table: Table) -> None:
    with pytest.raises(BadSetting, match=r"number of rows is private.*--people"):
        plan(table, "all:2", epsilon=1.0, neighbours="add-remove", delta=1e-6)
    with pytest.raises(BadSetting, match="give --delta"):
        plan(table, "all:2", epsilon=1.0, neighbours="add-remove", people=800)


def test_reasons_carry_over_in_one_sentence() -> None:
    told = by_name(plan(Schema.load(FAR), "all:3", epsilon=1.0, people=1000))
    assert (told["mwem"].refused or "").startswith("mwem weighs every combination of values, and the domain has 1e+12")
    assert (told["mwem"].refused or "").endswith("combinations are taken.")
    assert told["auto"].refused is None


def test_public_tables_are_asked_for_and_checked(table: Table) -> None:
    names = ("pep-pub", "gem-pub")
    without = by_name(plan(table, "all:2", epsilon=1.0, mechanisms=names))
    assert all("give one with --public" in (one.refused or "") for one in without.values())
    public = small_table(400, seed=9)
    told = by_name(plan(table, "all:2", epsilon=1.0, mechanisms=[*names, "auto"], public=public))
    assert all(one.refused is None for one in told.values())
    part = read(small_rows(400, seed=9).select(["age", "sex"]), schema=SCHEMA, part=True)
    told = by_name(plan(table, "all:2", epsilon=1.0, mechanisms=names, public=part))
    assert told["gem-pub"].refused is None
    assert (told["pep-pub"].refused or "").startswith("The public table lacks 'income', 'born'")


@pytest.mark.parametrize(
    ("module", "function", "names"),
    [(graphical, "package", ("mst",)), (oracles, "solver", ("dualquery", "fem"))],
)
def test_missing_packages_are_named(
    table: Table, monkeypatch: pytest.MonkeyPatch, module: Any, function: str, names: tuple[str, ...]
) -> None:
    def missing() -> None:
        raise BadSetting("This needs something: pip install 'discreet[extra]'. Or else not.")

    monkeypatch.setattr(module, function, missing)
    for one in plan(table, "all:2", epsilon=1.0, mechanisms=names):
        assert one.refused == "This needs something: pip install 'discreet[extra]'."


def test_settings_apply_where_there_are_such(table: Table) -> None:
    usual = by_name(plan(table, "all:2", epsilon=1.0, mechanisms=["mwem", "gaussian"]))
    told = by_name(plan(table, "all:2", epsilon=1.0, mechanisms=["mwem", "gaussian"], settings={"rounds": 5}))
    assert (told["mwem"].cells, usual["mwem"].cells) == (5, 50)
    assert told["gaussian"].refused == "gaussian has no setting 'rounds'; it has: none."


def test_a_setting_is_given_once(table: Table) -> None:
    """Else a plan might go by one of them and a release by the other."""
    asked: dict[str, Any] = {"epsilon": 1.0, "rounds": 3, "settings": {"rounds": 4}}
    with pytest.raises(BadSetting, match="rounds is given twice"):
        plan(table, "all:2", **asked)
    with pytest.raises(BadSetting, match="rounds is given twice"):
        discreet.release(table, "all:2", mechanism="mwem", **asked)
    (told,) = plan(table, "all:2", epsilon=1.0, rounds=3, per_round=2, mechanisms=["mwem"])
    assert told.cells == 6


def test_single_passes_take_time_in_proportion_to_rounds() -> None:
    """`mwem` looks at new measurements alone in each round; with passes, at all of them."""
    schema = Schema.load(
        {"attributes": [{"name": f"b{at}", "type": "integer", "min": 0, "max": 1} for at in range(20)]}
    )

    def seconds(rounds: int, passes: int) -> float:
        (told,) = plan(
            schema,
            "all:2",
            epsilon=1.0,
            people=1000,
            mechanisms=["mwem"],
            rounds=rounds,
            settings={"passes": passes},
            slowness=1.0,
        )
        assert told.refused is None
        return told.seconds or 0.0

    assert seconds(400, 0) == pytest.approx(2 * seconds(200, 0), rel=0.05)
    assert seconds(400, 20) > 3 * seconds(200, 20)


def test_expected_errors_do_not_jump_where_a_smaller_marginal_weighs_a_hair_more() -> None:
    schema = Schema.load({"attributes": [{"name": name, "type": "integer", "min": 0, "max": 19} for name in "abcd"]})

    def error(weight: float) -> float:
        weights = [(("a", "b", "c"), 1.0), (("b", "c", "d"), 1.0), (("a",), weight)]
        workload = {"thresholds": [{"attributes": list(names), "weight": weight} for names, weight in weights]}
        (told,) = plan(schema, workload, epsilon=10.0, people=10**5, mechanisms=["auto"])
        return told.largest_error or 0.0

    assert error(1.0001) == pytest.approx(error(1.0), rel=0.01)
    assert error(9.0) > 1.1 * error(1.0)


def test_what_the_certificate_costs_is_not_spent_on_answers(table: Table) -> None:
    plain, certified, more = (
        plan(table, "all:2", epsilon=1.0, mechanisms=["gaussian"], certificate=share)[0].largest_error
        for share in (0, 0.05, 0.5)
    )
    assert plain is not None
    assert certified == pytest.approx(plain / 0.95**0.5)
    assert more == pytest.approx(plain / 0.5**0.5)


def test_mistakes_are_refused_at_once(table: Table) -> None:
    for wrong, error, said in (
        ({"epsilon": 0}, BadSetting, "epsilon must be"),
        ({"epsilon": 1.0, "certificate": 1}, BadSetting, "certificate must be"),
        ({"epsilon": 1.0, "mechanisms": ["magic"]}, BadSetting, "mechanism must be one of"),
        ({"epsilon": 1.0, "neighbours": "friends"}, BadSetting, "neighbours must be"),
    ):
        with pytest.raises(error, match=said):
            plan(table, "all:2", **wrong)
    with pytest.raises(BadWorkload):
        plan(table, "height", epsilon=1.0)
    with pytest.raises(BadData, match="at least two rows"):
        plan(small_table(1), "all:2", epsilon=1.0)


def test_one_attribute_of_very_many_values_is_planned_for() -> None:
    """Its marginal is fitted whole, whatever its size; a matrix of values by values would have 10^12 entries."""
    codes = Schema.load({"attributes": [{"name": "code", "type": "integer", "min": 0, "max": 2**20}]})
    (told,) = plan(codes, "all:1", epsilon=1.0, people=1000, mechanisms=["auto"], settings={"rows": 100})
    assert told.refused is None
    assert told.cells == 2**20 + 1
    assert told.bytes is not None
    assert told.bytes < 2**40


def test_smoothing_steps_takes_time_and_memory_where_measured_attributes_have_many_values() -> None:
    def of(most: int, workload: str = "a") -> Forecast:
        listed = [{"name": name, "type": "integer", "min": 0, "max": top} for name, top in (("a", most), ("b", 9))]
        schema = Schema.load({"attributes": listed})
        (told,) = plan(schema, workload, epsilon=1.0, people=10**6, mechanisms=["auto"], slowness=1.0)
        assert told.refused is None
        return told

    smoothed, longer, elsewhere, elsewhere_longer = of(2**11 - 1), of(2**11), of(2**11 - 1, "b"), of(2**11, "b")
    assert (smoothed.seconds or 0) > (longer.seconds or 0) + 5
    assert (smoothed.bytes or 0) > (longer.bytes or 0) + 88 * 2**22
    assert (elsewhere.seconds or 0) <= (elsewhere_longer.seconds or 0), "what is not measured is not smoothed"


@pytest.mark.parametrize("mechanism", ["pep", "mwem"])
def test_queries_that_match_many_rows_take_memory_and_time(mechanism: str) -> None:
    """8 bytes for each matching combination of values and query: those of pairs match a quarter, of six a 64th."""
    listed = [{"name": f"b{at}", "type": "integer", "min": 0, "max": 1} for at in range(22)]
    schema = Schema.load({"attributes": listed})

    def of(workload: str) -> Forecast:
        settings = {"rounds": 8} | ({"passes": 20} if mechanism == "mwem" else {})
        (told,) = plan(
            schema, workload, epsilon=1.0, people=10**6, mechanisms=[mechanism], settings=settings, slowness=1.0
        )
        assert told.refused is None
        return told

    few, many = of("random:6:2"), of("random:2:2")
    assert (many.bytes or 0) - (few.bytes or 0) == pytest.approx(8 * 8 * 2**22 * (1 / 4 - 1 / 64), rel=0.01)
    assert (many.seconds or 0) > (few.seconds or 0) + 2
