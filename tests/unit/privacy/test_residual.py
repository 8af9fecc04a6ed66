"""Residuals: their integers, what neighbours change in them, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import chain, combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tables import CodedTable, brute_force, random_table

from discreet.data.domain import Domain
from discreet.errors import BadSetting, BadWorkload
from discreet.privacy import residual
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.residual import projected, require_whole, scaled

RELATIONS = ("replace-one", "add-remove")
SMALL = [{"a": 2, "b": 2, "c": 3}, {"a": 3, "b": 4}, {"a": 2, "b": 2, "c": 2, "d": 2}, {"a": 5, "b": 2, "c": 3}]


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(names, width) for width in range(1, len(names) + 1)))


@cache
def matrix(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    whole = np.ones((1, 1), dtype=np.int64)
    for size in sizes:
        whole = np.kron(whole, size * np.eye(size, dtype=np.int64) - 1)
    return whole


def weighted_change(domain: Domain, weights: dict[tuple[str, ...], Fraction], change: NDArray[np.int64]) -> Fraction:
    """Sum of weight times squared length, of a change of the whole table, straight from the definition."""
    found, full = Fraction(0), change.reshape(domain.sizes)
    for names, weight in weights.items():
        away = tuple(axis for axis, name in enumerate(domain) if name not in names)
        sizes = domain.project(names).sizes
        moved = matrix(sizes) @ full.sum(axis=away).reshape(-1)
        found += weight * Fraction(int(moved @ moved), int(np.prod(sizes)) ** 2)
    return found


@pytest.mark.parametrize("sizes", [(2,), (3, 2), (2, 1, 3), (4, 3, 2)])
def test_integers_are_the_residual_times_the_number_of_cells(sizes: tuple[int, ...]) -> None:
    cells = int(np.prod(sizes))
    counts = np.random.default_rng(0).integers(0, 100, cells)
    assert np.array_equal(scaled(counts, sizes), matrix(sizes) @ counts)
    assert np.allclose(projected(counts.astype(float), sizes), matrix(sizes) @ counts / cells)
    assert np.allclose(projected(scaled(counts, sizes) / cells, sizes), scaled(counts, sizes) / cells)


@pytest.mark.parametrize("sizes", SMALL, ids=str)
@pytest.mark.parametrize("many", [1, 2])
def test_what_neighbours_change_is_exactly_what_is_claimed(sizes: dict[str, int], many: int) -> None:
    """Over all pairs of rows, and for random weights: reached, and never exceeded."""
    domain, rng = Domain(sizes), np.random.default_rng(1)
    unit = np.eye(domain.size, dtype=np.int64)
    for _ in range(3):
        weights = {names: Fraction(int(rng.integers(1, 50)), 7) for names in subsets(domain.attributes)}
        replaced = max(weighted_change(domain, weights, many * (one - other)) for one, other in combinations(unit, 2))
        added = {weighted_change(domain, weights, many * one) for one in unit}
        assert Neighbours(rows_per_person=many).residuals_squared(sizes, weights) == replaced
        assert {Neighbours("add-remove", many).residuals_squared(sizes, weights)} == added
    for names in subsets(domain.attributes):
        alone = max(weighted_change(domain, {names: Fraction(1)}, many * (one - unit[0])) for one in unit)
        assert Neighbours(rows_per_person=many).residual_squared(domain.project(names).sizes) == alone


def test_several_rows_of_one_person_change_no_more_than_is_claimed() -> None:
    domain, rng = Domain(SMALL[0]), np.random.default_rng(2)
    weights = {names: Fraction(int(rng.integers(1, 9))) for names in subsets(domain.attributes)}
    claimed = {relation: Neighbours(relation, 3).residuals_squared(SMALL[0], weights) for relation in RELATIONS}
    for _ in range(200):
        left, entered = (np.bincount(rng.integers(domain.size, size=3), minlength=domain.size) for _ in range(2))
        assert weighted_change(domain, weights, entered - left) <= claimed["replace-one"]
        assert weighted_change(domain, weights, entered) <= claimed["add-remove"]


def test_many_attributes_are_bounded_by_what_each_residual_changes_alone() -> None:
    sizes = {f"a{at}": 2 + at % 3 for at in range(17)}
    weights = {names: Fraction(len(names)) for names in chain(*(combinations(sizes, width) for width in (1, 2)))}
    fewer = {names: weight for names, weight in weights.items() if "a16" not in names}
    alone = sum(Neighbours().residual_squared([sizes[name] for name in names]) * w for names, w in weights.items())
    assert Neighbours().residuals_squared(sizes, weights) == alone
    below = sum(Neighbours().residual_squared([sizes[name] for name in names]) * w for names, w in fewer.items())
    assert 0 < Neighbours().residuals_squared(sizes, fewer) < below


@pytest.mark.parametrize("many", [1, 2, 3])
def test_sums_are_exact_whatever_their_length(many: int) -> None:
    sizes = dict.fromkeys("abc"[:many], 10**6)
    tiny = Fraction(1, 10**40)
    for names, weight in ((("a",), 1 + tiny), (tuple(sizes), 10**40 + tiny)):
        alone = Neighbours().residual_squared([sizes[name] for name in names])
        assert Neighbours().residuals_squared(sizes, {names: weight}) == alone * weight


def test_attributes_of_one_value_leave_nothing_over() -> None:
    sizes, weights = {"a": 3, "one": 1}, {("a",): Fraction(1), ("one",): Fraction(5), ("a", "one"): Fraction(5)}
    assert Neighbours().residual_squared([3, 1]) == 0
    for relation in RELATIONS:
        assert Neighbours(relation).residuals_squared(sizes, weights) == Neighbours(relation).residual_squared([3])


@pytest.mark.parametrize("drawn", [2**20, 7])
@pytest.mark.parametrize("relation", RELATIONS)
def test_measured_residuals_are_exact_but_for_noise_whose_scale_is_the_charge(
    relation: str, drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residual, "DRAWN", drawn)
    domain = Domain(SMALL[3])
    table, rho = random_table(500, domain=domain), Fraction(10**9)
    curator = Curator(table, budget=Budget(2 * rho), neighbours=Neighbours(relation), entropy=SeededEntropy(0))
    if relation == "add-remove":
        with pytest.raises(BadSetting, match="measure_total"):
            curator.measure_residuals([("a",)], rho=rho)
        curator.measure_total(rho=rho)
    names, weights = subsets(domain.attributes), [1.0, 0.5, 0.25, 3.0, 1.0, 2.0, 0.125]
    found = curator.measure_residuals(names, rho=rho, weights=weights)
    precisions = {}
    for each, measured in zip(names, found, strict=True):
        sizes = domain.project(each).sizes
        assert measured.residual
        assert np.array_equal(measured.counts, scaled(brute_force(table, each, len(each)), sizes))
        precisions[each] = int(np.prod(sizes)) ** 2 / measured.sigma_squared
    assert curator.neighbours.residuals_squared(SMALL[3], precisions) / 2 == rho == curator.budget.charges[-1].rho
    assert len({precisions[each] / Fraction(weight) for each, weight in zip(names, weights, strict=True)}) == 1


def test_integers_that_could_overflow_are_refused_before_anything_is_charged() -> None:
    class Large(CodedTable):
        def rows(self) -> int:
            return 2**50

    table = Large(Domain({"a": 2**13}), np.zeros((1, 1), dtype=np.int64))
    curator = Curator(table, budget=Budget(Fraction(1)), neighbours=Neighbours(), entropy=SeededEntropy(0))
    with pytest.raises(BadWorkload, match="could overflow"):
        curator.measure_residuals([("a",)], rho=Fraction(1))
    with pytest.raises(BadSetting, match="spend more"):
        Curator(
            random_table(10), budget=Budget(Fraction(1)), neighbours=Neighbours(), entropy=SeededEntropy(0)
        ).measure_residuals([("age",)], rho=Fraction(1, 2**80))
    assert not table.reads and not curator.budget.charges
    require_whole(2**13, 2**49)
