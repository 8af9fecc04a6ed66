from __future__ import annotations

from datetime import date
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from discreet.data.population import SCHEMA, draw
from discreet.data.schema import Schema
from discreet.data.table import read
from discreet.errors import BadSetting

NAMES = [entry["name"] for entry in SCHEMA["attributes"]]
CATEGORICAL = {entry["name"]: entry["values"] for entry in SCHEMA["attributes"] if "values" in entry}
MANUAL = ("agriculture", "craft", "operator", "elementary")

LEAST_INFORMATION = {  # nats: about two thirds of what the tables give; chance alone gives less than 0.004
    ("age", "education"): 0.28,
    ("age", "marital"): 0.26,
    ("age", "occupation"): 0.5,
    ("age", "household"): 0.13,
    ("age", "condition"): 0.12,
    ("age", "registered"): 0.1,
    ("education", "occupation"): 0.26,
    ("occupation", "hours"): 0.5,
    ("occupation", "income"): 0.55,
    ("income", "tenure"): 0.05,
    ("income", "insurance"): 0.06,
    ("region", "tenure"): 0.03,
    ("region", "age"): 0.007,
    ("region", "registered"): 0.03,
    ("marital", "household"): 0.13,
    ("condition", "visits"): 0.12,
}


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return draw()


@pytest.fixture(scope="module")
def columns(people: pa.Table) -> dict[str, NDArray[Any]]:
    return {name: people[name].to_numpy() for name in NAMES}


@pytest.fixture(scope="module")
def codes(people: pa.Table) -> dict[str, NDArray[np.int64]]:
    return dict(zip(NAMES, read(people, schema=SCHEMA).codes().T, strict=True))


def information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Mutual information in nats of two columns of codes."""
    joint = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(joint, (first, second), 1 / len(first))
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def test_same_seed_gives_the_same_table() -> None:
    assert draw(1_000, seed=5).equals(draw(1_000, seed=5))


def test_another_seed_gives_another_table() -> None:
    assert not draw(1_000, seed=5).equals(draw(1_000, seed=6))


def test_default_is_fifty_thousand_people_with_seed_zero(people: pa.Table) -> None:
    assert people.num_rows == 50_000
    assert people.equals(draw(50_000, seed=0))


def test_schema_survives_a_round_trip() -> None:
    schema = Schema.load(SCHEMA)
    assert Schema.load(schema.to_json()) == schema


def test_all_kinds_of_attributes_occur() -> None:
    kinds = {attribute.kind for attribute in Schema.load(SCHEMA)}
    assert kinds == {"categorical", "integer", "numeric", "date"}


def test_every_attribute_has_between_2_and_20_values() -> None:
    assert all(2 <= size <= 20 for size in Schema.load(SCHEMA).domain.sizes)


def test_three_way_marginals_have_a_moderate_number_of_cells() -> None:
    cells = sum(map(prod, combinations(Schema.load(SCHEMA).domain.sizes, 3)))
    assert 100_000 <= cells <= 400_000


def test_columns_come_in_the_order_and_type_of_the_schema(people: pa.Table) -> None:
    numbers = {"integer": pa.int64(), "numeric": pa.int64(), "date": pa.date32(), "categorical": pa.string()}
    assert people.column_names == NAMES
    assert people.schema.types == [numbers[entry["type"]] for entry in SCHEMA["attributes"]]


@pytest.mark.parametrize("name", CATEGORICAL)
def test_all_categories_occur_and_no_others(people: pa.Table, name: str) -> None:
    assert set(people[name].drop_null().to_pylist()) == set(CATEGORICAL[name])


@pytest.mark.parametrize(
    ("name", "least", "largest"),
    [
        ("age", 0, 99),
        ("hours", 0, 80),
        ("income", 0, 500_000),
        ("household", 1, 8),
        ("visits", 0, 60),
        ("registered", date(2020, 1, 1), date(2024, 12, 31)),
    ],
)
def test_values_lie_in_the_range_of_the_schema(people: pa.Table, name: str, least: Any, largest: Any) -> None:
    values = people[name].drop_null().to_pylist()
    assert least <= min(values)
    assert max(values) <= largest


def test_only_income_and_tenure_may_be_missing_and_rarely_are(people: pa.Table) -> None:
    shares = {name: people[name].null_count / people.num_rows for name in NAMES}
    assert {name for name, share in shares.items() if share} == {"income", "tenure"}
    assert max(shares.values()) < 0.06


def test_every_code_of_every_attribute_occurs(codes: dict[str, NDArray[np.int64]]) -> None:
    sizes = Schema.load(SCHEMA).domain.sizes
    assert [len(np.unique(codes[name])) for name in NAMES] == list(sizes)


def test_children_are_single_without_occupation_hours_or_income(columns: dict[str, NDArray[Any]]) -> None:
    child = columns["age"] < 15
    expected = {"marital": "single", "occupation": "none", "hours": 0, "income": 0}
    assert all((columns[name][child] == value).all() for name, value in expected.items())


def test_children_never_live_alone_nor_without_insurance(columns: dict[str, NDArray[Any]]) -> None:
    child = columns["age"] < 15
    assert columns["household"][child].min() >= 2
    assert "none" not in columns["insurance"][child]


def test_married_people_never_live_alone(columns: dict[str, NDArray[Any]]) -> None:
    assert columns["household"][columns["marital"] == "married"].min() >= 2


def test_hours_are_worked_by_those_with_a_job_and_by_nobody_else(columns: dict[str, NDArray[Any]]) -> None:
    jobless = np.isin(columns["occupation"], ["none", "student", "retired"])
    assert ((columns["hours"] == 0) == jobless).all()


def test_nobody_has_a_degree_before_20_or_retires_before_35(columns: dict[str, NDArray[Any]]) -> None:
    age = columns["age"]
    assert age[np.isin(columns["education"], ["bachelor", "master"])].min() >= 20
    assert age[columns["occupation"] == "retired"].min() >= 35


def test_high_incomes_never_live_in_social_housing(columns: dict[str, NDArray[Any]]) -> None:
    rich = (columns["age"] >= 20) & (columns["income"] > 55_000)
    assert "social" not in columns["tenure"][rich]


def test_nobody_registers_before_birth(columns: dict[str, NDArray[Any]]) -> None:
    days = (np.datetime64("2024-12-31") - columns["registered"]).astype(np.int64)
    assert (days <= 365 * (columns["age"] + 1)).all()


def test_income_is_strongly_skewed(people: pa.Table) -> None:
    income = people["income"].drop_null().to_numpy()
    assert income.mean() > 1.2 * np.median(income)
    assert np.quantile(income, 0.99) > 5 * np.median(income)


@pytest.mark.parametrize(("pair", "least"), LEAST_INFORMATION.items(), ids=map(" x ".join, LEAST_INFORMATION))
def test_attributes_depend_on_each_other(
    codes: dict[str, NDArray[np.int64]], pair: tuple[str, str], least: float
) -> None:
    assert information(codes[pair[0]], codes[pair[1]]) > least


@pytest.mark.parametrize("name", ["education", "occupation", "income", "hours", "condition"])
def test_sex_says_next_to_nothing_about_standing_or_health(codes: dict[str, NDArray[np.int64]], name: str) -> None:
    assert information(codes["sex"], codes[name]) < 0.005


def test_manual_work_goes_with_arthritis_at_the_same_age(columns: dict[str, NDArray[Any]]) -> None:
    working = (columns["age"] >= 50) & (columns["age"] < 65) & (columns["hours"] > 0)
    manual = np.isin(columns["occupation"], MANUAL)
    arthritis = columns["condition"] == "arthritis"
    assert arthritis[working & manual].mean() > 1.5 * arthritis[working & ~manual].mean()


def test_many_cells_of_three_way_marginals_are_empty_or_small(codes: dict[str, NDArray[np.int64]]) -> None:
    domain = Schema.load(SCHEMA).domain
    counts = [
        np.bincount(domain.project(triple).ravel(np.column_stack([codes[name] for name in triple])))
        for triple in combinations(NAMES, 3)
    ]
    cells = sum(map(prod, combinations(domain.sizes, 3)))
    filled = np.concatenate(counts)
    assert np.count_nonzero(filled) < 0.85 * cells
    assert np.count_nonzero(filled > 10) < 0.55 * cells


@pytest.mark.parametrize("seed", range(10))
def test_one_person_is_enough(seed: int) -> None:
    alone = draw(1, seed=seed)
    assert alone.num_rows == 1
    assert alone.schema == draw(2).schema


@pytest.mark.parametrize("rows", [0, -1, 2.5, True])
def test_impossible_numbers_of_rows_are_refused(rows: Any) -> None:
    with pytest.raises(BadSetting, match="rows must be a whole number of at least 1"):
        draw(rows)


def test_negative_seeds_are_refused() -> None:
    with pytest.raises(BadSetting, match="seed must be a whole number of at least 0"):
        draw(10, seed=-1)
