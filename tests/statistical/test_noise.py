"""Right noise is accepted, wrong noise is rejected, with stated error rates.

Every test statistic below is compared with a normal or chi-squared quantile chosen so that the right distribution is
rejected with probability at most 1e-6 (seeds are fixed, so these tests either always pass or always fail), while a
scale that is off by 1 % must be rejected.
"""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import BadSetting
from discreet.privacy import noise
from discreet.privacy.entropy import SeededEntropy, exp_minus, happen, happens
from discreet.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise, _Table, draw, quantile

DRAWS = 1_000_000


def probabilities(kind: Noise, reach: int) -> NDArray[np.float64]:
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    if isinstance(kind, DiscreteGaussian):
        weights = np.exp(-(x**2) / (2 * float(kind.sigma_squared)))
    else:
        weights = np.exp(-np.abs(x) / float(kind.scale))
    return np.asarray(weights / weights.sum())


def fits(sample: NDArray[np.int64], kind: Noise) -> bool:
    """Chi-squared test of the distribution and z-test of the variance, both at 1e-6."""
    reach = int(np.abs(sample).max()) + int(40 * kind.spread) + 10
    expected = probabilities(kind, reach) * len(sample)
    observed = np.bincount(sample + reach, minlength=2 * reach + 1)
    enough = expected >= 25
    pooled_expected = np.append(expected[enough], expected[~enough].sum())
    pooled_observed = np.append(observed[enough], observed[~enough].sum())
    kept = pooled_expected > 0
    statistic = float(((pooled_observed - pooled_expected)[kept] ** 2 / pooled_expected[kept]).sum())
    shape_fits = statistic < stats.chi2.isf(1e-6, kept.sum() - 1)
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    p = expected / len(sample)
    variance = float((p * x**2).sum())
    spread_of_squares = sqrt(float((p * x**4).sum()) - variance**2)
    deviation = (float((sample.astype(np.float64) ** 2).mean()) - variance) / (spread_of_squares / sqrt(len(sample)))
    return bool(shape_fits and abs(deviation) < stats.norm.isf(5e-7))


KINDS: list[Noise] = [
    DiscreteGaussian(Fraction(1, 3)),
    DiscreteGaussian(Fraction(9, 4)),
    DiscreteGaussian(Fraction(2500)),
    DiscreteGaussian(Fraction(601**2) + Fraction(1, 7)),
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteLaplace(Fraction(30)),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_right_scale_is_accepted_and_one_percent_off_is_rejected(kind: Noise) -> None:
    sample = draw(kind, DRAWS, SeededEntropy(1))
    assert fits(sample, kind)
    for factor in (Fraction(99, 100), Fraction(101, 100)):
        wrong: Noise
        if isinstance(kind, DiscreteGaussian):
            wrong = DiscreteGaussian(kind.sigma_squared * factor**2)
        else:
            wrong = DiscreteLaplace(kind.scale * factor)
        assert not fits(sample, wrong), factor


@pytest.mark.parametrize("kind", [DiscreteGaussian(Fraction(9, 4)), DiscreteLaplace(Fraction(5, 2))], ids=str)
def test_rejection_sampling_has_the_same_distribution(kind: Noise) -> None:
    sample = kind.reject(40_000, SeededEntropy(2))
    assert fits(sample, kind)
    assert not fits(sample, DiscreteGaussian(Fraction(9, 4) * Fraction(5, 4)))


@pytest.mark.parametrize("kind", [DiscreteGaussian(Fraction(4)), DiscreteLaplace(Fraction(3))], ids=str)
def test_words_that_decide_nothing_are_extended_exactly(kind: Noise) -> None:
    """With words of 8 bits most table look-ups fall on an entry or an end, so the rare path does the work."""
    table = _Table(kind, word=8)
    entropy = SeededEntropy(3)
    words = entropy.words(200_000) >> np.uint64(56)
    assert fits(table.look_up(words, entropy), kind)


def test_very_wide_noise_comes_from_rejection_and_has_its_scale() -> None:
    kind = DiscreteGaussian(Fraction(10**12))
    assert kind.spread > noise.WIDEST_TABLE
    sample = draw(kind, 200_000, SeededEntropy(4))
    for scale, right in ((10**6, True), (1.03 * 10**6, False), (0.97 * 10**6, False)):
        statistic = float(((sample / scale) ** 2).sum())
        assert (stats.chi2.isf(1 - 5e-7, len(sample)) < statistic < stats.chi2.isf(5e-7, len(sample))) == right


def test_events_that_floating_point_cannot_decide_are_decided_exactly() -> None:
    """Words next to the probability itself: the exact exponent must be asked for, and decides."""

    class Close:
        seed = None

        def words(self, count: int) -> NDArray[np.uint64]:
            return np.full(count, int(np.exp(-0.5) * 2.0**64), dtype=np.uint64)

    asked: list[int] = []

    def exact(at: int) -> Fraction:
        asked.append(at)
        return Fraction(1, 2)

    happen(Close(), np.array([0.5, 5.0]), exact)
    assert asked == [0]


def test_noise_agrees_with_opendp() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=7.5)([0] * 20_000))
    ours = draw(DiscreteGaussian(Fraction(15, 2) ** 2), 200_000, SeededEntropy(5))
    assert fits(theirs, DiscreteGaussian(Fraction(15, 2) ** 2))
    assert stats.ks_2samp(theirs, ours).pvalue > 1e-6


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 7), Fraction(1), Fraction(29, 3), Fraction(60)])
@pytest.mark.parametrize("bits", [16, 64, 200])
def test_enclosures_hold_the_exponential(exponent: Fraction, bits: int) -> None:
    mpmath = pytest.importorskip("mpmath")
    low, high = exp_minus(exponent)(bits)
    with mpmath.workprec(400):
        exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** bits
        assert low <= exact <= high
    assert high - low <= 2


def test_a_bernoulli_trial_has_its_probability() -> None:
    entropy = SeededEntropy(6)
    hits = sum(happens(entropy, exp_minus(Fraction(1, 2))) for _ in range(40_000))
    p = float(np.exp(-0.5))
    assert abs(hits - 40_000 * p) < 5 * sqrt(40_000 * p * (1 - p))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(9, 10), Fraction(95, 100), Fraction(999, 1000)])
def test_quantiles_are_the_least_that_reach_their_level(kind: Noise, level: Fraction) -> None:
    reach = int(60 * kind.spread) + 60
    cumulative = np.cumsum(probabilities(kind, reach))
    at = quantile(kind, level) + reach
    assert cumulative[at] >= float(level) - 1e-12
    assert cumulative[at - 1] < float(level) + 1e-12


def test_few_draws_and_many_draws_use_public_facts_to_choose_the_sampler() -> None:
    kind = DiscreteGaussian(Fraction(10_000))
    assert len(draw(kind, 0, SeededEntropy(0))) == 0
    assert len(draw(kind, 99, SeededEntropy(0))) == 99
    assert np.array_equal(draw(kind, 500, SeededEntropy(7)), draw(kind, 500, SeededEntropy(7)))


@pytest.mark.parametrize("wide", [DiscreteGaussian(Fraction(50_000**2)), DiscreteLaplace(Fraction(40_000))], ids=str)
def test_quantiles_of_very_wide_noise_are_bounds_and_close(wide: Noise) -> None:
    sample = draw(wide, 200_000, SeededEntropy(8)) if isinstance(wide, DiscreteGaussian) else None
    level = Fraction(95, 100)
    exact = stats.norm.isf(0.05) * wide.spread if isinstance(wide, DiscreteGaussian) else -40_000 * np.log(0.1)
    found = quantile(wide, level)
    assert found >= exact
    if sample is not None:
        assert 0.948 < (sample <= found).mean() < 0.952


def test_scales_at_the_edge() -> None:
    assert (draw(DiscreteLaplace(Fraction(1, 2000)), 100, SeededEntropy(0)) == 0).all()
    with pytest.raises(BadSetting, match="spend more"):
        DiscreteGaussian(Fraction(2**102))
