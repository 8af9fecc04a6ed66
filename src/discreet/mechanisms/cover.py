"""Covers: the marginals that stand in for those which are too large to be measured whole.

A marginal of many attributes has more cells than can be measured, and nearly all of its counts are far below the
noise. Its sub-marginals of fewer attributes say almost as much about it: on ADULT at epsilon 1, rows fitted to all
three-way marginals answer all five-way ones with a largest error of 0.011, and the three-way ones with 0.007.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from discreet.data.domain import Domain
from discreet.privacy.measurement import MOST_CELLS
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload


def cover(marginals: Mapping[Attributes, float], order: int) -> dict[Attributes, float]:
    """Each marginal of at most `order` attributes, and for each larger one all its sub-marginals of that order.

    Args:
        marginals: Attributes and how much an error there matters.
        order: Most attributes of a marginal that is kept.

    Returns:
        Every marginal once, with the largest weight asked of it.
    """
    covering: dict[Attributes, float] = {}
    for attributes, weight in marginals.items():
        for kept in combinations(attributes, min(order, len(attributes))):
            covering[kept] = max(weight, covering.get(kept, 0.0))
    return covering


def closure(marginals: Iterable[Attributes]) -> list[Attributes]:
    """Marginals and all their sub-marginals, each once, smallest first."""
    every = {
        subset
        for attributes in marginals
        for width in range(1, len(attributes) + 1)
        for subset in combinations(attributes, width)
    }
    return sorted(every, key=lambda subset: (len(subset), subset))


def largest_order(workload: Workload, picks: int | None) -> int:
    """The largest order at which what is measured together has at most MOST_CELLS cells, or else 1.

    Args:
        workload: Public.
        picks: How many thresholds are measured together; None for all of them.
    """
    fitting = (order for order in range(workload.widest, 1, -1) if cells_at(workload, order, picks) <= MOST_CELLS)
    return next(fitting, 1)


def cells_at(workload: Workload, order: int, picks: int | None) -> int:
    """Most cells that are measured together at this order."""
    domain = workload.domain
    if picks is None:
        return cells_of(domain, cover(workload.marginals, order))
    covers = (cover({subset: 1.0 for _, subset in threshold.terms()}, order) for threshold in workload)
    return sum(sorted(cells_of(domain, covering) for covering in covers)[-picks:])


def cells_of(domain: Domain, marginals: Iterable[Attributes]) -> int:
    """Cells of some marginals in all."""
    return sum(domain.project(attributes).size for attributes in marginals)
