from __future__ import annotations

from itertools import permutations
from math import comb, prod

import pytest

from discreet.errors import BadSetting, BadWorkload
from discreet.queries.distribution import ThresholdDistribution
from discreet.queries.features import Features, geometric, uniform
from discreet.queries.threshold import Threshold

NAMES = ("a", "b", "c", "d", "e")
SAMPLINGS = ("successive", "product")


def one_after_another(features: Features, names: tuple[str, ...]) -> float:
    """Straight from the description: draw, renormalise, draw again, in any order."""
    total = 0.0
    for order in permutations(names):
        chance, left = 1.0, 1.0
        for name in order:
            chance *= features[name] / left
            left -= features[name]
        total += chance
    return total


def test_probabilities_of_successive_draws() -> None:
    features = geometric(NAMES, 0.6)
    for k in (1, 2, 3, 4):
        for threshold, chance in ThresholdDistribution(features, k).every():
            assert chance == pytest.approx(one_after_another(features, threshold.attributes))


def test_probabilities_in_proportion_to_products() -> None:
    features = geometric(NAMES, 0.6)
    listed = list(ThresholdDistribution(features, 3, sampling="product").every())
    products = [prod(features[name] for name in threshold.attributes) for threshold, _ in listed]
    assert [chance for _, chance in listed] == pytest.approx([value / sum(products) for value in products])


def test_the_two_readings_of_the_paper_differ_unless_all_attributes_are_alike() -> None:
    for features, agree in ((uniform(NAMES), True), (geometric(NAMES), False)):
        one, other = (
            [chance for _, chance in ThresholdDistribution(features, 2, sampling=sampling).every()]
            for sampling in SAMPLINGS
        )
        assert (one == pytest.approx(other)) is agree


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_draws_are_thresholds_of_the_kind_asked_for(sampling: str) -> None:
    distribution = ThresholdDistribution(geometric(NAMES), 3, 2, sampling)
    drawn = distribution.draw(50, 1)
    assert len(drawn) == 50
    assert len(set(drawn)) < 50
    assert all(len(set(threshold.attributes)) == 3 and threshold.r == 2 for threshold in drawn)
    assert drawn == distribution.draw(50, 1) != distribution.draw(50, 2)
    assert distribution.draw(0, 1) == ()
    assert len(list(distribution.every())) == comb(5, 3)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_all_attributes_and_extreme_weights(sampling: str) -> None:
    whole = ThresholdDistribution(geometric(NAMES), 5, sampling=sampling)
    assert dict(whole.every()) == pytest.approx({Threshold(NAMES): 1.0})
    assert set(whole.draw(20, 0)) == {Threshold(NAMES)}
    steep = ThresholdDistribution(Features({"a": 1.0, "b": 1e-290, "c": 1e-300}), 2, sampling=sampling)
    assert set(steep.draw(20, 0)) == {Threshold(("a", "b"))}


def test_probability_of_one_threshold() -> None:
    distribution = ThresholdDistribution(geometric(NAMES), 2, 1)
    for threshold, chance in distribution.every():
        assert distribution.probability(Threshold(threshold.attributes[::-1], 1)) == pytest.approx(chance)
    for other in (Threshold(("a", "b")), Threshold(("a",)), Threshold(("a", "z"), 1)):
        assert distribution.probability(other) == 0


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(BadWorkload, match="k = 6 attributes cannot be drawn from 5"):
        ThresholdDistribution(uniform(NAMES), 6)
    for r in (0, 4, -1):
        with pytest.raises(BadWorkload, match="r must be"):
            ThresholdDistribution(uniform(NAMES), 3, r)
    for k in (0, -1, 2.5, True):
        with pytest.raises(BadSetting, match="k must be"):
            ThresholdDistribution(uniform(NAMES), k)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="sampling must be one of successive, product"):
        ThresholdDistribution(uniform(NAMES), 2, sampling="magic")
    with pytest.raises(BadSetting, match="many"):
        ThresholdDistribution(uniform(NAMES), 2).draw(-1, 0)
    for draw in (ThresholdDistribution(uniform(NAMES), 2).draw, uniform(NAMES).drifted):
        with pytest.raises(BadSetting, match="seed must be a whole number"):
            draw(1, seed=-1)
