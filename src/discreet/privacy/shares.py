"""How budgets are shared between marginals, and how scores are weighed: in whole numbers, from public facts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.errors import BadSetting
from discreet.queries.workload import Workload

SELECTION_GRID = 2**4
"""Scores are whole multiples of 1/SELECTION_GRID of a row, so that many queries share each score.

The tables of thresholds with r < k are dense: with any of those in a workload, scores are whole rows.
"""

_FINEST_WEIGHT = 2**10
"""Weights of a workload are rounded to multiples of the largest divided by this (at least one of them)."""


def shares(weights: Sequence[float] | None, costs: Sequence[int]) -> list[Fraction]:
    """Shares of the budget that sum to one: in proportion to weight and cost, so equal weights mean equal noise."""
    exact = [Fraction(1)] * len(costs) if weights is None else [Fraction(weight) for weight in weights]
    if len(exact) != len(costs) or min(exact) <= 0:
        raise BadSetting("There must be one positive weight for each marginal.")
    priced = [weight * cost for weight, cost in zip(exact, costs, strict=True)]
    whole = sum(priced)
    return [share / whole for share in priced]


def whole_weights(weights: Sequence[float]) -> list[int]:
    """Weights as integers in proportion, up to rounding; all 1 where they are equal."""
    rounded = [max(1, round(weight / max(weights) * _FINEST_WEIGHT)) for weight in weights]
    return rounded if len(set(rounded)) > 1 else [1] * len(rounded)


def grid_of(workload: Workload) -> int:
    """The grid on which scores lie."""
    return SELECTION_GRID if all(threshold.is_marginal for threshold in workload) else 1
