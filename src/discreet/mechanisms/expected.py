"""Expected largest errors, before anything is measured.

Where answers are noise and nothing else, the noise says how large the largest error will be. Where a model is fitted,
nobody knows beforehand: the rules here are rules of thumb, fitted to what was measured on public tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import erfc, exp, sqrt

_EULER = 0.5772156649015329

_FACTORS, _POWER = {"auto": 0.4, "auto, residuals": 0.6, "rap": 0.48}, 0.73
"""Largest error by the noise on the least precise marginal that no other contains, both as fractions of the rows:
factor * noise^power.

Marginals put together from residuals share their noise: that of the smaller ones does not average out.

Within a factor of two of what was found on ADULT, ADULT in bins, ADULT reduced and NLTCS at epsilon 0.1 and 1; on LOANS
and SALARY, where few of many cells hold most of the table, errors were up to three times as large with `auto`, and more
than four times with `rap` (`python -m benchmarks forecasts`)."""

_ROOTS = {
    "rap-paper": 0.48,
    "rap-softmax": 0.43,
    "gem": 0.46,
    "mwem": 2.8,
    "pep": 0.33,
    "dualquery": 0.97,
    "fem": 1.65,
    "mst": 0.55,
    "aim": 0.28,
}
"""Largest error over the square root of that of `auto`. Mechanisms that look at a query or a pair at a time gain less
from a larger budget; their ratio to `auto` itself is anything between 1.5 and 100. Geometric means over ADULT reduced
at epsilon 1 (docs/family.md), NLTCS at epsilon 0.1 and 1, and for `rap-paper` ADULT (docs/benchmarks.md) and NLTCS;
some had fewer rounds than usual. Most of what was found later lies within a factor of two, on LOANS and SALARY several
times as high, and with whole marginals down to a third; docs/plan.md has the ranges."""

_LIKE = {"rap-search": "rap-paper", "gem-pub": "gem", "pmw-pub": "pep", "pep-pub": "pep"}
"""What was not measured is taken for what is most alike. A public table may help by any amount, or not at all."""


def of_noise(noise: Iterable[tuple[float, int]]) -> float:
    """Expected largest of independent normal deviates, from pairs of their deviation and number, by size.

    About where exp(-0.577) of them are expected to lie above: the mean of Gumbel's distribution.
    """
    many: Counter[float] = Counter()
    for deviation, number in noise:
        many[deviation] += number
    del many[0.0]
    low, high = 0.0, 40 * max(many, default=0.0)
    for _ in range(50):
        middle = (low + high) / 2
        above = sum(number * erfc(middle / (deviation * sqrt(2))) for deviation, number in many.items())
        low, high = (middle, high) if above > exp(-_EULER) else (low, middle)
    return low


def of_fit(deviation: float, name: str = "auto") -> float:
    """Largest error of rows fitted to whole marginals with noise of this deviation, as fractions of the rows."""
    return min(1.0, _FACTORS[name] * float(deviation**_POWER))


def of_others(name: str, auto: float) -> float:
    """Largest error of another mechanism, by that of `auto`."""
    return min(1.0, _ROOTS[_LIKE.get(name, name)] * sqrt(auto))
