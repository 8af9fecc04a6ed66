"""Which attributes people ask about: distributions over attributes, their drift, and how far apart two are.

Reference: Avent and Korolova (2023), section 5.1. F there is `Features` here; gamma keeps its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.errors import BadSetting, UnknownAttribute

Floats = NDArray[np.float64]
Seed = int | np.random.Generator


@dataclass(frozen=True)
class Features:
    """A distribution over attributes.

    Attributes:
        names: Distinct attributes, in the order given.
        probabilities: Of each; positive, adding up to one.

    Example:
        >>> Features({"age": 3, "sex": 1}).probabilities
        (0.75, 0.25)
    """

    names: tuple[str, ...]
    probabilities: tuple[float, ...]

    def __init__(self, weights: Mapping[str, float]) -> None:
        if not weights:
            raise BadSetting("A distribution over attributes needs at least one attribute.")
        for name, weight in weights.items():
            _check.positive(f"The weight of {name!r}", weight)
        total = sum(weights.values())
        _check.positive("The sum of the weights", total)
        probabilities = tuple(weight / total for weight in weights.values())
        if not min(probabilities):
            raise BadSetting("The weights of a distribution lie too far apart: the smallest vanish beside the largest.")
        object.__setattr__(self, "names", tuple(weights))
        object.__setattr__(self, "probabilities", probabilities)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> float:
        """Probability of one attribute."""
        if name not in self.names:
            raise UnknownAttribute(f"There is no attribute {name!r} in this distribution over {', '.join(self.names)}.")
        return self.probabilities[self.names.index(name)]

    def shuffled(self, seed: Seed) -> Features:
        """The same probabilities, given to the attributes in a random order."""
        order = generator(seed).permutation(len(self))
        return self._with(np.array(self.probabilities)[order])

    def drifted(self, gamma: float, seed: Seed) -> Features:
        """What people will ask about, if that drifts by `gamma` from what they asked about: Definition 5.2.

        With the attributes in descending order of probability, p_1 >= ... >= p_d, each p_i gets the key

            k_i = (1 - 2 gamma) (d - i) / (d - 1)  +  (1 - |1 - 2 gamma|) u_i,     u_i uniform on [0, 1],

        and the j-th attribute then gets the probability with the j-th largest key. So 0 changes nothing, 1/2
        shuffles evenly, and 1 reverses the order, which no other rearrangement exceeds in total variation.

        The definition calls every gamma above 0 drifting. But neighbouring keys lie (1 - 2 gamma) / (d - 1) apart
        before 2 gamma u_i is added, so nothing at all moves while gamma < 1 / (2 d), and likewise the reversal is
        certain once gamma > 1 - 1 / (2 d). One attribute, where the formula divides by zero, cannot drift.

        Args:
            gamma: From 0 to 1.
            seed: Of the u_i; a generator, or a number.
        """
        keys = drift_keys(gamma, generator(seed).random(len(self)))
        falling = np.argsort(-np.array(self.probabilities), kind="stable")
        changed = np.empty(len(self))
        changed[falling] = np.array(self.probabilities)[falling][np.argsort(-keys, kind="stable")]
        return self._with(changed)

    def _with(self, probabilities: Floats) -> Features:
        """The same masses, moved: not divided by their sum again, which may differ from one in the last digit."""
        moved = object.__new__(Features)
        object.__setattr__(moved, "names", self.names)
        object.__setattr__(moved, "probabilities", tuple(probabilities.tolist()))
        return moved


def generator(seed: Seed) -> np.random.Generator:
    """What draws: a generator as it is, or a new one from a number."""
    if not isinstance(seed, np.random.Generator):
        _check.whole("seed", seed, least=0)
    return np.random.default_rng(seed)


def drift_keys(gamma: float, u: Floats) -> Floats:
    """The keys of Definition 5.2 for u_1 .. u_d."""
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 <= gamma <= 1:
        raise BadSetting(f"gamma must be a number from 0 (no drift) to 1 (the reverse order), not {gamma!r}.")
    d = len(u)
    relative_order = np.arange(d - 1, -1, -1) / max(1, d - 1)
    return np.asarray((1 - 2 * gamma) * relative_order + (1 - abs(1 - 2 * gamma)) * u)


def uniform(names: Iterable[str]) -> Features:
    """All attributes alike."""
    return _ranked(names, lambda _: 1.0)


def zipf(names: Iterable[str], exponent: float = 1.0) -> Features:
    """Probability of the i-th attribute in proportion to i^-exponent: mildly concentrated, heavy tail.

    The paper does not print its exponent; 1 is Zipf's own.
    """
    _check.positive("exponent", exponent)
    return _ranked(names, lambda rank: float(rank) ** -exponent)


def geometric(names: Iterable[str], p: float = 0.25) -> Features:
    """Probability of the i-th attribute in proportion to (1 - p)^i: highly concentrated.

    The paper does not print its parameter; 1/4 is what its published code uses.
    """
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 < p < 1:
        raise BadSetting(f"p must lie strictly between 0 and 1, not {p!r}.")
    return _ranked(names, lambda rank: (1 - p) ** (rank - 1))


def total_variation(one: Features, other: Features) -> float:
    """Largest difference in the probability of any set of attributes: half the L1 distance."""
    if set(one.names) != set(other.names):
        raise BadSetting("Total variation needs two distributions over the same attributes.")
    return fsum(abs(one[name] - other[name]) for name in one.names) / 2


def _ranked(names: Iterable[str], weight: Callable[[int], float]) -> Features:
    listed = list(names)
    if len(set(listed)) != len(listed):
        raise BadSetting("The attributes of a distribution must be distinct.")
    return Features({name: weight(rank) for rank, name in enumerate(listed, start=1)})
