"""Every mechanism of the catalogue has a forecast, and forecasts grow with what there is to do."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isfinite

import pytest

from discreet.data.domain import Domain
from discreet.mechanisms.catalogue import catalogue
from discreet.mechanisms.facts import Cost, Facts
from discreet.privacy.neighbours import Neighbours
from discreet.queries import parse

SMALL = Domain({"age": 8, "sex": 2, "race": 5, "job": 9})
LARGE = Domain({"age": 80, "sex": 4, "race": 15, "job": 36})
RISING = ("auto", "rap", "gaussian", "residual-planner", "mwem", "pep")
"""Those whose time and memory rise with the cells, not only do not fall."""


def facts(name: str, domain: Domain = SMALL, rows: int = 1000) -> Facts:
    mechanism = catalogue()[name]
    workload = parse.workload("all:2", domain)
    public = 0 if mechanism.public == "no" else 500
    return Facts(workload, rows, Neighbours(), Fraction(1, 100), mechanism.settings_from({}), public=public)


def forecast(name: str, domain: Domain = SMALL, rows: int = 1000) -> Cost:
    return catalogue()[name].forecast(facts(name, domain, rows))


@pytest.mark.parametrize("name", catalogue())
def test_every_mechanism_has_a_forecast(name: str) -> None:
    cost = forecast(name)
    assert isinstance(cost.cells, int)
    assert cost.cells >= 0
    assert 1e8 < cost.bytes < 1e10
    assert 0 < cost.seconds < 1e5
    assert isfinite(cost.largest_error)
    assert cost.largest_error > 0


@pytest.mark.parametrize("name", catalogue())
def test_more_cells_take_more(name: str) -> None:
    little, much = forecast(name, SMALL), forecast(name, LARGE)
    assert much.cells >= little.cells
    assert much.bytes >= little.bytes
    if name not in ("aim", "pmw-pub", "pep-pub"):  # noise drowns what is to be found; fewer public rows match a query
        assert much.seconds >= little.seconds
    if name in RISING:
        assert much.bytes > little.bytes
        assert much.seconds > little.seconds


@pytest.mark.parametrize("name", catalogue())
def test_more_rows_take_more_and_err_less(name: str) -> None:
    few, many = forecast(name, rows=1000), forecast(name, rows=1_000_000)
    assert many.bytes >= few.bytes
    assert many.largest_error <= few.largest_error
    if name.startswith("gem"):  # trainings end sooner where there is less noise
        assert many.seconds < few.seconds
    elif name != "all-zero":
        assert many.seconds > few.seconds
    if name != "all-zero":
        assert many.largest_error < few.largest_error


@pytest.mark.parametrize("name", catalogue())
def test_a_certificate_takes_time(name: str) -> None:
    asked = facts(name)
    plain, certified = (catalogue()[name].forecast(replace(asked, certified=one)) for one in (False, True))
    assert certified.seconds > plain.seconds or name == "all-zero"
    assert certified.largest_error == plain.largest_error


@pytest.mark.parametrize("name", catalogue())
def test_settings_are_heeded(name: str) -> None:
    """More rounds, rows or steps, where there are such settings, take longer."""
    asked = facts(name)
    for setting in ("rounds", "rows", "max_steps", "steps", "draws"):
        value = getattr(asked.settings, setting, None)
        if name in ("dualquery", "rap-search") or not isinstance(value, int) or value <= 3:
            continue
        least = replace(asked, settings=replace(asked.settings, **{setting: 3}), certified=True)
        assert (
            catalogue()[name].forecast(least).seconds
            < catalogue()[name].forecast(replace(asked, certified=True)).seconds
        )


def test_what_auto_measures_is_no_matter_for_others() -> None:
    """On attributes of few values `auto` errs less for measuring residuals; errors of others stay as they are."""
    binary = Domain({f"b{at}": 2 for at in range(10)})

    def foreseen(name: str, **changes: str) -> float:
        asked = facts(name, binary)
        settings = replace(asked.settings, **changes)
        return catalogue()[name].forecast(replace(asked, settings=settings)).largest_error

    plain = foreseen("auto", measures="marginals")
    assert foreseen("auto") == foreseen("auto", measures="residuals") < plain
    assert foreseen("mst") == pytest.approx(0.55 * plain**0.5)
