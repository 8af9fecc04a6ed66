"""Laws of distributions over attributes and thresholds, of their drift, and of histories."""

from __future__ import annotations

import json
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.domain import Domain
from discreet.queries.distribution import ThresholdDistribution
from discreet.queries.features import Features, total_variation
from discreet.queries.history import History
from discreet.queries.outlook import Outlook, outlook
from discreet.queries.threshold import Threshold

weights = st.floats(1e-3, 1e3)
features = st.lists(weights, min_size=1, max_size=6).map(
    lambda found: Features(dict(zip("abcdef", found, strict=False)))
)
gammas = st.floats(0, 1)
seeds = st.integers(0, 2**32)
DOMAIN = Domain({"a": 2, "b": 3, "c": 2, "d": 4, "e": 2, "f": 2})


@given(features, gammas, seeds)
def test_drift_moves_masses_and_makes_none(one: Features, gamma: float, seed: int) -> None:
    drifted = one.drifted(gamma, seed)
    assert drifted.names == one.names
    assert sorted(drifted.probabilities) == sorted(one.probabilities)
    assert total_variation(one, drifted) <= total_variation(one, one.drifted(1, 0)) + 1e-12


@given(features, seeds)
def test_no_drift_and_full_drift_leave_nothing_to_chance(one: Features, seed: int) -> None:
    assert one.drifted(0, seed) == one
    assert one.drifted(1, seed) == one.drifted(1, 0)
    falling = np.argsort(-np.array(one.probabilities), kind="stable")
    reversed_masses = np.array(one.drifted(1, seed).probabilities)[falling]
    assert reversed_masses.tolist() == np.array(one.probabilities)[falling][::-1].tolist()


@given(features, gammas, seeds)
def test_drift_follows_the_formula(one: Features, gamma: float, seed: int) -> None:
    """Definition 5.2 written out with lists, for attributes in descending order."""
    d, u = len(one), np.random.default_rng(seed).random(len(one))
    order = sorted(range(d), key=lambda at: -one.probabilities[at])
    masses = [one.probabilities[at] for at in order]
    keyed = []
    for i, mass in enumerate(masses, start=1):
        relative = (d - i) / (d - 1) if d > 1 else 0
        keyed.append(((1 - 2 * gamma) * relative + (1 - abs(1 - 2 * gamma)) * u[i - 1], -i, mass))
    expected = dict(zip(order, (mass for *_, mass in sorted(keyed, reverse=True)), strict=True))
    assert one.drifted(gamma, seed).probabilities == tuple(expected[at] for at in range(d))


@given(features, seeds, gammas)
def test_total_variation_is_the_largest_difference_of_any_event(one: Features, seed: int, gamma: float) -> None:
    other = one.shuffled(seed).drifted(gamma, seed)
    events = [event for size in range(len(one) + 1) for event in combinations(one.names, size)]
    largest = max(abs(sum(one[name] - other[name] for name in event)) for event in events)
    assert total_variation(one, other) == pytest.approx(largest, abs=1e-12)
    assert total_variation(one, other) == total_variation(other, one)


@given(features, st.data(), st.sampled_from(["successive", "product"]))
def test_probabilities_of_thresholds_add_up(one: Features, data: st.DataObject, sampling: str) -> None:
    k = data.draw(st.integers(1, len(one)))
    listed = dict(ThresholdDistribution(one, k, sampling=sampling).every())
    assert len(listed) == comb(len(one), k)
    assert sum(listed.values()) == pytest.approx(1)
    if k == 1:
        assert [listed[Threshold((name,))] for name in one.names] == pytest.approx(list(one.probabilities))


@st.composite
def histories(draw: st.DrawFn) -> History:
    entries = draw(
        st.lists(
            st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True).flatmap(
                lambda names: st.tuples(st.just(names), st.integers(1, len(names)), st.integers(1, 50))
            ),
            min_size=1,
            max_size=8,
        )
    )
    return History(DOMAIN, [Threshold(names, r) for names, r, _ in entries], [count for *_, count in entries])


@given(histories())
def test_histories_survive_the_way_out_and_back(history: History) -> None:
    assert History.read(json.loads(json.dumps(history.to_json())), DOMAIN) == history
    listed = [threshold for threshold, count in history.counts.items() for _ in range(count)]
    assert History(DOMAIN, listed) == history


@settings(max_examples=50)
@given(histories(), st.data(), seeds)
def test_a_learned_workload_has_all_that_was_asked_and_so_many_more(
    history: History, data: st.DataObject, seed: int
) -> None:
    kinds = {(len(threshold.attributes), threshold.r) for threshold in history.counts}
    left = sum(comb(len(DOMAIN), k) for k, _ in kinds) - len(history.counts)
    augment = data.draw(st.integers(0, left))
    workload = history.workload(augment=augment, seed=seed)
    assert workload.thresholds[: len(history.counts)] == tuple(history.counts)
    assert len(workload) == len(history.counts) + augment
    assert {(len(threshold.attributes), threshold.r) for threshold in workload} == kinds
    found = outlook(history, workload)
    assert Outlook.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert 0 <= found.unseen <= 1 and 0 < found.unseen_at_most <= 1
    assert sum(kind.in_workload for kind in found.kinds) == len(workload)
    assert all(0 <= share <= 1 for kind in found.kinds for share in kind.parts)
