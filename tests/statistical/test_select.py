"""Selection against the exact distribution of one-shot Gumbel top-k (Plackett-Luce); a wrong scale is rejected."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import exp

import numpy as np
import pytest
from scipy import stats

from discreet.data.sparse import Sparse
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.select import Pick, Scores, select

RUNS = 4000
SIGNIFICANCE = 1e-6


def scores(tables: list[list[int]]) -> Scores:
    def pieces(number: int) -> list[Sparse]:
        return [Sparse.from_dense(np.array(tables[number], dtype=np.int64))]

    return Scores([len(table) for table in tables], pieces)


def plackett_luce(tables: list[list[int]], picks: int, exponent: float) -> dict[tuple[Pick, ...], float]:
    """Chances of every ordered outcome, by the product formula."""
    weight = {(t, c): exp(exponent * s) for t, table in enumerate(tables) for c, s in enumerate(table)}
    chances = {}
    for order in permutations(weight, picks):
        left, chance = sum(weight.values()), 1.0
        for pick in order:
            chance *= weight[pick] / left
            left -= weight[pick]
        chances[order] = chance
    return chances


def gumbel_order(tables: list[list[int]], picks: int, exponent: float, rng: np.random.Generator) -> tuple[Pick, ...]:
    flat = [((t, c), s) for t, table in enumerate(tables) for c, s in enumerate(table)]
    noisy = np.array([s for _, s in flat]) + rng.gumbel(scale=1 / exponent, size=len(flat))
    return tuple(flat[at][0] for at in np.argsort(-noisy)[:picks])


def agrees(observed: Counter[tuple[Pick, ...]], chances: dict[tuple[Pick, ...], float]) -> bool:
    runs = sum(observed.values())
    common = [order for order in chances if chances[order] * runs >= 10]
    expected = [chances[order] * runs for order in common]
    seen = [observed[order] for order in common]
    expected.append(max(1e-9, runs - sum(expected)))
    seen.append(runs - sum(seen))
    statistic = sum((s - e) ** 2 / e for s, e in zip(seen, expected, strict=True))
    return bool(statistic < stats.chi2.isf(SIGNIFICANCE, len(seen) - 1))


CASES = {
    "distinct scores": [[0, 3, 7], [5, 1]],
    "ties and zeros": [[0, 0, 4], [4, 0, 2]],
    "all zero": [[0, 0, 0, 0]],
    "no zeros": [[2, 2, 9], [1, 1]],
    "one far above": [[0, 60, 0], [3, 1]],
    "below zero": [[-4, 3, 0], [], [3, -4]],
}


@pytest.mark.parametrize("tables", CASES.values(), ids=CASES)
@pytest.mark.parametrize("picks", [1, 2, 3])
def test_picks_follow_the_plackett_luce_distribution(tables: list[list[int]], picks: int) -> None:
    exponent = Fraction(1, 4)
    entropy = SeededEntropy(picks)
    drawn = (tuple(select(scores(tables), picks=picks, exponent=exponent, entropy=entropy)) for _ in range(RUNS))
    observed = Counter(drawn)
    assert agrees(observed, plackett_luce(tables, picks, float(exponent)))
    if tables not in (CASES["all zero"], CASES["one far above"]):  # those two say nothing about the scale
        assert not agrees(observed, plackett_luce(tables, picks, float(exponent) * 1.5))
        assert not agrees(observed, plackett_luce(tables, picks, float(exponent) / 1.5))


def test_the_reference_itself_is_the_order_of_gumbel_noise() -> None:
    tables, rng = CASES["ties and zeros"], np.random.default_rng(0)
    observed = Counter(gumbel_order(tables, 2, 0.25, rng) for _ in range(RUNS))
    assert agrees(observed, plackett_luce(tables, 2, 0.25))


def test_excluded_queries_are_out_of_the_draw() -> None:
    tables = CASES["ties and zeros"]
    without: set[Pick] = {(0, 2), (1, 1)}
    entropy = SeededEntropy(9)
    observed = Counter(
        tuple(select(scores(tables), picks=2, exponent=Fraction(1, 4), without=without, entropy=entropy))
        for _ in range(RUNS)
    )
    weight = {(t, c): exp(0.25 * s) for t, table in enumerate(tables) for c, s in enumerate(table)}
    kept = {pick: w for pick, w in weight.items() if pick not in without}
    chances: dict[tuple[Pick, ...], float] = {}
    for first, second in permutations(kept, 2):
        chances[first, second] = kept[first] / sum(kept.values()) * kept[second] / (sum(kept.values()) - kept[first])
    assert agrees(observed, chances)


def test_everything_can_be_picked_even_when_weights_differ_beyond_floating_point() -> None:
    tables = [[0, 0, 5000], [100_000, 90_000]]
    drawn = select(scores(tables), picks=5, exponent=Fraction(3, 2), entropy=SeededEntropy(1))
    assert drawn[:3] == [(1, 0), (1, 1), (0, 2)]
    assert sorted(drawn) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_a_huge_sparse_workload_costs_only_its_non_zeros() -> None:
    size = 10**15
    piece = Sparse(np.array([5, 10**14]), np.array([40, 80]))
    picks = select(Scores([size], lambda _: [piece]), picks=4, exponent=Fraction(2), entropy=SeededEntropy(0))
    assert picks[:2] == [(0, 10**14), (0, 5)]
    assert all(0 <= cell < size for _, cell in picks)
    assert len(set(picks)) == 4


def test_picks_are_found_together() -> None:
    """One look at a threshold counts its scores, another finds what was drawn; a third if that was out of the draw."""
    looks: Counter[int] = Counter()
    values = np.random.default_rng(0).integers(0, 5, size=(2, 500))

    def pieces(number: int) -> list[Sparse]:
        looks[number] += 1
        return [Sparse.from_dense(values[number])]

    select(Scores([500, 500], pieces), picks=40, exponent=Fraction(1), entropy=SeededEntropy(0))
    assert looks == {0: 2, 1: 2}
    without = [(number, cell) for number in (0, 1) for cell in range(20)]
    select(Scores([500, 500], pieces), picks=40, exponent=Fraction(1), without=without, entropy=SeededEntropy(0))
    assert max(looks.values()) <= 2 + 5


def test_a_whole_group_is_drawn_in_every_order() -> None:
    tables, entropy = [[3, 3], [], [3, 3, -2]], SeededEntropy(3)
    observed = Counter(
        tuple(select(scores(tables), picks=4, exponent=Fraction(1, 4), entropy=entropy)) for _ in range(RUNS)
    )
    assert agrees(observed, plackett_luce(tables, 4, 0.25))


@pytest.mark.parametrize("again", [False, True])
def test_of_a_group_that_is_nearly_out_the_rest_is_drawn(again: bool) -> None:
    """More members are proposed than are missing: which of them count must not depend on where they are."""
    values = np.full(200, 3)
    values[[7, 90, 151]] = 0, 0, 1
    left = (7, 20, 90, 150, 151)
    without = [(0, cell) for cell in range(200) if cell not in left]
    entropy, pieces = SeededEntropy(11), [Sparse.from_dense(values)]
    observed = Counter(
        tuple(
            select(
                Scores([200], lambda _: pieces),
                picks=2,
                exponent=Fraction(1, 4),
                without=without,
                again=again,
                entropy=entropy,
            )
        )
        for _ in range(RUNS)
    )
    weight = {(0, cell): exp(0.25 * float(values[cell])) for cell in left}
    all_of_it = sum(weight.values())
    chances: dict[tuple[Pick, ...], float] = {}
    for first, second in product(weight, repeat=2):
        if again:
            chances[first, second] = weight[first] * weight[second] / all_of_it**2
        elif first != second:
            chances[first, second] = weight[first] / all_of_it * weight[second] / (all_of_it - weight[first])
    assert sum(chances.values()) == pytest.approx(1)
    assert agrees(observed, chances)


def test_rare_zeros_are_found_without_a_long_hunt() -> None:
    values = np.ones(100_000, dtype=np.int64)
    values[777] = 0
    picked = Counter(
        select(
            Scores([100_000], lambda _: [Sparse.from_dense(values)]),
            picks=1,
            exponent=Fraction(1, 10**9),
            without=[(0, cell) for cell in range(100_000) if cell not in (777, 5)],
            entropy=SeededEntropy(seed),
        )[0]
        for seed in range(6)
    )
    assert set(picked) <= {(0, 777), (0, 5)}
    assert len(picked) == 2
