"""The laws of test_mechanisms.py for the rest of the family: a module of its own, so that another worker takes it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.data.table import Table, read
from discreet.publish.make import release
from tests.contract import test_mechanisms as laws
from tests.readable import small_table

FAMILY = [which for which in laws.EVERY if which not in laws.HERE]
LAWS: list[Callable[[Table, str], None]] = [
    laws.test_what_is_charged_is_what_was_declared,
    laws.test_the_same_seed_gives_the_same_release,
    laws.test_error_falls_with_budget,
    laws.test_answers_are_those_of_a_distribution,
]


@pytest.fixture(scope="module")
def table() -> Table:
    return small_table(laws.TABLE_ROWS)


@pytest.mark.parametrize("which", FAMILY)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("test_"))
def test_the_family_obeys(law: Callable[[Table, str], None], which: str, table: Table) -> None:
    law(table, which)


@pytest.mark.parametrize("which", FAMILY)
def test_refusals(which: str, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laws.test_a_refusal_leaves_table_and_ledger_untouched_and_makes_no_folder(table, which, tmp_path, monkeypatch)


@pytest.mark.parametrize("which", FAMILY)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_neighbours(which: str, relation: str, table: Table) -> None:
    laws.test_both_neighbour_relations_and_several_rows_per_person(table, which, relation)


def test_a_tree_of_one_attribute_is_worth_its_whole_budget() -> None:
    table = read(pa.table({"a": [0, 1, 2] * 50}), schema={"a": 3})
    made = release(table, "a", mechanism="mst", epsilon=1.0, settings={"steps": 50, "draws": 300}, seed=1)
    spent = sum((charge.rho for charge in made.charges), Fraction(0))
    assert made.guarantee.rho * (1 - Fraction(1, 10**6)) < spent <= made.guarantee.rho
