from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.models import tree
from discreet.models.targets import Target

HALF = np.array([0.5, 0.5])


def target(names: tuple[str, str], joint: NDArray[np.float64], sigma: float = 1e-6) -> Target:
    return Target(names, joint.reshape(-1), np.zeros(joint.size, np.float32), sigma)


def found(names: tuple[str, str], joint: NDArray[np.float64], sigma: float = 1e-6) -> tree.Pair:
    single = {names[0]: joint.sum(axis=1), names[1]: joint.sum(axis=0)}
    return tree.pair(target(names, joint, sigma), 0.0, single)


def test_values_that_only_occur_together_depend_wholly() -> None:
    together = found(("a", "b"), np.diag([0.3, 0.7]))
    assert np.diag(together.depends) == pytest.approx(1, abs=1e-4)
    assert together.depends[0, 1] == 0
    assert together.explained == pytest.approx(2 * 0.21)  # what the diagonal exceeds chance by


def test_independent_values_depend_on_nothing() -> None:
    apart = found(("a", "b"), np.outer([0.3, 0.7], [0.1, 0.2, 0.7]))
    assert not apart.heavy.any()
    assert apart.explained == 0


def test_what_may_be_noise_is_no_dependence() -> None:
    """What exceeds chance by 0.21 is seen with a deviation of 0.05, and not with one of 0.06."""
    assert found(("a", "b"), np.diag([0.3, 0.7]), 0.05).explained > 0
    assert found(("a", "b"), np.diag([0.3, 0.7]), 0.06).explained == 0


def test_the_half_that_is_fitted_to_shifted_numbers_sees_those() -> None:
    joint = np.full((2, 2), 0.25)
    noise = np.array([0.2, -0.2, -0.2, 0.2], np.float32)
    one, other = (
        tree.pair(Target(("a", "b"), joint.reshape(-1), noise, 1e-3), shift, {"a": HALF, "b": HALF})
        for shift in (0.5, -0.5)
    )
    assert one.heavy[0, 0] == pytest.approx(0.35)
    assert other.heavy[0, 1] == pytest.approx(0.35)
    assert one.heavy[0, 1] == other.heavy[0, 0] == 0


def test_a_forest_has_the_strongest_pairs_and_no_circle() -> None:
    strong, weak = np.diag([0.5, 0.5]), np.array([[0.3, 0.2], [0.2, 0.3]])
    middling = np.array([[0.4, 0.1], [0.1, 0.4]])
    given = [
        found(("a", "b"), weak),
        found(("b", "c"), strong),
        found(("a", "c"), middling),
        found(("d", "a"), np.full((2, 2), 0.25)),
    ]
    kept = [edge.attributes for edge in tree.forest(given)]
    assert kept == [("b", "c"), ("a", "c")]


def test_rows_follow_the_pairs_along_a_chain() -> None:
    """Four attributes that repeat each other, the first pair the other way round."""
    shares = np.array([0.1, 0.2, 0.7])
    names = ["a", "b", "c", "d"]
    edges = [found((one, other), np.diag(shares)) for one, other in pairwise(names)]
    edges[0] = found(("b", "a"), np.diag(shares))
    drawn = tree.draw(dict.fromkeys(names, shares), edges, 1000, np.random.default_rng(0))
    assert all((drawn[name] == drawn["a"]).all() for name in names)
    assert np.abs(np.bincount(drawn["a"]) - 1000 * shares).max() <= 1


def test_what_is_not_heavy_is_drawn_as_if_independent() -> None:
    """A value that only occurs with its like; all others are independent of each other."""
    joint = np.zeros((4, 5))
    joint[3, 4] = 0.1
    joint[:3, :4] = np.outer([0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4])
    edge = found(("a", "b"), joint, sigma=0.02)
    assert np.count_nonzero(edge.heavy) == 1
    single = {"a": joint.sum(axis=1), "b": joint.sum(axis=0)}
    drawn = tree.draw(single, [edge], 20_000, np.random.default_rng(0))
    counts = np.zeros((4, 5))
    np.add.at(counts, (drawn["a"], drawn["b"]), 1 / 20_000)
    assert np.abs(counts - joint).max() < 0.005


def test_attributes_without_a_pair_are_drawn_alone() -> None:
    drawn = tree.draw({"a": HALF, "b": np.array([0.25, 0.75])}, [], 1000, np.random.default_rng(0))
    assert np.bincount(drawn["b"]).tolist() == [250, 750]
    assert abs(np.corrcoef(drawn["a"], drawn["b"])[0, 1]) < 0.15
