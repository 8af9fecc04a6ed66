"""ResidualPlanner: the best Gaussian noise for a set of marginals, in closed form.

Every marginal of the workload is the sum of residuals, one for each subset of its attributes, and residuals of
different subsets are orthogonal. Each is measured once, with noise of its own, and all marginals are put together from
them. The variance of a cell is then a weighted sum of the variances of residuals, and so is any average of those over
the workload: sum of v_A sigma_A^2. With what one person can change in a residual as its cost c_A, the smallest sum for
a given sum of c_A / sigma_A^2 has sigma_A^2 in proportion to sqrt(c_A / v_A).

The largest variance of a cell is the largest such average over ways to weigh the marginals, so those are found by
multiplying each weight with the variance that it leads to, over and over: no weights give a smaller largest variance
than the average that they have themselves, which says when to stop.

The variances are planned as if each residual were changed as much as possible; what is charged is what can be changed
in all of them together (`Neighbours.residuals_squared`), and the noise is scaled to spend the budget by that.

Reference: Xiao, He, Zhang, Kifer (2023), "An Optimal and Scalable Matrix Mechanism for Noisy Marginals under Convex
Loss Functions", where costs are those of add/remove neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.data.domain import Domain
from discreet.mechanisms.adaptive import Outcome
from discreet.mechanisms.job import Job
from discreet.models.residuals import ResidualCounts, assembled_variance, share, subsets
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import require_cells, require_measurable
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.scales import of_residuals
from discreet.privacy.shares import shares
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload

Floats = NDArray[np.float64]

OBJECTIVES = ("total", "largest")
"""What is minimised: the sum of the variances of all cells, or the largest variance of a cell."""

_CLOSE = 1.001
"""The largest variance is within this factor of the least possible one."""

_MOST_TURNS = 5000

_LEAST = 2.0**-40
"""Weights are at least this, relative to the largest."""


@dataclass(frozen=True)
class Settings:
    """Settings of `residual-planner`.

    Attributes:
        objective: `total` to minimise the sum of the variances of all cells of the workload's marginals, each times
            the square of its weight; `largest` to minimise the largest of them.
    """

    objective: str = "total"

    def __post_init__(self) -> None:
        _check.one_of("objective", self.objective, OBJECTIVES)


def check(workload: Workload, _: Settings) -> None:
    """Refuse what does not fit, before anything is charged."""
    domain = workload.domain
    require_measurable(domain, workload.marginals)
    for marginal in workload.marginals:  # those of one marginal alone may be too many to list
        require_cells(prod(size + 1 for size in domain.project(marginal).sizes if size > 1) - 1)
    require_measurable(domain, residuals_of(workload))


def drawable(workload: Workload, settings: Settings, rho: Fraction, neighbours: Neighbours) -> None:
    """Refuse noise that is too wide."""
    planned = plan(workload, neighbours, objective=settings.objective)
    if planned:
        of_residuals(workload.domain, neighbours, list(planned), rho, list(planned.values()))


def run(curator: Curator, job: Job) -> Outcome:
    """Measure the residuals, and put the marginals together."""
    planned = plan(job.workload, curator.neighbours, objective=job.settings.objective)
    measured = []
    if planned:
        measured = curator.measure_residuals(
            list(planned), rho=job.rho, weights=list(planned.values()), label="measure every residual"
        )
    answers = ResidualCounts(curator.domain, curator.total, measured, total_variance=float(curator.total_variance))
    largest = max(answers.variance(marginal) for marginal in job.workload.marginals)
    notes = {"residuals": len(measured), "largest_deviation": largest**0.5}
    return Outcome(answers, measured, notes)


@lru_cache(maxsize=4)
def plan(workload: Workload, neighbours: Neighbours, *, objective: str = "total") -> Mapping[Attributes, float]:
    """Precisions 1 / sigma^2 of residuals, relative to each other, that are best for a workload; public facts only."""
    domain, marginals = workload.domain, workload.marginals
    number = {names: at for at, names in enumerate(residuals_of(workload))}
    if not number:
        return {}
    costs = np.array([float(neighbours.residual_squared(domain.project(names).sizes)) for names in number])
    pairs = [(number[names], at) for at, marginal in enumerate(marginals) for names in subsets(domain, marginal)]
    inside, of = np.array(pairs).T
    listed, residuals = list(marginals), list(number)
    parts = np.array([share(domain, residuals[one], listed[at]) for one, at in pairs])
    weights = np.maximum(np.array(list(marginals.values())) / max(marginals.values()), _LEAST) ** 2

    def best(averaged: Floats) -> Floats:
        """Precisions for the least of such an average over marginals, at a cost of one."""
        through = np.bincount(inside, weights=averaged[of] * parts, minlength=len(costs))
        return np.asarray(np.sqrt(through / costs) / np.sqrt(through * costs).sum())

    def variances(precisions: Floats) -> Floats:
        """Of a cell of each marginal, times the square of its weight."""
        return weights * np.bincount(of, weights=parts / precisions[inside], minlength=len(weights))

    if objective == "total":
        found = best(weights * np.array([domain.project(marginal).size for marginal in marginals]))
    else:
        found = _least_largest(lambda averaged: best(averaged * weights), variances, len(weights))
    relative = np.maximum(found / found.max(), _LEAST)
    short = relative.astype(np.float32)  # short fractions, for exact arithmetic
    return {names: float(each) for names, each in zip(residuals, short, strict=True)}


def _least_largest(best: Callable[[Floats], Floats], variances: Callable[[Floats], Floats], many: int) -> Floats:
    """Precisions with the least largest variance, from the best ones for any average of the variances."""
    averaged = np.full(many, 1 / many)
    least, found = np.inf, best(averaged)
    for _ in range(_MOST_TURNS):
        tried = best(averaged)
        each = variances(tried)
        if each.max() < least:
            least, found = each.max(), tried
        average = float(averaged @ each)  # nothing has a smaller largest variance than this
        if least <= _CLOSE * average:
            break
        averaged = np.maximum(averaged * each / average, _LEAST / many)
        averaged /= averaged.sum()
    return found


def variances(
    planned: Mapping[Attributes, float],
    marginals: Iterable[Attributes],
    *,
    domain: Domain,
    neighbours: Neighbours,
    rho: Fraction,
) -> dict[Attributes, float]:
    """Of the noise in a cell of each marginal, in rows, where the number of rows is public; public facts only.

    Args:
        planned: Residuals, and the precision of each relative to the others.
        marginals: Whose residuals are among them.
        domain: Public.
        neighbours: Which tables must be hard to tell apart.
        rho: Loss to spend.
    """
    if not planned:
        return dict.fromkeys(marginals, 0.0)
    parts = dict(zip(planned, shares(list(planned.values()), [1] * len(planned)), strict=True))
    changed = neighbours.residuals_squared(dict(zip(domain, domain.sizes, strict=True)), parts)
    each = {names: float(changed / (2 * rho * part)) for names, part in parts.items()}
    return {marginal: assembled_variance(domain, each, [(1, marginal)]) for marginal in marginals}


def residuals_of(workload: Workload) -> list[Attributes]:
    """Every residual that the workload's marginals are made of, once."""
    return list(dict.fromkeys(names for every in workload.marginals for names in subsets(workload.domain, every)))
