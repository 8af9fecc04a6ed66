"""GEM: a generator network moved towards what was measured, and `gem-pub`, which begins with public rows.

Each round selects the query on which the network errs most, measures it, and trains the network until no measured
query is off by more than gamma: half of a moving average of the errors that rounds found in what they had selected.
What is released is a moving average of the network's weights over the second half of the rounds. With the marginal
trick (`--set whole=true`) the whole marginal of a selected query is measured, and squared errors of all its cells are
trained on.

A round spends alpha^2 : (1 - alpha)^2 on selection and measurement, as published. The exponential mechanism is charged
for its true zCDP, epsilon^2 / 8; Algorithm 2 charges it four times as much, so at equal budget selection here is
sharper than published.

`gem-pub` first learns from the rows of a public table, by maximum likelihood of the mixture over the attributes that
the table has. It may lack some: of those it says nothing. The authors' own code pre-trains otherwise: on the answers
of the public table to the workload, those that err most first. Likelihood asks for no workload, and learns all orders.

Reference: Liu, Vietri, Wu (2021), "Iterative methods for private synthetic data", Algorithms 2 and 3, appendices A.1, B
and D, tables 2, 4 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from discreet import _check
from discreet.data.domain import Codes, Domain
from discreet.errors import BadSetting
from discreet.mechanisms import answering
from discreet.mechanisms.adaptive import Model, Outcome, Schedule, adaptive, require_picks
from discreet.mechanisms.cover import cells_at
from discreet.mechanisms.job import Job
from discreet.models import generator, projection
from discreet.models.generator import GeneratorSettings
from discreet.models.relaxed import RelaxedRows
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import Measurement, require_cells
from discreet.progress import Progress
from discreet.queries.answers import Answers
from discreet.queries.workload import Workload

_MEMORY = 0.5
"""Share of the moving average of errors that a round keeps."""

_AVERAGING = 0.9
"""Share of the moving average of weights that a round keeps."""

_LEARNING_RATE = 0.001
"""Adam's, for public rows."""


@dataclass(frozen=True)
class Settings:
    """Settings of `gem` and `gem-pub`, with the published constants.

    Attributes:
        rounds: T.
        per_round: K, queries selected in each round.
        rows: B, columns of noise and so relaxed rows.
        whole: Measure the whole marginals of selected queries, for the price of two of their cells.
        hidden: Sizes of hidden layers; 512,1024,1024 by default, 256,512 with whole marginals.
        inputs: Numbers in a column of noise.
        resample: Draw fresh noise for every step.
        rate: Adam's learning rate.
        steps: Most steps of one training; published are 100, and 10,000 with whole marginals.
        alpha: How a round's budget is split, alpha^2 : (1 - alpha)^2; 0.67 by default, 0.5 with whole marginals.
        learning: Steps on public rows, before the first round.
        answers: relaxed, rounded, or auto: relaxed up to 2^28 queries, and 2^24 of a threshold with r < k.
        copies: Ordinary rows drawn from each relaxed row where answers are rounded.
    """

    rounds: int = 50
    per_round: int = 1
    rows: int = 1000
    whole: bool = False
    hidden: str | None = None
    inputs: int = 128
    resample: bool = False
    rate: float = 0.0001
    steps: int = 100
    alpha: float | None = None
    learning: int = 2000
    answers: str = "auto"
    copies: int = 256

    def __post_init__(self) -> None:
        for name in ("rounds", "per_round", "inputs", "steps", "learning"):
            _check.whole(name, getattr(self, name))
        _check.positive("rate", self.rate)
        if not 0 < self.split < 1:
            raise BadSetting(f"alpha must lie between 0 and 1, not {self.alpha}: both parts of a round cost something.")
        if not self.layers or min(self.layers) < 1:
            raise BadSetting(f"hidden must list sizes of layers, such as 256,512, not {self.hidden!r}.")
        answering.check_settings(self)

    @property
    def layers(self) -> tuple[int, ...]:
        """Sizes of the hidden layers."""
        listed = (self.hidden or ("256,512" if self.whole else "512,1024,1024")).split(",")
        return tuple(int(size) if size.strip().isdecimal() else 0 for size in listed)

    @property
    def split(self) -> float:
        """alpha."""
        return self.alpha if self.alpha is not None else (0.5 if self.whole else 0.67)

    @property
    def training(self) -> GeneratorSettings:
        """Constants of one training."""
        return GeneratorSettings(self.rate, self.steps, self.resample)


def run(curator: Curator, job: Job) -> Outcome:
    """Train a generator, from random weights or from public rows."""
    model = _Gem(curator.domain, curator.total, job)
    if job.public is not None:
        model.learn(job.public)
    schedule = _schedule(job.workload, job.settings)
    return adaptive(curator, job.workload, model, rho=job.rho, schedule=schedule, progress=job.progress)


def check(workload: Workload, settings: Settings) -> None:
    """Refuse a workload that does not fit, before anything is charged."""
    answering.require_answerable(workload, settings)
    schedule = _schedule(workload, settings)
    require_picks(workload, schedule)
    if schedule.order is not None:
        require_cells(cells_at(workload, schedule.order, settings.per_round))


def _schedule(workload: Workload, settings: Settings) -> Schedule:
    alpha = Fraction(str(settings.split))
    return Schedule(
        settings.rounds,
        settings.per_round,
        order=workload.widest if settings.whole else None,
        selection=alpha**2 / (alpha**2 + (1 - alpha) ** 2),
    )


class _Gem(Model):
    """The generator, and its moving averages."""

    def __init__(self, domain: Domain, total: int, job: Job) -> None:
        self._domain, self._total, self._job = domain, total, job
        self._settings: Settings = job.settings
        self._generator = generator.start(
            domain,
            rows=self._settings.rows,
            inputs=self._settings.inputs,
            hidden=self._settings.layers,
            seed=job.seed,
        )
        self._average: Any = None
        self._error: float | None = None
        self._steps: list[int] = []
        self._seen = 0

    def learn(self, public: Codes) -> None:
        """Begin with public rows."""
        constants = GeneratorSettings(_LEARNING_RATE, self._settings.learning, self._settings.resample)
        self._generator = generator.learn(
            self._domain, self._generator, public, settings=constants, seed=self._job.seed, progress=self._job.progress
        )

    def answers(self) -> Answers:
        return self._publish(self._generator.network)

    def published(self) -> Answers:
        return self._publish(self._average)

    def fit(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        self._error = self._moved(measurements[self._seen :])
        self._seen = len(measurements)
        self._generator, steps = generator.train(
            self._domain,
            self._generator,
            projection.targets_of(self._domain, measurements, self._total),
            gamma=self._error / 2,
            settings=self._settings.training,
            progress=progress,
        )
        self._steps.append(steps)
        if 2 * len(self._steps) >= self._settings.rounds:
            network = self._generator.network
            before = network if self._average is None else self._average
            self._average = jax.tree.map(lambda old, now: _AVERAGING * old + (1 - _AVERAGING) * now, before, network)

    def notes(self) -> dict[str, Any]:
        return {"steps": self._steps}

    def _moved(self, new: Sequence[Measurement]) -> float:
        """The moving average of the largest errors that rounds found in what they had selected."""
        answers = self._relaxed(self._generator.network)
        found = max(answering.largest_gap(answers, measured) for measured in new)
        return found if self._error is None else _MEMORY * self._error + (1 - _MEMORY) * found

    def _relaxed(self, network: Any) -> RelaxedRows:
        rows = generator.probabilities(self._domain, network, self._generator.noise)
        return RelaxedRows.publish(self._domain, self._total, np.asarray(rows))

    def _publish(self, network: Any) -> Answers:
        return answering.publish(self._relaxed(network), self._settings, self._job)
