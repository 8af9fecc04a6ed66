"""Which thresholds people ask: k attributes drawn without replacement from a distribution over attributes.

Section 5.1 of Avent and Korolova (2023) describes this twice. A threshold's probability "corresponds to the
(normalized) product of the k features' probabilities; i.e., [it] is the sampling distribution of k features [...]
without replacement". These are two distributions: they agree only if k = 1, if all attributes are taken, or if all
are alike. Definition 5.2 has the second, and so have we (`successive`): one attribute after another, the
probabilities of those left renormalised each time. The published code has the first (`product`), kept for
comparing with its figures. It also draws its histories without repetition, where Definition 5.1 says i.i.d., and
could not draw the 1,024 thresholds of Table 5 from the 364 that ADULT has; here every draw is independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.errors import BadWorkload
from discreet.queries.features import Features, Seed, generator
from discreet.queries.threshold import Threshold

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ThresholdDistribution:
    """Thresholds on k attributes, with a fixed r.

    Attributes:
        features: Which attributes are likely.
        k: Attributes of each threshold.
        r: How many must match; k, a marginal, by default.
        sampling: `successive`, or `product` as in the published code.

    Example:
        >>> from discreet.queries.features import uniform
        >>> ThresholdDistribution(uniform(["age", "sex"]), k=2, r=1).draw(1, seed=0)
        (Threshold(1 of age x sex),)
    """

    features: Features
    k: int
    r: int | None = None
    sampling: str = "successive"

    def __post_init__(self) -> None:
        _check.whole("k", self.k)
        _check.one_of("sampling", self.sampling, _SAMPLERS)
        if self.k > len(self.features):
            raise BadWorkload(f"k = {self.k} attributes cannot be drawn from {len(self.features)}.")
        Threshold(self.features.names[: self.k], self.r)  # refuses an r that does not fit

    def draw(self, many: int, seed: Seed) -> tuple[Threshold, ...]:
        """Independent draws; repetitions stay, attributes in the order of the distribution's."""
        _check.whole("many", many, least=0)
        draw, _ = _SAMPLERS[self.sampling]
        p = np.array(self.features.probabilities)
        picked = np.sort(draw(p, self.k, many, generator(seed)), axis=1)
        return tuple(self._threshold(row) for row in picked.tolist())

    def every(self) -> Iterator[tuple[Threshold, float]]:
        """All possible thresholds with their exact probabilities."""
        _, probability = _SAMPLERS[self.sampling]
        p = np.array(self.features.probabilities)
        for chosen in combinations(range(len(self.features)), self.k):
            yield self._threshold(chosen), probability(p, chosen)

    def probability(self, threshold: Threshold) -> float:
        """Of one threshold, whatever the order of its attributes; 0 for one of another kind."""
        if len(threshold.attributes) != self.k or threshold.r != (self.r or self.k):
            return 0.0
        if not set(threshold.attributes) <= set(self.features.names):
            return 0.0
        _, probability = _SAMPLERS[self.sampling]
        chosen = tuple(self.features.names.index(name) for name in threshold.attributes)
        return probability(np.array(self.features.probabilities), chosen)

    def _threshold(self, chosen: list[int] | tuple[int, ...]) -> Threshold:
        return Threshold(tuple(self.features.names[at] for at in chosen), self.r)


def _draw_successive(p: Floats, k: int, many: int, generator: np.random.Generator) -> Ints:
    """Of exponential clocks with rates p, the first k to ring are k attributes drawn one after another."""
    rings = generator.exponential(size=(many, len(p))) / p
    return np.argsort(rings, axis=1)[:, :k]


def _successive(p: Floats, chosen: tuple[int, ...]) -> float:
    """Sum over the orders in which `chosen` can come, by the set of those that came before."""
    k, rest = len(chosen), float(np.delete(p, chosen).sum())
    reached = [1.0] + [0.0] * (2**k - 1)
    for came in range(2**k - 1):
        missing = [at for at in range(k) if not came >> at & 1]
        left = rest + sum(float(p[chosen[at]]) for at in missing)
        for at in missing:
            reached[came | 1 << at] += reached[came] * float(p[chosen[at]]) / left
    return reached[-1]


def _draw_product(p: Floats, k: int, many: int, generator: np.random.Generator) -> Ints:
    """Attribute by attribute: taken with the share that sets with it have among all sets still possible."""
    sums = _symmetric_sums(p, k)
    picked = np.zeros((many, k), dtype=np.int64)
    needed = np.full(many, k)
    for at, weight in enumerate(p / p.max()):
        with_it, every = weight * sums[at + 1, needed - 1] * (needed > 0), sums[at, needed]
        taken = (generator.random(many) * every < with_it) | (needed == len(p) - at)
        picked[taken, k - needed[taken]] = at
        needed -= taken
    return picked


def _product(p: Floats, chosen: tuple[int, ...]) -> float:
    return float(np.prod(p[list(chosen)] / p.max()) / _symmetric_sums(p, len(chosen))[0, -1])


def _symmetric_sums(p: Floats, k: int) -> Floats:
    """Entry (i, m): sum over all m-sets of attributes i, i+1, ... of their products; p relative to its largest."""
    sums = np.zeros((len(p) + 1, k + 1))
    sums[:, 0] = 1
    for at in reversed(range(len(p))):
        sums[at, 1:] = sums[at + 1, 1:] + p[at] / p.max() * sums[at + 1, :-1]
    return sums


_Draw = Callable[[Floats, int, int, np.random.Generator], Ints]
_Probability = Callable[[Floats, tuple[int, ...]], float]
_SAMPLERS: dict[str, tuple[_Draw, _Probability]] = {
    "successive": (_draw_successive, _successive),
    "product": (_draw_product, _product),
}
