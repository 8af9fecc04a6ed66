"""`auto`: our own default. Every order of marginals at once, calmed, and relaxed rows from their product on.

What is asked for is measured whole, all of it, and so are all smaller marginals that it contains. Nothing is selected:
selection was tried and does not pay (docs/auto.md). Single attributes come first in importance, since at small budgets
nearly all of the error in a table of three attributes is error in those; how much they get follows from public facts
alone (`shares`). Most of the rest, 93 % or more, goes to what is asked for, by weight: that says where the heavy cells
are. What is left goes to those in between, as far as larger ones do not make them precise already.

Where attributes have few values, plain noise on overlapping marginals pays over and over for what they share: 105 of
the 560 marginals of three out of 16 binary attributes tell of each single one, and what only the marginal itself knows
has a seventh of the budget. There residuals are measured instead, what each marginal says beyond its sub-marginals, and
all marginals are put together from them (`precisions`, `discreet.models.residuals`).

The noisy marginals of single attributes are smoothed as far as they allow (`discreet.models.smooth`), and the rows
start from the product of these, independence being the first guess, as in a graphical model, but where values clearly
occur together (`discreet.models.start`). Then rows are fitted to all marginals at once, by precision, smoothly along
attributes with many values, and the fit stops by its own estimate of risk (`discreet.models.fit`). There is no junction
tree, and no limit to the number of queries: large workloads are measured through a cover and answered by rounded rows,
as in `rap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from discreet import _check
from discreet.data.domain import Domain
from discreet.mechanisms import answering
from discreet.mechanisms.adaptive import EVERYTHING, Outcome
from discreet.mechanisms.allotment import MEASURES, by_residuals, largest_of, needed, precisions, shares
from discreet.mechanisms.job import Job
from discreet.models import fit, smooth, start
from discreet.models.fit import FitSettings
from discreet.models.relaxed import RelaxedRows
from discreet.models.targets import Target, joined, targets
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import Measurement, require_measurable
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.scales import of_residuals
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload

FIT = FitSettings(
    step=50.0,
    growth=0.01,
    momentum=0.8,
    caution=1.0,
    overrun=1.4,
    lasting=200,
    smooth=0.7,
    emphasis=5.0,
    averaged="probabilities",
    large=2**20,
)
"""Constants of the fit that differ from those of `rap`."""

_FEW_CELLS = 2**12
CALM = replace(FIT, overrun=1.2, lasting=0, emphasis=0.0, thinning=0.3)
"""Where the largest marginals have at most so many cells on average, constants are these.

The risk is a sum over all cells. With many of them most are light, and heavy ones, which come last, hardly count in it;
with few it speaks for them too, and the answer is soon after it is least. Many are heavy then, so that much of what
pulls strongly is noise, and halves of the rows are told apart with less noise between them."""


@dataclass(frozen=True)
class FittedSettings:
    """Settings of relaxed rows that are fitted to whole marginals: `auto`, and `rap`.

    Attributes:
        rows: n', relaxed rows; an odd number is raised by one, since the fit judges one half by the other.
        order: Most attributes of a marginal that is measured; larger ones are covered by it. None for as many as fit.
        answers: relaxed, rounded, or auto: relaxed up to 2^28 queries, and 2^24 of a threshold with r < k.
        copies: Ordinary rows drawn from each relaxed row where answers are rounded.
        max_steps: Most steps of the fit.
    """

    rows: int = 1000
    order: int | None = None
    answers: str = "auto"
    copies: int = 256
    max_steps: int = FIT.max_steps

    def __post_init__(self) -> None:
        answering.check_settings(self)
        if self.order is not None:
            _check.whole("order", self.order)
        _check.whole("max_steps", self.max_steps)


@dataclass(frozen=True)
class Settings(FittedSettings):
    """Settings of `auto`.

    Attributes:
        measures: marginals, residuals, or auto: residuals where attributes have few values.
    """

    measures: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.one_of("measures", self.measures, MEASURES)


def check(workload: Workload, settings: Settings) -> None:
    """Refuse a workload that does not fit, before anything is charged."""
    answering.require_answerable(workload, settings)
    require_measurable(workload.domain, needed(workload, settings.order))


def drawable(workload: Workload, settings: Settings, rho: Fraction, neighbours: Neighbours) -> None:
    """Refuse noise that is too wide for residuals, where those are measured."""
    domain, wanted = workload.domain, needed(workload, settings.order)
    if by_residuals(domain, wanted, settings.measures, sigma=neighbours.marginal_deviation(rho)):
        given = precisions(domain, wanted)
        of_residuals(domain, neighbours, list(given), rho, list(given.values()))


def run(curator: Curator, job: Job) -> Outcome:
    """Measure everything, smooth, fit."""
    settings: Settings = job.settings
    domain = curator.domain
    wanted = needed(job.workload, settings.order)
    constants = replace(constants_of(domain, wanted), max_steps=settings.max_steps)
    sigma = curator.neighbours.marginal_deviation(job.rho)
    measure = _residuals if by_residuals(domain, wanted, settings.measures, sigma=sigma) else _marginals
    measured, known = measure(curator, job, wanted, constants)
    rows = settings.rows + settings.rows % fit.GROUPS
    logits = start.mixture(domain, rows, known.first, settings=constants, seed=job.seed)
    logits, taken = fit.fit(domain, logits, known.fitted, settings=constants, seed=job.seed, progress=job.progress)
    relaxed = RelaxedRows.publish(domain, curator.total, np.asarray(fit.probabilities(domain, logits)))
    notes = {"fits": [taken], "order": max(map(len, wanted))}
    return Outcome(answering.publish(relaxed, settings, job), measured, notes)


def constants_of(domain: Domain, wanted: Mapping[Attributes, float]) -> FitSettings:
    """Constants of the fit; public facts only."""
    cells = float(np.mean([domain.project(names).size for names in largest_of(wanted)]))
    return FIT if cells > _FEW_CELLS else CALM


class _Known(NamedTuple):
    """What was measured, as a fit sees it: for its first rows, and for the rest of it."""

    first: list[Target]
    fitted: list[Target]


def _marginals(
    curator: Curator, job: Job, wanted: Mapping[Attributes, float], constants: FitSettings
) -> tuple[list[Measurement], _Known]:
    """Every marginal with noise of its own."""
    parts = shares(curator.domain, wanted, total=curator.total, sigma=curator.neighbours.marginal_deviation(job.rho))
    measured = curator.measure(list(parts), rho=job.rho, weights=list(parts.values()), label=EVERYTHING)
    every = targets(measured, total=curator.total, seed=job.seed)
    found = [smooth.calm(target, constants.shifts) if len(target.attributes) == 1 else target for target in every]
    return measured, _Known(found, found)


def _residuals(
    curator: Curator, job: Job, wanted: Mapping[Attributes, float], constants: FitSettings
) -> tuple[list[Measurement], _Known]:
    """Marginals put together from residuals.

    They agree with each other, so a pair says all that is known of it, and the noise of larger ones is not one more
    look at it: rows start from pairs alone. And what is fitted are the largest, which hold the smaller ones, and what
    lies right inside those of which only a part is fitted.
    """
    domain, total = curator.domain, curator.total
    given = precisions(domain, wanted)
    measured = curator.measure_residuals(list(given), rho=job.rho, weights=list(given.values()), label=EVERYTHING)
    fitted = set(largest_of(given))
    for names in list(fitted):
        if domain.project(names).size > constants.large:
            fitted |= set(combinations(names, len(names) - 1))
    used = [names for names in given if len(names) <= 2 or names in fitted]
    calm = partial(smooth.calm, shifts=constants.shifts)
    found = joined(domain, measured, used, total=total, seed=job.seed, calm=calm)
    known = _Known(
        first=[target for target in found if len(target.attributes) <= 2],
        fitted=[target for target in found if len(target.attributes) == 1 or target.attributes in fitted],
    )
    return measured, known
