from __future__ import annotations

import json
from itertools import combinations

import pytest

from discreet.confidence import rate_at_most
from discreet.data.domain import Domain
from discreet.queries.history import History
from discreet.queries.outlook import Outlook, missing_mass_at_most, outlook
from discreet.queries.threshold import Threshold

DOMAIN = Domain(dict.fromkeys("abcdef", 2))


def test_good_and_turing_count_what_was_asked_once() -> None:
    past = History(DOMAIN, [Threshold(("a",)), Threshold(("b",)), Threshold(("c",))], [7, 1, 2])
    found = outlook(past, past.workload())
    assert (found.past, found.thresholds, found.added, found.unseen) == (10, 3, 0, 0.1)
    assert found.unseen_at_most >= found.unseen


def test_a_history_without_news_is_bounded_by_its_second_half() -> None:
    assert missing_mass_at_most(History(DOMAIN, [Threshold(("a",))], [1000])) == rate_at_most(0, 500)
    everything_new = History(DOMAIN, [Threshold(names) for names in combinations("abcdef", 3)])
    assert missing_mass_at_most(everything_new) == 1
    assert missing_mass_at_most(History(DOMAIN, [Threshold(("a",))])) == 1


@pytest.mark.parametrize("augment", [0, 3, 10])
def test_parts_of_thresholds_outside_agree_with_brute_force(augment: int) -> None:
    past = History(DOMAIN, [Threshold(tuple("abc")), Threshold(tuple("bcd")), Threshold(tuple("ae"), 1)], [3, 1, 2])
    workload = past.workload(augment=augment, seed=5)
    found = outlook(past, workload)
    assert found.added == augment
    assert [(kind.k, kind.r, kind.asked) for kind in found.kinds] == [(2, 1, 2), (3, 3, 4)]
    for kind in found.kinds:
        every = [Threshold(names, kind.r) for names in combinations("abcdef", kind.k)]
        outside = [threshold for threshold in every if threshold not in workload.thresholds]
        assert (kind.possible, kind.in_workload) == (len(every), len(every) - len(outside))
        for size, share in enumerate(kind.parts, start=1):
            parts = [set(part) for threshold in outside for part in combinations(threshold.attributes, size)]
            inside = [part for part in parts if any(part <= set(known.attributes) for known in workload)]
            assert share == pytest.approx(len(inside) / len(parts))
        assert len(kind.parts) == kind.k - 1


def test_a_kind_that_is_complete_is_said_to_be() -> None:
    past = History(DOMAIN, [Threshold(("a", "b"))], [2])
    found = outlook(past, past.workload(augment=14))
    assert found.kinds[0].parts == ()
    assert "All 15 possible 2-way marginals are in the workload." in found.sentences()


def test_words_and_round_trip() -> None:
    past = History(DOMAIN, [Threshold(tuple("abcd"), 2), Threshold(("e",))], [40, 1])
    found = outlook(past, past.workload(augment=2))
    assert Outlook.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.origin() == (
        "The workload was learned from 41 past queries of 2 thresholds; 2 further thresholds were drawn at random."
    )
    told = " ".join(found.sentences())
    assert "about 2.4% of them ask a threshold that was not asked before" in told
    assert "of 15 possible 2-of-4 thresholds are in the workload" in told
    assert "of 6 possible 1-way marginals are in the workload." in told
    assert "pairs of attributes and" in told and "triples of attributes are." in told
    assert "What is certified holds for the queries of the workload." in told
