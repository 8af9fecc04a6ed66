from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.models import tree
from discreet.models.targets import Target

HALF = np.array([0.5, 0.5])


def target(names: tuple[str, ...], joint: NDArray[np.float64], sigma: float = 1e-6) -> Target:
    return Target(names, joint.reshape(-1), np.zeros(joint.size, np.float32), sigma)


def found(names: tuple[str, str], joint: NDArray[np.float64], sigma: float = 1e-6) -> tree.Pair:
    single = {names[0]: joint.sum(axis=1), names[1]: joint.sum(axis=0)}
    return tree.pairs([target(names, joint, sigma)], 0.0, single)[0]


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
        tree.pairs([Target(("a", "b"), joint.reshape(-1), noise, 1e-3)], shift, {"a": HALF, "b": HALF})[0]
        for shift in (0.5, -0.5)
    )
    assert one.heavy[0, 0] == pytest.approx(0.35)
    assert other.heavy[0, 1] == pytest.approx(0.35)
    assert one.heavy[0, 1] == other.heavy[0, 0] == 0


def test_what_may_be_noise_is_taken_off_a_dependence() -> None:
    depends = found(("a", "b"), np.diag([0.3, 0.7]), 0.05).depends
    assert np.diag(depends) == pytest.approx((0.21 - 2 * 0.05) / 0.21)


def test_larger_marginals_tell_of_pairs_as_far_as_their_further_values_are_common() -> None:
    """A third attribute that nearly always has one value: its marginal is as good as the pair; an even one is not."""
    shares = np.array([0.3, 0.7])
    joint = np.diag(shares)
    skewed, even = np.array([0.98, 0.01, 0.01]), np.full(50, 0.02)
    single = {"a": shares, "b": shares, "c": skewed, "d": even}
    third = [target(("a", "b", "c"), np.multiply.outer(joint, skewed), 0.05)]
    together, noise = tree._gathered(third, 0.0, single)["a", "b"]
    assert together == pytest.approx(joint)
    assert noise == pytest.approx(0.05, rel=0.03)
    fourth = target(("a", "b", "d"), np.multiply.outer(joint, even), 0.05)
    assert tree._gathered([fourth], 0.0, single)["a", "b"][1] == pytest.approx(0.05 * 50**0.5)
    both = [*third, fourth, target(("a", "b"), joint, 0.05)]
    together, noise = tree._gathered(both, 0.0, single)["a", "b"]
    assert together == pytest.approx(joint)
    assert noise == pytest.approx(0.05 / (1 + skewed @ skewed + 1 / 50) ** 0.5)


def test_the_noise_of_a_gathered_pair_is_what_it_says() -> None:
    shares, third = np.array([0.3, 0.7]), np.array([0.6, 0.3, 0.1])
    single = {"a": shares, "b": shares, "c": third}
    generator = np.random.default_rng(0)
    truth = np.multiply.outer(np.outer(shares, shares), third)
    seen = [
        tree._gathered(
            [
                target(("a", "b"), truth.sum(axis=2) + generator.normal(0, 0.02, (2, 2)), 0.02),
                target(("a", "b", "c"), truth + generator.normal(0, 0.01, truth.shape), 0.01),
            ],
            0.0,
            single,
        )["a", "b"]
        for _ in range(2000)
    ]
    errors = np.array([together for together, _ in seen]) - np.outer(shares, shares)
    assert errors.std() == pytest.approx(seen[0][1], rel=0.05)  # 8,000 draws: five standard errors are 0.04
    assert np.abs(errors.mean(axis=0)).max() < 5 * seen[0][1] / 2000**0.5


def missing_together(sigma: float) -> tuple[dict[str, NDArray[np.float64]], list[Target]]:
    """Three attributes that are missing in the same tenth of the rows, and independent otherwise; no pair measured."""
    shares = np.array([0.85, 0.05, 0.1])
    joint = 0.9 * np.multiply.outer(np.outer([17, 1, 0], [17, 1, 0]) / 18**2, np.array([17, 1, 0]) / 18)
    joint[2, 2, 2] = 0.1
    noise = np.random.default_rng(0).normal(0, sigma, joint.shape)
    return dict.fromkeys("abc", shares), [target(("a", "b", "c"), joint + noise, sigma)]


def test_values_that_are_missing_together_are_found_in_the_one_cell_that_holds_them() -> None:
    """Where the third attribute usually is, there is nothing; the cell itself exceeds chance by ten deviations."""
    single, targets = missing_together(0.01)
    gathered, noise = tree._gathered(targets, 0.0, single)["a", "b"]
    assert gathered[2, 2] < 4 * noise
    (pair, *_) = tree.pairs(targets, 0.0, single)
    assert pair.heavy[2, 2] == pytest.approx(0.1, abs=0.03)
    assert pair.depends[2, 2] > 0.6
    drawn = tree.draw(single, tree.pairs(targets, 0.0, single), 2000, np.random.default_rng(0))
    assert np.mean(drawn["b"][drawn["a"] == 2] == 2) > 0.6


def test_a_cell_that_may_be_the_largest_of_all_noises_says_nothing() -> None:
    """A tenth of the rows is two deviations here; and of noise alone, no cell of a million is taken for a pair."""
    single, targets = missing_together(0.05)
    assert not tree._standing_out(targets, 0.0, single)["a", "b"][0][2].any()
    even = np.full(100, 0.01)
    noise = np.random.default_rng(1).normal(0, 0.01, (100, 100, 100))
    told = tree._standing_out([target(("a", "b", "c"), noise, 0.01)], 0.0, dict.fromkeys("abc", even))
    assert not any(pair.any() for pair, _ in told.values())


def test_a_cell_that_stands_out_says_nothing_of_a_pair_that_does_not_exceed_chance() -> None:
    """c repeats a, and b is independent of both: every cell stands out, for the sake of a and c alone."""
    shares, other = np.full(8, 1 / 8), np.array([0.9, 0.1])
    joint = np.einsum("a,b,ac->abc", shares, other, np.eye(8))
    noise = np.random.default_rng(0).normal(0, 0.004, joint.shape)
    single = {"a": shares, "b": other, "c": shares}
    targets = [target(("a", "b", "c"), joint + noise, 0.004)]
    assert np.count_nonzero(tree._standing_out(targets, 0.0, single)["a", "b"][0]) >= 8
    told = {pair.attributes: pair for pair in tree.pairs(targets, 0.0, single)}
    assert not told["a", "b"].heavy.any()
    assert not told["b", "c"].heavy.any()
    assert np.count_nonzero(told["a", "c"].heavy) == 8


def test_each_row_draws_by_the_value_that_tells_most() -> None:
    """c repeats a where a is 0, and b where b is 0; otherwise neither says anything."""
    generator = np.random.default_rng(0)
    rows = 60_000
    a, b = generator.integers(0, 4, rows), generator.integers(0, 4, rows)
    c = np.where(a == 0, 4, np.where(b == 0, 5, generator.integers(0, 4, rows)))
    single = {"a": np.bincount(a) / rows, "b": np.bincount(b) / rows, "c": np.bincount(c) / rows}

    def joint(one: NDArray[np.int64], other: NDArray[np.int64], sizes: tuple[int, int]) -> NDArray[np.float64]:
        return np.bincount(one * sizes[1] + other, minlength=sizes[0] * sizes[1]).reshape(sizes) / rows

    told = tree.pairs(
        [target(("a", "c"), joint(a, c, (4, 6)), 0.005), target(("b", "c"), joint(b, c, (4, 6)), 0.005)], 0.0, single
    )
    drawn = tree.draw(single, told, 4000, generator)
    assert np.mean(drawn["c"][(drawn["a"] == 0)] == 4) > 0.9
    assert np.mean(drawn["c"][(drawn["a"] != 0) & (drawn["b"] == 0)] == 5) > 0.5  # a tree has one or the other


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
