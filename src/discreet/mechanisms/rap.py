"""Relaxed adaptive projection: `rap-paper` as published, and `rap`, the best we can make of the idea.

As published (Aydore et al. 2021, Algorithm 2; Avent and Korolova 2023, Algorithms 1-3), each of T rounds selects K
queries with half of its budget, measures each of them alone with the other half, and projects onto relaxed rows by
projected Adam. With T = 1 everything is measured and nothing selected.

`rap` keeps the model and changes what is paid for and how it is fitted. A whole marginal costs no more than two of
its cells, so marginals are measured whole and charged jointly; everything at once by default, or those that hold
selected queries when rounds are asked for. The fit weighs marginals by their precision, starts from the last round's
rows, and stops by an unbiased estimate of its own risk (`discreet.models.fit`). Marginals too large to be measured
are covered by smaller ones (`discreet.mechanisms.cover`).

Both answer small workloads by the relaxed rows themselves, and large ones by ordinary rows drawn from them, whose
answers are sparse: then the cost of a round does not depend on the number of queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import _check
from discreet.data.domain import Domain
from discreet.mechanisms import answering, auto
from discreet.mechanisms.adaptive import Model, Outcome, Schedule, adaptive, require_picks
from discreet.mechanisms.cover import cells_at, largest_order
from discreet.mechanisms.job import Job
from discreet.models import fit, projection, start, transform
from discreet.models.fit import FitSettings
from discreet.models.projection import ProjectionSettings
from discreet.models.relaxed import RelaxedRows
from discreet.models.targets import targets
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import Measurement, require_cells, require_measurable
from discreet.progress import Progress
from discreet.queries.answers import Answers
from discreet.queries.workload import Workload

_PER_ROUND = 16


@dataclass(frozen=True)
class Settings(auto.FittedSettings):
    """Settings of `rap`: those of `auto`, and rounds.

    Attributes:
        rounds: T. One round without `per_round` measures every marginal at once and selects nothing.
        per_round: K, queries selected in each round; 16 where there are several rounds.
    """

    rounds: int = 1
    per_round: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_schedule(self)


@dataclass(frozen=True)
class PaperSettings:
    """Settings of `rap-paper`, with the published constants.

    Attributes:
        rounds: T. One round without `per_round` measures every query at once and selects nothing.
        per_round: K, queries selected in each round; 16 where there are several rounds.
        rows: n', relaxed rows.
        rate: Adam's learning rate.
        steps: Most steps of one projection.
        tolerance: Stop when a step improves the loss by less than this share of it.
        transform: sparsemax, softmax or box.
        whole: Measure the whole marginals of selected queries, for the price of two of their cells.
        answers: relaxed, rounded, or auto: relaxed up to 2^28 queries, and 2^24 of a threshold with r < k.
        copies: Ordinary rows drawn from each relaxed row where answers are rounded.
    """

    rounds: int = 16
    per_round: int | None = None
    rows: int = 1000
    rate: float = 0.001
    steps: int = 5000
    tolerance: float = 1e-7
    transform: str = "sparsemax"
    whole: bool = False
    answers: str = "auto"
    copies: int = 256

    def __post_init__(self) -> None:
        answering.check_settings(self)
        _check_schedule(self)
        _check.positive("rate", self.rate)
        _check.whole("steps", self.steps)
        _check.fraction("tolerance", self.tolerance)
        _check.one_of("transform", self.transform, transform.NAMES)


@dataclass(frozen=True)
class SoftmaxSettings(PaperSettings):
    """Settings of `rap-softmax`: the published algorithm on logits, with the rate of Liu et al. (2021), table 5."""

    rate: float = 0.1
    transform: str = "softmax"


def run(curator: Curator, job: Job) -> Outcome:
    """Relaxed projection of whole marginals."""
    settings: Settings = job.settings
    model = _Softmax(curator.domain, curator.total, settings, job)
    schedule = Schedule(settings.rounds, picks_of(settings), order=order_of(job.workload, settings))
    return adaptive(curator, job.workload, model, rho=job.rho, schedule=schedule, progress=job.progress)


def run_paper(curator: Curator, job: Job) -> Outcome:
    """The published algorithm."""
    settings: PaperSettings = job.settings
    model = _Published(curator.domain, curator.total, settings, job)
    schedule = _published_schedule(job.workload, settings)
    return adaptive(curator, job.workload, model, rho=job.rho, schedule=schedule, progress=job.progress)


def _published_schedule(workload: Workload, settings: PaperSettings) -> Schedule:
    """Single queries, each at its own price; or the whole marginals that hold them (Liu et al. 2021, A.1)."""
    if not settings.whole:
        return Schedule(settings.rounds, picks_of(settings), priced="singly")
    return Schedule(settings.rounds, picks_of(settings), order=workload.widest)


def check(workload: Workload, settings: Settings | PaperSettings) -> None:
    """Refuse a workload that does not fit, before anything is charged."""
    answering.require_answerable(workload, settings)
    picks = picks_of(settings)
    require_picks(workload, Schedule(settings.rounds, picks))
    if isinstance(settings, Settings):
        require_cells(cells_at(workload, order_of(workload, settings), picks))
    elif picks is None:
        require_measurable(workload.domain, workload.marginals)
    elif settings.whole:
        require_cells(cells_at(workload, workload.widest, picks))


class _Softmax(Model):
    """The model of `rap`: softmax rows, fitted until their estimated risk stops falling."""

    def __init__(self, domain: Domain, total: int, settings: Settings, job: Job) -> None:
        self._domain, self._total, self._settings, self._job = domain, total, settings, job
        self._constants = FitSettings(max_steps=settings.max_steps)
        self._logits = start.even(domain, settings.rows + settings.rows % fit.GROUPS, self._constants, job.seed)
        self._fits: list[dict[str, int]] = []

    def answers(self) -> Answers:
        rows = fit.probabilities(self._domain, self._logits)
        return answering.publish(
            RelaxedRows.publish(self._domain, self._total, np.asarray(rows)), self._settings, self._job
        )

    def fit(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        known: Any = {"settings": self._constants, "seed": self._job.seed}
        found = targets(measurements, total=self._total, seed=self._job.seed)
        if not self._fits:
            self._logits = start.lean(self._domain, self._logits, found, **known)
        self._logits, taken = fit.fit(self._domain, self._logits, found, progress=progress, **known)
        self._fits.append(taken)

    def notes(self) -> dict[str, Any]:
        return {"fits": self._fits, "order": order_of(self._job.workload, self._settings)}


class _Published(Model):
    """The model of `rap-paper`: rows kept in place by a transform, moved by Adam."""

    def __init__(self, domain: Domain, total: int, settings: PaperSettings, job: Job) -> None:
        self._domain, self._total, self._settings, self._job = domain, total, settings, job
        self._constants = ProjectionSettings(settings.rate, settings.steps, settings.tolerance, settings.transform)
        self._parameters = projection.start(domain, settings.rows, settings.transform, job.seed)
        self._steps: list[int] = []

    def answers(self) -> Answers:
        kind = self._settings.transform
        rows = np.asarray(projection.probabilities(self._parameters, kind))
        relaxed = RelaxedRows.publish(self._domain, self._total, rows, normalise=kind != "box")
        return answering.publish(relaxed, self._settings, self._job)

    def fit(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        self._parameters, steps = projection.project(
            self._domain,
            self._parameters,
            measurements,
            total=self._total,
            settings=self._constants,
            progress=progress,
        )
        self._steps.append(steps)

    def notes(self) -> dict[str, Any]:
        return {"steps": self._steps}


def order_of(workload: Workload, settings: Settings) -> int:
    """Most attributes of a marginal that is measured."""
    return largest_order(workload, picks_of(settings)) if settings.order is None else settings.order


def picks_of(settings: Settings | PaperSettings) -> int | None:
    """Queries selected in each round; None for everything at once."""
    if settings.per_round is None and settings.rounds > 1:
        return _PER_ROUND
    return settings.per_round


def _check_schedule(settings: Settings | PaperSettings) -> None:
    _check.whole("rounds", settings.rounds)
    if settings.per_round is not None:
        _check.whole("per_round", settings.per_round)
