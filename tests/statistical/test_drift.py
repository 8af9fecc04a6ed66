"""Draws have the distribution they claim, and intervals cover as often as they say; wrong ones are noticed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from discreet.confidence import mean_of
from discreet.data.domain import Domain
from discreet.queries.distribution import ThresholdDistribution
from discreet.queries.features import Features, geometric, total_variation, uniform, zipf
from discreet.queries.history import History
from discreet.queries.outlook import missing_mass_at_most
from discreet.queries.threshold import Threshold

NAMES = ("a", "b", "c", "d", "e", "f")
DRAWS = 100_000
REJECT = 1e-6
SAMPLINGS = ("successive", "product")


def p_value(drawn: tuple[Threshold, ...], claimed: ThresholdDistribution) -> float:
    counted, every = Counter(drawn), list(claimed.every())
    expected = [chance * len(drawn) for _, chance in every]
    return float(stats.chisquare([counted[threshold] for threshold, _ in every], expected).pvalue)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("features", [uniform(NAMES), zipf(NAMES), geometric(NAMES)])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_thresholds_are_drawn_with_their_exact_probabilities(features: Features, k: int, sampling: str) -> None:
    distribution = ThresholdDistribution(features, k, sampling=sampling)
    assert p_value(distribution.draw(DRAWS, 0), distribution) > REJECT


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_other_distributions_would_be_noticed(sampling: str) -> None:
    drawn = ThresholdDistribution(geometric(NAMES), 3, sampling=sampling).draw(DRAWS, 0)
    (other,) = set(SAMPLINGS) - {sampling}
    for wrong in (
        ThresholdDistribution(geometric(NAMES), 3, sampling=other),
        ThresholdDistribution(geometric(NAMES, 0.27), 3, sampling=sampling),
        ThresholdDistribution(zipf(NAMES), 3, sampling=sampling),
    ):
        assert p_value(drawn, wrong) < REJECT


def test_half_drift_is_an_even_shuffle_and_less_is_not() -> None:
    features = Features({"a": 4, "b": 3, "c": 2, "d": 1})
    for gamma, even in ((0.5, True), (0.45, False)):
        generator = np.random.default_rng(0)
        counted = Counter(features.drifted(gamma, generator).probabilities for _ in range(24_000))
        looks_even = len(counted) == 24 and stats.chisquare(list(counted.values())).pvalue > REJECT
        assert bool(looks_even) is even


def test_expected_total_variation_grows_with_gamma() -> None:
    """About 0.5 for ADULT's 14 at gamma 0.4, as in section 5.3.3; for the 48 of LOANS at 0.1 it is 0.27, not 0.5."""

    def expected(attributes: int, gamma: float) -> float:
        features, generator = geometric([f"a{i}" for i in range(attributes)]), np.random.default_rng(0)
        return float(np.mean([total_variation(features, features.drifted(gamma, generator)) for _ in range(1000)]))

    found = [expected(14, gamma) for gamma in (0, 0.1, 0.2, 0.4, 0.5, 0.75, 1)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[3] == pytest.approx(0.467, abs=0.015)
    assert expected(48, 0.1) == pytest.approx(0.272, abs=0.015)
    assert expected(48, 0.2) == pytest.approx(0.477, abs=0.015)


def coverage(confidence: float, draws: int) -> float:
    """Share of 4,000 intervals that hold the true mean of errors whose largest is ten times the smallest."""
    generator, errors = np.random.default_rng(0), np.linspace(0.002, 0.02, 30)
    chances = 0.9 ** np.arange(30.0)
    chances /= chances.sum()
    truth, held = float(errors @ chances), 0
    for _ in range(4000):
        counts = generator.multinomial(draws, chances)
        found = mean_of(errors.tolist(), counts.tolist(), confidence=confidence)
        assert found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
    return held / 4000


@pytest.mark.parametrize("draws", [20, 100])
def test_intervals_of_future_error_cover_about_as_often_as_they_say(draws: int) -> None:
    """Five standard deviations of 4,000 replays are 0.017; skewness costs a little at 20 draws."""
    assert 0.925 <= coverage(0.95, draws) <= 0.968


def test_intervals_that_are_too_short_would_be_noticed() -> None:
    assert coverage(0.9, 100) < 0.925


def test_the_bound_on_what_was_never_asked_holds() -> None:
    """In 400 histories of each size the true missing mass exceeds its bound in at most 5 %; its estimate, in more."""
    domain = Domain(dict.fromkeys(NAMES, 2))
    distribution = ThresholdDistribution(geometric(NAMES), 3)
    chances = dict(distribution.every())
    above_estimate = 0
    for draws, wide in ((4, 1.0), (20, 0.95), (100, 0.3), (1000, 0.03)):
        generator = np.random.default_rng(0)
        exceeded, bounds = 0, []
        for _ in range(400):
            past = History(domain, distribution.draw(draws, generator))
            bounds.append(missing_mass_at_most(past))
            missing = sum(chance for threshold, chance in chances.items() if threshold not in past.counts)
            exceeded += missing > bounds[-1]
            above_estimate += missing > list(past.counts.values()).count(1) / past.size
        assert exceeded <= 20
        assert np.mean(bounds) <= wide
    assert above_estimate > 80
