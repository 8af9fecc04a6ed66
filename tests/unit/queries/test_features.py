from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.errors import BadSetting, UnknownAttribute
from discreet.queries.features import Features, drift_keys, geometric, total_variation, uniform, zipf

NAMES = ("age", "sex", "race", "income")


def test_the_three_families() -> None:
    assert uniform(NAMES).probabilities == (0.25,) * 4
    assert zipf(NAMES, 2).probabilities == pytest.approx(np.array([1, 1 / 4, 1 / 9, 1 / 16]) / (205 / 144))
    assert geometric(NAMES, 0.5).probabilities == pytest.approx((8 / 15, 4 / 15, 2 / 15, 1 / 15))
    assert geometric(Domain({"a": 2, "b": 3})).names == ("a", "b")
    assert geometric(NAMES)["sex"] / geometric(NAMES)["age"] == pytest.approx(0.75)


def test_shuffling_moves_probabilities_between_attributes_and_is_repeatable() -> None:
    features = geometric(NAMES)
    shuffled = [features.shuffled(seed) for seed in range(20)]
    assert all(one.names == NAMES for one in shuffled)
    assert all(sorted(one.probabilities) == pytest.approx(sorted(features.probabilities)) for one in shuffled)
    assert len({one.probabilities for one in shuffled}) > 5
    assert features.shuffled(3) == shuffled[3] == features.shuffled(np.random.default_rng(3))


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({}, "at least one attribute"),
        ({"age": 0.0}, "'age' must be a positive number"),
        ({"age": -1.0}, "positive"),
        ({"age": float("nan")}, "positive"),
        ({"age": float("inf")}, "positive"),
        ({"age": 10**400}, "positive"),
        ({"age": 1e308, "sex": 1e308}, "sum"),
        ({"age": "much"}, "positive"),
        ({"age": 1e300, "sex": 1e-300}, "too far apart"),
    ],
)
def test_weights_that_are_no_distribution(weights: dict[str, float], says: str) -> None:
    with pytest.raises(BadSetting, match=says):
        Features(weights)


def test_families_refuse_what_makes_no_sense() -> None:
    for family in (uniform, zipf, geometric):
        with pytest.raises(BadSetting, match="at least one attribute"):
            family([])
        with pytest.raises(BadSetting, match="distinct"):
            family(["age", "age"])
    for p in (0, 1, -0.5, float("nan"), True, "half"):
        with pytest.raises(BadSetting, match="p must lie"):
            geometric(NAMES, p)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="exponent"):
        zipf(NAMES, 0)
    with pytest.raises(UnknownAttribute, match="height"):
        uniform(NAMES)["height"]


def test_the_keys_are_those_of_definition_5_2() -> None:
    u = np.array([0.9, 0.1, 0.5, 0.7])
    for gamma in (0, 0.1, 0.25, 0.5, 0.8, 1):
        by_hand = [(1 - 2 * gamma) * (4 - i) / 3 + (1 - abs(1 - 2 * gamma)) * u[i - 1] for i in (1, 2, 3, 4)]
        assert drift_keys(gamma, u) == pytest.approx(by_hand)


def test_a_drift_by_hand() -> None:
    """d = 3, gamma = 1/4, u = (0, 1, 0.9): keys 0.5, 0.75, 0.45, so the second mass comes first, then the first."""

    class Fixed(np.random.Generator):
        def random(self, *_: object) -> np.ndarray:  # type: ignore[override]
            return np.array([0, 1, 0.9])

    features = Features({"low": 1, "high": 5, "middle": 4})
    drifted = features.drifted(0.25, Fixed(np.random.PCG64()))
    assert drifted.names == features.names
    assert {name: drifted[name] for name in features.names} == pytest.approx({"high": 0.4, "middle": 0.5, "low": 0.1})


def test_gamma_0_changes_nothing_and_1_reverses() -> None:
    features = geometric(NAMES).shuffled(5)
    falling = sorted(features.names, key=features.__getitem__, reverse=True)
    for seed in range(10):
        assert features.drifted(0, seed) == features
        reversed_order = features.drifted(1, seed)
        for name, opposite in zip(falling, reversed(falling), strict=True):
            assert reversed_order[name] == pytest.approx(features[opposite])


def test_the_reverse_order_is_the_farthest_rearrangement() -> None:
    features = Features({"a": 8, "b": 5, "c": 5, "d": 2, "e": 1})
    others = [
        Features(dict(zip(features.names, masses, strict=True))) for masses in permutations(features.probabilities)
    ]
    farthest = max(total_variation(features, other) for other in others)
    assert total_variation(features, features.drifted(1, 0)) == pytest.approx(farthest)


def test_small_gammas_move_nothing_and_larger_ones_do() -> None:
    features = geometric([f"a{i}" for i in range(14)])
    below, above = 1 / 28 - 1e-9, 1 / 28 + 0.05
    assert all(features.drifted(below, seed) == features for seed in range(200))
    assert any(features.drifted(above, seed) != features for seed in range(200))
    assert all(features.drifted(1 - below, seed) == features.drifted(1, 0) for seed in range(200))


def test_one_attribute_cannot_drift() -> None:
    for gamma in (0, 0.3, 1):
        assert uniform(["only"]).drifted(gamma, 0) == uniform(["only"])


@pytest.mark.parametrize("gamma", [-0.01, 1.01, float("nan"), float("inf"), "much", None, True])
def test_gamma_outside_0_to_1_is_refused(gamma: float) -> None:
    with pytest.raises(BadSetting, match="gamma must be a number from 0"):
        uniform(NAMES).drifted(gamma, 0)


def test_total_variation_needs_the_same_attributes() -> None:
    with pytest.raises(BadSetting, match="same attributes"):
        total_variation(uniform("ab"), uniform("abc"))
    assert total_variation(Features({"a": 3, "b": 1}), Features({"b": 1, "a": 1})) == pytest.approx(0.25)
