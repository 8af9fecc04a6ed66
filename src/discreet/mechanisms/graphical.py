"""AIM and MST: graphical models over marginals that were selected privately.

MST measures all attributes alone, then a spanning tree of pairs chosen one by one where the product of the singles errs
most, a third of the budget for each of the three steps.

AIM measures all attributes alone, then marginals chosen one by one from the workload and all its sub-marginals. The
score of a marginal is the error of the model in all its cells less the error that measuring it would leave, times how
much of the workload it bears upon. Only those are candidates whose model stays small, by the share of the budget that
is spent so far. Where a measurement taught little more than noise, the following rounds get four times the budget.

Both are described for add/remove neighbours; here every step is charged by the Curator for the neighbours in use, and
what is charged is what is measured. MST's merging of rare values is left out.

References: McKenna, Miklau, Sheldon (2021), "Winning the NIST contest"; McKenna, Mullins, Sheldon, Miklau (2022),
"AIM: an adaptive and iterative mechanism for differentially private synthetic data", Algorithms 1-3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import pi, sqrt

import numpy as np

from discreet import _check
from discreet.data.domain import Domain
from discreet.errors import BadWorkload
from discreet.mechanisms.adaptive import Outcome
from discreet.mechanisms.cover import closure
from discreet.mechanisms.job import Job
from discreet.models.elimination import megabytes
from discreet.models.graphical import GraphicalModel, package
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import MOST_CELLS, require_measurable
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload

_ROUNDS_EACH = 16
"""AIM's first rounds are sized for this many rounds per attribute."""

_MEASURING = Fraction(9, 10)
"""Share of a round of AIM that pays for its measurement."""

_MEAN_NOISE = sqrt(2 / pi)
"""Mean absolute value of Gaussian noise of deviation one."""


@dataclass(frozen=True)
class MstSettings:
    """Settings of `mst`.

    Attributes:
        steps: Steps of each fit.
        draws: Rows drawn from the model, which answers are counted from.
    """

    steps: int = 1000
    draws: int = 2**18

    def __post_init__(self) -> None:
        _check.whole("steps", self.steps)
        _check.whole("draws", self.draws)


@dataclass(frozen=True)
class AimSettings(MstSettings):
    """Settings of `aim`, those of `mst` and its own.

    Attributes:
        rounds: How many rounds the first ones are sized for; 16 for each attribute by default.
        megabytes: Largest model, once all of the budget is spent.
    """

    rounds: int | None = None
    megabytes: float = 80.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds is not None:
            _check.whole("rounds", self.rounds)
        _check.positive("megabytes", self.megabytes)


def check_mst(workload: Workload, _: MstSettings) -> None:
    """Refuse what does not fit, before anything is charged."""
    package()
    domain = workload.domain
    require_measurable(domain, [(name,) for name in domain])
    largest = sorted(combinations(domain, 2), key=lambda pair: domain.project(pair).size, reverse=True)
    require_measurable(domain, largest[: len(domain) - 1])  # a tree of pairs is measured together


def check_aim(workload: Workload, settings: AimSettings) -> None:
    """Refuse what does not fit, before anything is charged."""
    package()
    alone = megabytes(workload.domain, [(name,) for name in workload.domain])
    if alone > settings.megabytes:
        raise BadWorkload(
            f"A model of the attributes alone takes {alone:.3g} MB; at most {settings.megabytes:g} are allowed. Raise "
            "--set megabytes, or use coarser bins."
        )


def run_mst(curator: Curator, job: Job) -> Outcome:
    """Single attributes, then a tree of pairs."""
    settings: MstSettings = job.settings
    names = curator.domain.attributes
    third = job.rho / 3 if len(names) > 1 else job.rho  # of one attribute there is no pair to spend the rest on
    measured = curator.measure([(name,) for name in names], rho=third, label="measure every attribute")
    model = GraphicalModel.fit(curator.domain, curator.total, measured, steps=settings.steps)
    tree: list[Attributes] = []
    while len(tree) < len(names) - 1:
        tree += curator.select_marginals(
            _between(names, tree),
            against=model,
            rho=third / (len(names) - 1),
            label=f"select pair {len(tree) + 1} of {len(names) - 1}",
        )
    if tree:
        measured += curator.measure(tree, rho=third, label="measure the tree")
        job.progress.stage("fit a graphical model")
        model = GraphicalModel.fit(curator.domain, curator.total, measured, steps=settings.steps)
    return Outcome(model.draw(settings.draws, job.seed), measured, {"pairs": [list(pair) for pair in tree]})


def run_aim(curator: Curator, job: Job) -> Outcome:
    """Single attributes, then marginals of the workload where they are worth their price."""
    settings: AimSettings = job.settings
    domain = curator.domain
    candidates = closure(job.workload.marginals)
    bearing = [_bearing(candidate, job.workload) for candidate in candidates]
    alone = [(name,) for name in domain]
    each = job.rho / max(settings.rounds or _ROUNDS_EACH * len(domain), len(alone) + 1)
    left = job.rho - each * _MEASURING * len(alone)
    measured = curator.measure(alone, rho=each * _MEASURING * len(alone), label="measure every attribute")
    model = GraphicalModel.fit(domain, curator.total, measured, steps=settings.steps)
    chosen: list[Attributes] = list(alone)
    turn = 0
    while left > 0:
        turn += 1
        if left <= 2 * each:
            each = left
        left -= each
        job.progress.stage(f"round {turn}: {float(1 - left / job.rho):.0%} of the budget")
        noise = curator.neighbours.marginal_deviation(each * _MEASURING)
        allowed = settings.megabytes * float(1 - left / job.rho)
        fitting = _fitting(domain, candidates, chosen, allowed)
        (picked,) = curator.select_marginals(
            [candidates[at] for at in fitting],
            against=model,
            rho=each * (1 - _MEASURING),
            weights=[bearing[at] for at in fitting],
            handicaps=[_MEAN_NOISE * noise * domain.project(candidates[at]).size for at in fitting],
            label=f"round {turn}: select",
        )
        measured += curator.measure([picked], rho=each * _MEASURING, label=f"round {turn}: measure")
        chosen.append(picked)
        before = model.counts(picked)
        model = GraphicalModel.fit(domain, curator.total, measured, steps=settings.steps, start=model)
        if np.abs(model.counts(picked) - before).sum() <= _MEAN_NOISE * noise * len(before):
            each *= 4
    return Outcome(model.draw(settings.draws, job.seed), measured, {"rounds": turn})


def _fitting(
    domain: Domain, candidates: Sequence[Attributes], chosen: Sequence[Attributes], allowed: float
) -> list[int]:
    """Numbers of the candidates that keep the model this small, and of those that are in it already."""
    known = set(chosen)
    small = (each for each in enumerate(candidates) if domain.project(each[1]).size <= MOST_CELLS)
    return [at for at, each in small if each in known or megabytes(domain, [*chosen, each]) <= allowed]


def _bearing(candidate: Attributes, workload: Workload) -> float:
    """How much of the workload a marginal bears upon: attributes shared with each of its thresholds, weighted."""
    return sum(
        weight * len(set(candidate) & set(threshold.attributes))
        for threshold, weight in zip(workload, workload.weights, strict=True)
    )


def _between(names: Sequence[str], tree: Iterable[Attributes]) -> list[Attributes]:
    """Pairs of attributes that no path of the tree joins yet."""
    group = {name: {name} for name in names}
    for one, other in tree:
        merged = group[one] | group[other]
        for name in merged:
            group[name] = merged
    return [(one, other) for one, other in combinations(names, 2) if other not in group[one]]
