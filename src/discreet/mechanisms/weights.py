"""MWEM and PEP: a distribution over the whole domain, or over public rows, moved towards what was measured.

Both select the queries on which the distribution errs most, measure them, and multiply weights; they differ in how far.
MWEM takes damped steps: with a measured answer a and the distribution's q(D), rows that match grow by exp(rate (a -
q(D))). That minimises  -rate * sum of D(x) q(x) (a - q(D_before)) + sum of D(x) log D(x)  over all steps so far. (Liu,
Vietri and Wu's appendix A.2-A.3 has the first sign wrong, which would move away from the measurements.) As published by
Hardt, Ligett and McSherry each measurement is used once, in its round, the rate is 1/2, and the average of all rounds'
distributions is released; going over all past measurements again in each round does better, and then the last
distribution is released (`--set passes=20`).

PEP projects: it takes the measurement that is violated most and moves to the distribution closest in relative entropy
which satisfies it, again and again (Algorithm 4). Rows that match are scaled by a / q(D), the others by (1 - a) / (1 -
q(D)). A whole marginal (`--set whole=true`, the marginal trick of appendix A.1) is satisfied in one step. One that is
measured again is held to the mean of all its measurements: no distribution satisfies two of them.

With a public table (`pmw-pub`, `pep-pub`) only its rows have weight, at first as often as they occur: nothing that it
lacks can be found, and the domain may be of any size.

References: Hardt, Ligett, McSherry (2012), "A simple and practical algorithm for differentially private data release";
Liu, Vietri, Wu (2021), "Iterative methods for private synthetic data", sections 3 and 4, appendices A, C and D.2; Liu,
Vietri, Steinke, Ullman, Wu (2021), "Leveraging public data for practical private query release", for PMW-Pub.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.mechanisms.adaptive import Model, Outcome, Schedule, adaptive, require_picks
from discreet.mechanisms.cover import cells_at
from discreet.mechanisms.job import Job
from discreet.models.support import Constraint, Distribution, Marginal, Single, Support, require_small
from discreet.models.targets import merged
from discreet.models.weighted import WeightedRows
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import Measurement, require_cells
from discreet.progress import Progress
from discreet.queries.answers import Answers
from discreet.queries.workload import Workload

Floats = NDArray[np.float64]

_FARTHEST = 30.0
"""Largest exponent of one step of MWEM. Only noise far larger than the table, or an absurd rate, asks for more, and
would leave what floats can hold."""

_LIGHTEST, _HEAVIEST, _FALLS = 1e-200, 1e100, 1e-3
"""A weight is never less than the first. Their sum is set to one again before it exceeds the second, and whenever one
step leaves less than the third of it: what is known of it then is mostly a difference of larger numbers."""

_FLOOR = 1e-6
"""Measured fractions are moved into [floor, 1 - floor]: a weight of zero would stay zero for ever."""


@dataclass(frozen=True)
class MwemSettings:
    """Settings of `mwem`.

    Attributes:
        rounds: T.
        per_round: K, queries selected in each round.
        rate: Step size; 1/2 as Hardt et al. have it, 1 in Liu et al.'s appendix.
        passes: How often each round goes over all measurements so far; 0 to use the round's own, once.
        whole: Measure the whole marginals of selected queries, for the price of two of their cells.
    """

    rounds: int = 50
    per_round: int = 1
    rate: float = 0.5
    passes: int = 0
    whole: bool = False

    def __post_init__(self) -> None:
        _check.whole("rounds", self.rounds)
        _check.whole("per_round", self.per_round)
        _check.positive("rate", self.rate)
        _check.whole("passes", self.passes, least=0)


@dataclass(frozen=True)
class PmwSettings(MwemSettings):
    """Settings of `pmw-pub`, those of `mwem`."""

    passes: int = 20


@dataclass(frozen=True)
class PepSettings:
    """Settings of `pep` and `pep-pub`.

    Attributes:
        rounds: T.
        per_round: K, queries selected in each round.
        steps: Most projections in a round.
        tolerance: Stop when no measurement is violated by more.
        whole: Measure the whole marginals of selected queries, for the price of two of their cells.
    """

    rounds: int = 50
    per_round: int = 1
    steps: int = 25
    tolerance: float = 0.0
    whole: bool = False

    def __post_init__(self) -> None:
        _check.whole("rounds", self.rounds)
        _check.whole("per_round", self.per_round)
        _check.whole("steps", self.steps)
        _check.fraction("tolerance", self.tolerance)


def run_mwem(curator: Curator, job: Job) -> Outcome:
    """Multiplicative weights."""
    return _run(curator, job, _Mwem(_start(curator, job), curator.total, job.settings))


def run_pep(curator: Curator, job: Job) -> Outcome:
    """Projection by exponential weights."""
    return _run(curator, job, _Pep(_start(curator, job), curator.total, job.settings))


def check(workload: Workload, settings: MwemSettings | PepSettings, mechanism: str) -> None:
    """Refuse what does not fit, before anything is charged."""
    require_small(workload.domain, mechanism)
    check_schedule(workload, settings)


def check_schedule(workload: Workload, settings: MwemSettings | PepSettings) -> None:
    """The same where the rows are those of a public table, however large the domain."""
    require_picks(workload, _schedule(workload, settings))
    if settings.whole:
        require_cells(cells_at(workload, workload.widest, settings.per_round))


def _start(curator: Curator, job: Job) -> Distribution:
    """Even weights on every combination of values, or the public table."""
    if job.public is None:
        return Distribution.even(Support(curator.domain))
    return Distribution.of_rows(curator.domain, job.public)


def _run(curator: Curator, job: Job, model: Model) -> Outcome:
    schedule = _schedule(job.workload, job.settings)
    return adaptive(curator, job.workload, model, rho=job.rho, schedule=schedule, progress=job.progress)


def _schedule(workload: Workload, settings: MwemSettings | PepSettings) -> Schedule:
    """Single queries, or the whole marginals that hold them."""
    order = workload.widest if settings.whole else None
    return Schedule(settings.rounds, settings.per_round, order=order, again=_again(settings))


def _again(settings: MwemSettings | PepSettings) -> bool:
    """Whether a query may be selected twice: a single damped step does not settle it."""
    return isinstance(settings, MwemSettings) and settings.passes == 0


class _Weights(Model):
    """A distribution over a support. Weights are kept with their sum, so that a step touches only what it changes."""

    def __init__(self, start: Distribution, total: int) -> None:
        self._support, self._total = start.support, total
        self._weights = start.weights.copy()
        self._constraints: list[Constraint] = []
        self._seen = 0

    def answers(self) -> Answers:
        return WeightedRows.publish(self._total, self._support, self._weights)

    def notes(self) -> dict[str, Any]:
        return {"weighed_rows": self._support.size}

    def _take(self, measurements: Sequence[Measurement]) -> list[Constraint]:
        """Constraints of the measurements that are new; earlier ones must come first."""
        new = [
            constraint
            for found in measurements[self._seen :]
            for constraint in self._support.constraints(found, self._total)
        ]
        self._seen = len(measurements)
        self._constraints += new
        return new


class _Mwem(_Weights):
    """Damped steps: once through the new measurements, or several times through all."""

    def __init__(self, start: Distribution, total: int, settings: MwemSettings) -> None:
        super().__init__(start, total)
        self._settings = settings
        self._sum, self._rounds = np.zeros(start.support.size), 0

    def fit(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        new = self._take(measurements)
        path = self._constraints * self._settings.passes or new
        progress.stage("multiplicative weights", len(path))
        total, lost = 1.0, False
        for number, constraint in enumerate(path):
            if lost or number % len(self._constraints) == 0:  # an error in it grows with every step that lowers it
                self._normalise()
                total = 1.0
            masses = constraint.masses(self._weights, total)
            steps = self._settings.rate * (constraint.measured - masses)
            factors = np.exp(np.clip(steps, -_FARTHEST, _FARTHEST))
            if isinstance(constraint, Single):
                factors[0] = 1.0  # the query's own step; rows that do not match stay
            constraint.scale(self._weights, factors)
            left = float(factors @ masses)
            total *= left
            lost = left < _FALLS or not 1 / _HEAVIEST < total < _HEAVIEST
            progress.step(number + 1)
        self._normalise()
        self._sum += self._weights
        self._rounds += 1

    def _normalise(self) -> None:
        """Let the weights sum to one, and none of them vanish."""
        np.maximum(self._weights, _LIGHTEST, out=self._weights)
        self._weights /= self._weights.sum()

    def published(self) -> Answers:
        if self._settings.passes:
            return self.answers()
        return WeightedRows.publish(self._total, self._support, self._sum / self._rounds)


class _Pep(_Weights):
    """Projections onto the measurement that is violated most."""

    def __init__(self, start: Distribution, total: int, settings: PepSettings) -> None:
        super().__init__(start, total)
        self._settings = settings
        self._steps: list[int] = []

    def fit(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        self._take(measurements)
        self._average(measurements)
        progress.stage("projection", self._settings.steps)
        steps = 0
        for steps in range(self._settings.steps + 1 if self._constraints else 0):
            now = [constraint.masses(self._weights, 1.0) for constraint in self._constraints]
            wanted = [
                constraint.feasible(_FLOOR, within=mass > 0)
                for constraint, mass in zip(self._constraints, now, strict=True)
            ]
            gaps = [float(np.abs(mass - want).max()) for mass, want in zip(now, wanted, strict=True)]
            at = int(np.argmax(gaps))
            if steps == self._settings.steps or gaps[at] <= self._settings.tolerance:
                break
            factors = np.divide(wanted[at], now[at], out=np.zeros_like(now[at]), where=now[at] > 0)
            self._constraints[at].scale(self._weights, factors)
            self._weights /= self._weights.sum()
            progress.step(steps + 1)
        self._steps.append(steps)

    def _average(self, measurements: Sequence[Measurement]) -> None:
        """Make the measurements of each marginal one constraint."""
        means = merged([found for found in measurements if found.cells is None])
        marginals = {one.attributes: one for one in self._constraints if isinstance(one, Marginal)}
        self._constraints = [
            *(replace(one, measured=means[names][0] / self._total) for names, one in marginals.items()),
            *(one for one in self._constraints if isinstance(one, Single)),
        ]

    def notes(self) -> dict[str, Any]:
        return {**super().notes(), "steps": self._steps}
