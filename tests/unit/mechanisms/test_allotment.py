"""What `auto` measures, and how it shares its budget, from public facts."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.mechanisms import allotment, residual
from discreet.mechanisms.allotment import by_residuals, needed, precisions, shares
from discreet.privacy.neighbours import Neighbours
from discreet.queries import parse
from discreet.queries.workload import Workload

DOMAIN = Domain({"age": 100, "sex": 2, "race": 5, "income": 20})


def asked(text: str) -> Workload:
    return parse.workload(text, DOMAIN, seed=0)


def given(text: str, sigma: float, total: int = 10_000) -> dict[tuple[str, ...], float]:
    workload = asked(text)
    return shares(DOMAIN, needed(workload), total=total, sigma=sigma)


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
    worth = allotment._worth(DOMAIN, [(name,) for name in DOMAIN], workload.marginals)
    single = by_order(given("all:3", sigma=sigma, total=total))[0] / worth
    noise = 0.4 * np.mean(DOMAIN.sizes) * sigma * 2 / total

    def loss(share: float) -> float:
        return float(noise / np.sqrt(share) + allotment._BALANCE / np.sqrt(1 - share))

    assert loss(single) <= min(loss(single * 0.9), loss(single * 1.1))


def test_a_marginal_in_the_workload_that_is_inside_another_is_in_between() -> None:
    parts = given("age, sex; age, sex, race; income, race", sigma=50)
    assert parts["race", "income"] > parts["age", "sex"]
    assert set(parts) > {("age", "sex", "race"), ("sex", "race")}


def test_what_larger_marginals_make_precise_is_not_paid_for_again() -> None:
    assert allotment._worth(DOMAIN, [("sex",)], {("sex", "race"): 3.0}) == pytest.approx(1 / (1 + 1 / 5))
    assert allotment._worth(DOMAIN, [("sex",)], {("sex", "race"): 1.0, ("age",): 4.0}) == pytest.approx(
        1 / (1 + 1 / 20)
    )
    binary = Domain({f"b{at}": 2 for at in range(16)})
    workload = parse.workload("all:3", binary)
    parts = shares(binary, needed(workload), total=10_000, sigma=50)
    single, between, _ = by_order(parts)
    assert single < 0.01
    assert between < 0.06
    assert sum(parts.values()) == pytest.approx(1)


def test_single_attributes_alone_share_everything_evenly() -> None:
    assert given("all:1", sigma=50) == pytest.approx(dict.fromkeys([(name,) for name in DOMAIN], 0.25))


def test_weights_of_the_workload_count() -> None:
    workload = parse.workload(
        {"thresholds": [{"attributes": ["age", "sex"], "weight": 3}, {"attributes": ["race", "income"]}]}, DOMAIN
    )
    parts = shares(DOMAIN, needed(workload), total=10_000, sigma=50)
    assert parts["age", "sex"] == pytest.approx(3 * parts["race", "income"])


def weighted(weights: dict[str, float], sigma: float = 10) -> dict[tuple[str, ...], float]:
    thresholds = [{"attributes": names.split(), "weight": weight} for names, weight in weights.items()]
    workload = parse.workload({"thresholds": thresholds}, DOMAIN)
    return shares(DOMAIN, needed(workload), total=10_000, sigma=sigma)


@pytest.mark.parametrize("weight", [0.001, 1, 1000])
@pytest.mark.parametrize("sigma", [1, 1000])
def test_what_is_asked_for_gets_its_part_by_weight_and_pays_for_what_helps_it(weight: float, sigma: float) -> None:
    parts = weighted({"age": weight, "sex race income": 1}, sigma)
    assert sum(parts.values()) == pytest.approx(1)
    assert parts["age",] == pytest.approx(weight / (1 + weight))
    assert min(parts["sex",], parts["race",], parts["income",]) > 0.001 * (1 - parts["age",]), (
        "the fit starts from them"
    )


def test_what_helps_a_small_part_is_shared_as_if_that_were_all_of_the_budget() -> None:
    beside, on_its_own = weighted({"age": 3, "sex race income": 1}, 10), weighted({"sex race income": 1}, 20)
    for names, share in on_its_own.items():
        assert beside[names] == pytest.approx(share / 4)


def test_what_weighs_much_elsewhere_takes_nothing_from_what_helps() -> None:
    """Helpers are paid by the weight of what they help: `age` matters a thousand times as much, but to itself alone."""
    parts = weighted({"age": 1000, "age sex": 1, "race income": 1})
    for name in ("sex", "race", "income"):
        assert parts[name,] > 0.03 * parts["race", "income"]


def test_a_smaller_marginal_gets_the_more_the_more_it_matters() -> None:
    """Also where it matters hardly more than what holds it, which pays for it as far as it matters as much."""
    for smaller, larger in (("age", "age sex"), ("sex race", "sex race income")):
        given = [
            weighted({smaller: w, larger: 1})[tuple(smaller.split())] for w in (0.1, 1, 1 + 2**-52, 1.01, 1.1, 2, 9)
        ]
        assert given == sorted(given)
        assert given[0] == given[1] == pytest.approx(given[2])
        assert given[2] < given[3] < 0.5 < given[-1]
    within = weighted({"sex race": 1000, "sex race income": 1})
    assert within["sex", "race"] > 999 * within["sex", "race", "income"]


def test_no_share_is_too_small_for_its_noise_to_be_drawn() -> None:
    parts = weighted({"age": 1e9, "sex race": 1, "sex race income": 1}, sigma=2**24)
    assert max(parts.values()) / min(parts.values()) <= 2**32


def test_single_attributes_that_are_all_asked_for_share_by_weight() -> None:
    parts = weighted({"age": 3, "sex": 1})
    assert parts["age",] == pytest.approx(0.75)


def test_a_few_large_marginals_do_not_keep_the_others_from_being_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four marginals of three attributes one is left out, so three quarters are measured; of two out, none is."""
    everything = needed(asked("all:3"))
    cells = sum(DOMAIN.project(names).size for names in everything)
    sizes = sorted(DOMAIN.project(names).size for names in everything if len(names) == 3)
    monkeypatch.setattr(allotment, "MOST_CELLS", cells - 1)
    wanted = needed(asked("all:3"))
    assert sorted(DOMAIN.project(names).size for names in wanted if len(names) == 3) == sizes[:3]
    assert sum(len(names) == 2 for names in wanted) == 6
    monkeypatch.setattr(allotment, "MOST_CELLS", cells - sizes[-1] - 1)
    assert max(map(len, needed(asked("all:3")))) == 2


def chosen(sizes: dict[str, int], text: str = "all:3", measures: str = "auto") -> bool:
    workload = parse.workload(text, Domain(sizes))
    return by_residuals(workload.domain, needed(workload), measures)


def of_size(size: int, many: int) -> dict[str, int]:
    return {f"a{at}": size for at in range(many)}


def test_residuals_are_measured_where_attributes_have_few_values() -> None:
    assert chosen(of_size(2, 16))
    assert chosen(of_size(3, 10))
    assert not chosen(of_size(4, 10))
    assert not chosen(of_size(2, 17))  # what they cost together is not known well enough
    assert chosen(of_size(2, 16) | {"one": 1})
    assert chosen(of_size(2, 15) | {"age": 100})
    assert not chosen(of_size(3, 10), "all:2")
    assert not chosen(of_size(2, 16), "all:1")  # then there is nothing that they share


def test_what_is_measured_can_be_chosen() -> None:
    assert not chosen(of_size(2, 16), measures="marginals")
    assert chosen(of_size(50, 4), measures="residuals")
    assert not chosen(of_size(1, 4), measures="residuals")  # nothing would be left to measure


def test_precisions_of_residuals_lie_halfway_between_plain_noise_and_the_least_total_variance() -> None:
    workload = asked("all:3")
    wanted = needed(workload)
    given = precisions(DOMAIN, wanted)
    best = residual.plan(workload, Neighbours("add-remove"))  # whose costs are those of the closed form
    plain = {
        names: sum(
            DOMAIN.project(names).size / DOMAIN.project(largest).size
            for largest in workload.marginals
            if set(names) <= set(largest)
        )
        for names in given
    }
    assert set(given) == set(best)
    ratios = [given[names] ** 2 / (plain[names] * best[names]) for names in given]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-5)


def test_precisions_are_in_proportion_to_weights_where_marginals_share_nothing() -> None:
    workload = parse.workload(
        {"thresholds": [{"attributes": ["age"], "weight": 3}, {"attributes": ["income"]}]},
        Domain({"age": 9, "income": 9}),
    )
    given = precisions(workload.domain, needed(workload))
    assert given["age",] == pytest.approx(3 * given["income",])


def test_attributes_of_one_value_have_no_residual() -> None:
    domain = Domain({"a": 2, "one": 1, "b": 2, "c": 3})
    given = precisions(domain, needed(parse.workload("all:3", domain)))
    assert all("one" not in names for names in given)
    assert max(map(len, given)) == 3


def test_a_smaller_marginal_that_matters_more_is_measured_more_precisely() -> None:
    domain = Domain(of_size(2, 6))

    def of(weight: float) -> dict[tuple[str, ...], float]:
        thresholds = [{"attributes": ["a0"], "weight": weight}, {"attributes": ["a0", "a1", "a2"]}]
        return precisions(domain, needed(parse.workload({"thresholds": thresholds}, domain)))

    even, uneven = of(1.0), of(1000.0)
    assert uneven["a0",] / uneven["a1",] > 100 * even["a0",] / even["a1",]
    assert uneven["a1", "a2"] / uneven["a1",] == pytest.approx(even["a1", "a2"] / even["a1",])


def test_weights_may_be_far_apart() -> None:
    domain = Domain(of_size(2, 4))
    thresholds = [
        {"attributes": ["a0", "a1", "a2"], "weight": 3e4},
        {"attributes": ["a1", "a2", "a3"], "weight": 3e-5},
    ]
    given = precisions(domain, needed(parse.workload({"thresholds": thresholds}, domain)))
    assert max(given.values()) == 1
    assert min(given.values()) > 0


def test_more_noise_than_residuals_can_have_is_put_on_marginals() -> None:
    workload = parse.workload("all:3", Domain(of_size(2, 16)))
    assert by_residuals(workload.domain, needed(workload), sigma=1e6)
    assert not by_residuals(workload.domain, needed(workload), sigma=1e8)
    assert by_residuals(workload.domain, needed(workload), "residuals", sigma=1e8)  # asked for: the gate may refuse
