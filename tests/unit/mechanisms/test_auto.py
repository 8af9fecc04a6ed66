"""How `auto` shares its budget, from public facts."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.mechanisms import auto
from discreet.mechanisms.auto import Settings, shares
from discreet.queries import parse
from discreet.queries.workload import Workload

DOMAIN = Domain({"age": 100, "sex": 2, "race": 5, "income": 20})


def asked(text: str) -> Workload:
    return parse.workload(text, DOMAIN, seed=0)


def given(text: str, sigma: float, total: int = 10_000) -> dict[tuple[str, ...], float]:
    workload = asked(text)
    return shares(auto.needed(workload, Settings()), workload, total=total, sigma=sigma)


def by_order(parts: dict[tuple[str, ...], float]) -> list[float]:
    return [sum(part for names, part in parts.items() if len(names) == order) for order in (1, 2, 3)]


def test_every_smaller_marginal_is_measured_too_and_shares_add_up() -> None:
    parts = given("all:3", sigma=50)
    assert [sum(len(names) == order for names in parts) for order in (1, 2, 3)] == [4, 6, 4]
    assert sum(parts.values()) == pytest.approx(1)
    single, between, largest = by_order(parts)
    assert largest > 1.7 * between > 0
    assert parts["age",] / parts["sex",] == pytest.approx(50 ** (1 / 3))
    assert single > 0


def test_the_noisier_the_more_goes_to_single_attributes() -> None:
    portions = [by_order(given("all:3", sigma=sigma))[0] for sigma in (1, 10, 100, 1000)]
    assert portions == sorted(portions)
    assert portions[0] < 0.1
    assert portions[-1] > 0.5
    assert by_order(given("all:3", sigma=100, total=10**6))[0] < portions[2]


def test_the_share_of_single_attributes_is_the_best_one_for_what_it_is_worth() -> None:
    sigma, total, workload = 100.0, 10_000, asked("all:3")
    largest = list(workload.marginals)
    worth = auto._worth(DOMAIN, [(name,) for name in DOMAIN], largest)
    single = by_order(given("all:3", sigma=sigma, total=total))[0] / worth
    noise = 0.4 * np.mean(DOMAIN.sizes) * sigma * 2 / total

    def loss(share: float) -> float:
        return float(noise / np.sqrt(share) + auto._BALANCE / np.sqrt(1 - share))

    assert loss(single) <= min(loss(single * 0.9), loss(single * 1.1))


def test_a_marginal_in_the_workload_that_is_inside_another_is_in_between() -> None:
    parts = given("age, sex; age, sex, race; income, race", sigma=50)
    assert parts["race", "income"] > parts["age", "sex"]
    assert set(parts) > {("age", "sex", "race"), ("sex", "race")}


def test_what_larger_marginals_make_precise_is_not_paid_for_again() -> None:
    assert auto._worth(DOMAIN, [("sex",)], [("sex", "race")]) == pytest.approx(1 / (1 + 1 / 5))
    binary = Domain({f"b{at}": 2 for at in range(16)})
    workload = parse.workload("all:3", binary)
    parts = shares(auto.needed(workload, Settings()), workload, total=10_000, sigma=50)
    single, between, _ = by_order(parts)
    assert single < 0.01
    assert between < 0.06
    assert sum(parts.values()) == pytest.approx(1)


def test_single_attributes_alone_get_everything() -> None:
    assert sum(given("all:1", sigma=50).values()) == pytest.approx(1)
    assert len(given("all:1", sigma=50)) == 4


def test_weights_of_the_workload_count() -> None:
    workload = parse.workload(
        {"thresholds": [{"attributes": ["age", "sex"], "weight": 3}, {"attributes": ["race", "income"]}]}, DOMAIN
    )
    parts = shares(auto.needed(workload, Settings()), workload, total=10_000, sigma=50)
    assert parts["age", "sex"] == pytest.approx(3 * parts["race", "income"])


def test_a_few_large_marginals_do_not_keep_the_others_from_being_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four marginals of three attributes one is left out, so three quarters are measured; of two out, none is."""
    everything = auto.needed(asked("all:3"), Settings())
    cells = sum(DOMAIN.project(names).size for names in everything)
    sizes = sorted(DOMAIN.project(names).size for names in everything if len(names) == 3)
    monkeypatch.setattr(auto, "MOST_CELLS", cells - 1)
    wanted = auto.needed(asked("all:3"), Settings())
    assert sorted(DOMAIN.project(names).size for names in wanted if len(names) == 3) == sizes[:3]
    assert sum(len(names) == 2 for names in wanted) == 6
    monkeypatch.setattr(auto, "MOST_CELLS", cells - sizes[-1] - 1)
    assert max(map(len, auto.needed(asked("all:3"), Settings()))) == 2
