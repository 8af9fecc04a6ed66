"""Past: histories and futures drawn from distributions over attributes, as section 5 of the paper has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from discreet.data.domain import Domain
from discreet.experiments.experiment import Setting
from discreet.queries.distribution import ThresholdDistribution
from discreet.queries.features import Features, geometric, uniform, zipf
from discreet.queries.history import History

DISTRIBUTIONS: dict[str, Callable[[Iterable[str]], Features]] = {
    "uniform": uniform,
    "zipf": zipf,
    "geometric": geometric,
}


def features(domain: Domain, setting: Setting, seed: int) -> Features:
    """What people asked about: the distribution's probabilities, given to the attributes in a random order."""
    return DISTRIBUTIONS[setting["distribution"]](domain.attributes).shuffled(_generator(seed, 0))


def history(domain: Domain, setting: Setting, asked_about: Features, seed: int) -> History:
    """What was asked: independent draws."""
    return _drawn(domain, setting, asked_about, setting["history"], _generator(seed, 1))


def future(domain: Domain, setting: Setting, asked_about: Features, seed: int) -> History:
    """What will be asked: further draws, independent of the history's."""
    return _drawn(domain, setting, asked_about, setting["draws"], _generator(seed, 2))


def _drawn(
    domain: Domain, setting: Setting, asked_about: Features, many: int, generator: np.random.Generator
) -> History:
    return History(domain, ThresholdDistribution(asked_about, setting["k"], setting["r"]).draw(many, generator))


def _generator(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, stream])
