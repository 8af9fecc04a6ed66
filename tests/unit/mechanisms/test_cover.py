import pytest

from discreet.data.domain import Domain
from discreet.mechanisms import cover as covers
from discreet.mechanisms.cover import cells_at, closure, cover, largest_order
from discreet.queries.threshold import Threshold
from discreet.queries.workload import Workload

DOMAIN = Domain({"a": 10, "b": 20, "c": 30, "d": 40})


def test_larger_marginals_are_replaced_by_their_parts_and_keep_the_largest_weight() -> None:
    found = cover({("a", "b", "c"): 2.0, ("a", "b"): 1.0, ("d",): 3.0}, 2)
    assert found == {("a", "b"): 2.0, ("a", "c"): 2.0, ("b", "c"): 2.0, ("d",): 3.0}
    assert cover({("a", "b", "c"): 1.0}, 3) == {("a", "b", "c"): 1.0}


def test_a_closure_has_every_part_once_smallest_first() -> None:
    found = closure([("b", "c"), ("a", "b", "d"), ("b",)])
    assert found == [(x,) for x in "abcd"] + [("a", "b"), ("a", "d"), ("b", "c"), ("b", "d"), ("a", "b", "d")]
    assert closure([]) == []


def test_cells_are_those_of_everything_or_of_the_largest_picks() -> None:
    workload = Workload(DOMAIN, [Threshold(["a", "b", "c"]), Threshold(["b", "c", "d"])])
    assert cells_at(workload, 3, None) == 6000 + 24000
    assert cells_at(workload, 2, None) == 200 + 300 + 600 + 800 + 1200  # b x c only once
    assert cells_at(workload, 3, 1) == 24000


def test_the_order_is_the_largest_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Workload(DOMAIN, [Threshold(["a", "b", "c"]), Threshold(["b", "c", "d"])])
    for most, order in ((30_000, 3), (29_999, 2), (3_100, 2), (3_099, 1), (5, 1)):
        monkeypatch.setattr(covers, "MOST_CELLS", most)
        assert largest_order(workload, None) == order


def test_thresholds_keep_the_orders_they_are_made_of() -> None:
    workload = Workload(DOMAIN, [Threshold(["a", "b", "c"], 1)])
    assert {len(kept) for kept in cover(workload.marginals, 2)} == {1, 2}
