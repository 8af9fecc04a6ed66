"""Large noise on very many zeros has the distribution of noise on each of them; a wrong scale is rejected."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.tables import CodedTable

from discreet.data.domain import Domain
from discreet.privacy import rare
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.noise import DiscreteGaussian, draw, tail_bits
from discreet.privacy.scales import SURVIVORS

SIGNIFICANCE = 1e-6
SIGMA_SQUARED = Fraction(169, 4)


def chances(sigma_squared: float, least: int) -> np.ndarray:
    """P(X = least), P(X = least + 1), ... and what is left."""
    x = np.arange(-400, 401)
    weights = np.exp(-(x**2) / (2 * sigma_squared))
    tail: np.ndarray = (weights / weights.sum())[400 + least :]
    return tail


def accepted(values: np.ndarray, places: np.ndarray, zeros: int, least: int, sigma_squared: float) -> bool:
    """How many there are, how large they are and where they lie, each by a test of its own."""
    probability = chances(sigma_squared, least)
    many = stats.binomtest(len(values), zeros, probability.sum()).pvalue
    usual = probability[: np.count_nonzero(probability * len(values) / probability.sum() > 8)]
    seen = np.bincount(np.minimum(values - least, len(usual)), minlength=len(usual) + 1)
    expected = np.append(usual, probability.sum() - usual.sum()) / probability.sum() * len(values)
    shape = stats.chisquare(seen, expected).pvalue
    spread = stats.kstest(places / zeros, "uniform").pvalue
    return bool(min(many, shape, spread) > SIGNIFICANCE)


@pytest.mark.parametrize("least", [1, 10, 25])
def test_kept_values_are_those_of_the_tail(least: int) -> None:
    noise, zeros = DiscreteGaussian(SIGMA_SQUARED), 3_000_000
    places, values = rare.exceeding(noise, zeros, least, SeededEntropy(least))
    assert (np.diff(places) > 0).all() and places[0] >= 0 and places[-1] < zeros
    assert values.min() == least
    assert accepted(values, places, zeros, least, float(SIGMA_SQUARED))
    if least > 1:  # nearly half of all noise is positive, whatever its scale
        assert not accepted(values, places, zeros, least, float(SIGMA_SQUARED) * 1.05)
        assert not accepted(values, places, zeros, least, float(SIGMA_SQUARED) / 1.05)


def test_the_same_is_true_of_noise_drawn_one_by_one() -> None:
    noise, zeros, least = DiscreteGaussian(SIGMA_SQUARED), 3_000_000, 10
    drawn = draw(noise, zeros, SeededEntropy(0))
    places = np.flatnonzero(drawn >= least)
    assert accepted(drawn[places], places, zeros, least, float(SIGMA_SQUARED))


def test_a_hundred_billion_zeros_cost_what_is_kept() -> None:
    noise, zeros, least = DiscreteGaussian(SIGMA_SQUARED), 10**11, 42
    places, values = rare.exceeding(noise, zeros, least, SeededEntropy(3))
    assert accepted(values, places, zeros, least, float(SIGMA_SQUARED))
    assert 0 < len(values) < 10**4


def test_jumps_are_geometric_also_where_floating_point_cannot_tell() -> None:
    for bits in (1, 3, 12):
        rate = 2.0**-bits
        jumps = rare._jumps(bits, 20_000, SeededEntropy(bits))
        exact = np.array(
            [rare._exact_jump(bits, int(word), SeededEntropy(9)) for word in SeededEntropy(bits).words(2000)]
        )
        assert np.array_equal(jumps[:2000], exact)
        assert stats.binomtest(int((jumps == 0).sum()), len(jumps), rate).pvalue > SIGNIFICANCE
        assert abs(jumps.mean() - (1 - rate) / rate) < 6 * np.sqrt((1 - rate) / rate**2 / len(jumps))
    # The first 64 bits are all zero: only further ones tell how far it goes.
    assert rare._exact_jump(1, 0, SeededEntropy(0)) >= 64
    low, high = rare._power(5, 1000, 80)
    assert low <= (31 / 32) ** 1000 * 2**80 * (1 + 1e-12) and high >= (31 / 32) ** 1000 * 2**80 * (1 - 1e-12)
    assert high - low <= 2


def test_a_sparse_measurement_has_the_distribution_of_a_whole_one_without_its_small_counts() -> None:
    domain, rho = Domain({"a": 300, "b": 200}), Fraction(1, 40)
    generator = np.random.default_rng(1)
    rows = np.column_stack([generator.integers(0, 30, 4000), generator.integers(0, 20, 4000)])
    exact = np.bincount(rows[:, 0] * 200 + rows[:, 1], minlength=60_000)

    def gate(seed: int) -> Curator:
        table = CodedTable(domain, rows)
        return Curator(table, budget=Budget(Fraction(9)), neighbours=Neighbours(), entropy=SeededEntropy(seed))

    runs = 40
    seen = np.zeros((2, 60_000))
    summed = np.zeros((2, 60_000))
    for seed in range(runs):
        (found,) = gate(seed).measure_sparse([("a", "b")], rho=rho)
        assert found.cells is not None and found.least is not None
        assert (np.diff(found.cells) > 0).all() and found.counts.min() >= found.least
        seen[0, found.cells] += 1
        summed[0, found.cells] += found.counts
        (whole,) = gate(1000 + seed).measure([("a", "b")], rho=rho)
        assert whole.sigma_squared == found.sigma_squared
        kept = whole.counts >= found.least
        seen[1, kept] += 1
        summed[1, kept] += whole.counts[kept]
    for group in (exact == 0, exact > 0, (exact == 0) & (np.arange(60_000) < 6000), exact >= 8):
        many = seen[:, group].sum(axis=1)
        assert stats.binomtest(int(many[0]), int(many.sum()), 0.5).pvalue > SIGNIFICANCE
        assert abs(np.subtract(*(summed[:, group].sum(axis=1) / many))) < 0.1
    assert abs(seen[0, exact == 0].sum() / runs - SURVIVORS) < 0.1 * SURVIVORS


@pytest.mark.parametrize("least", [-500, 0, 1, 5, 60, 500])
def test_tail_bits_bound_the_tail(least: int) -> None:
    bits = tail_bits(DiscreteGaussian(SIGMA_SQUARED), least)
    tail = chances(float(SIGMA_SQUARED), max(least, -400)).sum() if least < 400 else 0.0
    assert tail <= 2.0**-bits * (1 + 1e-9)
    assert least >= 400 or tail >= 2.0 ** -(bits + 1) * (1 - 1e-9)
