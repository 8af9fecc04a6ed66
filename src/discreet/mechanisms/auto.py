"""`auto`: our own default. Every order of marginals at once, calmed, and relaxed rows from their product on.

What is asked for is measured whole, all of it, and so are all smaller marginals that it contains. Nothing is selected:
selection was tried and does not pay (docs/auto.md). Single attributes come first in importance, since at small budgets
nearly all of the error in a table of three attributes is error in those; how much they get follows from public facts
alone (`shares`). Most of the rest, 93 % or more, goes to the largest marginals, which say where the heavy cells are,
and what is left to those in between, as far as the largest ones do not make them precise already.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from discreet import _check
from discreet.data.domain import Domain
from discreet.mechanisms import answering
from discreet.mechanisms.adaptive import EVERYTHING, Outcome
from discreet.mechanisms.cover import cells_of, closure, cover, largest_order
from discreet.mechanisms.job import Job
from discreet.models import fit, smooth, start
from discreet.models.fit import FitSettings
from discreet.models.relaxed import RelaxedRows
from discreet.models.targets import Target, joined, targets
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import MOST_CELLS, Measurement, require_measurable
from discreet.privacy.neighbours import MOST_ENUMERATED
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

_FEW_CELLS, _SHORT_OVERRUN = 4096, 1.2
"""Where the largest marginals have at most so many cells on average, the answer is at this multiple of the steps.

The risk is a sum over all cells. With many of them most are light, and heavy ones, which come last, hardly count in it;
with few it speaks for them too."""

_BETWEEN = 0.07
"""Share of what single attributes leave that goes to marginals which are contained in others, where it is worth it."""

_BALANCE = 0.36
"""Total variation that noise on single attributes is weighed against: chosen on ADULT, a public table."""

_BY_SIZE = 1 / 3
"""Single attributes share their part of the budget by their number of values to this power."""

_FEW_VALUES = 1 / 3
"""Residuals are measured where they cost less than this share of what their marginals would, on average."""

_HALFWAY = 1 / 2
"""Where precisions of residuals lie between those of plain noise (0) and of the least total variance (1)."""

_LEAST = 2.0**-40
"""Least precision of a residual, relative to the largest."""

_MOST = 3 / 4
"""Share of the marginals of an order that must fit for them to be measured although the others do not."""


MEASURES = ("auto", "marginals", "residuals")
"""What is measured."""


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
    require_measurable(workload.domain, needed(workload, settings))


def run(curator: Curator, job: Job) -> Outcome:
    """Measure everything, smooth, fit."""
    settings: Settings = job.settings
    domain = curator.domain
    wanted = needed(job.workload, settings)
    constants = replace(FIT, max_steps=settings.max_steps, overrun=overrun(domain, wanted))
    measured, known = (_residuals if by_residuals(domain, wanted, settings) else _marginals)(curator, job, wanted)
    rows = settings.rows + settings.rows % fit.GROUPS
    logits = start.mixture(domain, rows, known.first, settings=constants, seed=job.seed)
    logits, taken = fit.fit(domain, logits, known.fitted, settings=constants, seed=job.seed, progress=job.progress)
    relaxed = RelaxedRows.publish(domain, curator.total, np.asarray(fit.probabilities(domain, logits)))
    notes = {"fits": [taken], "order": max(map(len, wanted)), **known.notes}
    return Outcome(answering.publish(relaxed, settings, job), measured, notes)


def overrun(domain: Domain, wanted: Mapping[Attributes, float]) -> float:
    """How far a fit goes on; public facts only."""
    cells = float(np.mean([domain.project(names).size for names in _largest(wanted)]))
    return FIT.overrun if cells > _FEW_CELLS else _SHORT_OVERRUN


class _Known(NamedTuple):
    """What was measured, as a fit sees it: for its first rows, and for the rest of it; and facts about the run."""

    first: list[Target]
    fitted: list[Target]
    notes: dict[str, Any]


def _marginals(curator: Curator, job: Job, wanted: Mapping[Attributes, float]) -> tuple[list[Measurement], _Known]:
    """Every marginal with noise of its own."""
    parts = shares(wanted, job.workload, total=curator.total, sigma=curator.neighbours.marginal_deviation(job.rho))
    measured = curator.measure(list(parts), rho=job.rho, weights=list(parts.values()), label=EVERYTHING)
    every = targets(measured, total=curator.total, seed=job.seed)
    found = [_calm(target) if len(target.attributes) == 1 else target for target in every]
    return measured, _Known(found, found, {})


def _residuals(curator: Curator, job: Job, wanted: Mapping[Attributes, float]) -> tuple[list[Measurement], _Known]:
    """Marginals put together from residuals.

    They agree with each other, so a pair says all that is known of it, and the noise of larger ones is not one more
    look at it: rows start from pairs alone. And what is fitted are the largest, which hold the smaller ones.
    """
    domain, total = curator.domain, curator.total
    given = precisions(domain, wanted)
    measured = curator.measure_residuals(list(given), rho=job.rho, weights=list(given.values()), label=EVERYTHING)
    found = joined(domain, measured, given, total=total, seed=job.seed, calm=_calm)
    largest = set(_largest(given))
    fitted = [target for target in found if len(target.attributes) == 1 or target.attributes in largest]
    first = [target for target in found if len(target.attributes) <= 2]
    return measured, _Known(first, fitted, {"total_variance": float(curator.total_variance)})


def _calm(target: Target) -> Target:
    return smooth.calm(target, FIT.shifts)


def by_residuals(domain: Domain, wanted: Mapping[Attributes, float], settings: Settings) -> bool:
    """Whether residuals are measured, not marginals; public facts only.

    For the same precision of what only a marginal of sizes d_i knows, its residual costs the product of (1 - 1/d_i) of
    what the marginal does (add-remove; about as much under replace-one). The rest of the price is for what smaller
    marginals say too. With many values there is no such rest, and plain noise is drawn faster. What all residuals
    together cost is known exactly for up to 16 attributes, and with more of them not well enough.
    """
    known = _telling(domain, wanted)
    if settings.measures != "auto" or not known:
        return settings.measures == "residuals" and bool(known)
    costs = [prod(1 - 1 / domain.size_of(name) for name in names) for names in _largest(known)]
    return len({name for names in known for name in names}) <= MOST_ENUMERATED and float(np.mean(costs)) < _FEW_VALUES


def precisions(domain: Domain, wanted: Mapping[Attributes, float]) -> dict[Attributes, float]:
    """How precisely each residual is measured, 1 / sigma^2, relative to each other; public facts only.

    Plain noise on the largest marginals S, of weights w and sizes d_i, measures the residual of A with the precision

        c_A  =  sum over all S that hold A of  w / (product of d_i over S without A).

    The least sum of the variances of all cells has sqrt(c_A * product of d_i over A) instead, which is less for small A
    and more for large ones (`discreet.mechanisms.residual`). But a fit shrinks what large marginals alone know, as far
    as noise hides it, so the best lies between the two: halfway, at their geometric mean.

    Args:
        domain: Public.
        wanted: Marginals with all they contain, and how much an error on each matters: with one marginal alone, its
            precision is in proportion to that.

    Returns:
        Smallest first; attributes of one value are left out, since they have no residual.
    """
    wanted = _telling(domain, wanted)
    covered = dict.fromkeys(wanted, 0.0)
    sizes = {names: domain.project(names).size for names in wanted}
    power = 1 - _HALFWAY / 2
    for names in _largest(wanted):
        for held in closure([names]):
            covered[held] += wanted[names] ** (1 / power) * sizes[held] / sizes[names]
    found = np.array([covered[names] ** power * sizes[names] ** (1 - power) for names in wanted])
    short = np.maximum(found / found.max(), _LEAST).astype(np.float32)  # short fractions, for exact arithmetic
    return {names: float(each) for names, each in zip(wanted, short, strict=True)}


def _telling(domain: Domain, wanted: Mapping[Attributes, float]) -> dict[Attributes, float]:
    """The same without attributes of one value."""
    kept: dict[Attributes, float] = {}
    for names, weight in wanted.items():
        telling = tuple(name for name in names if domain.size_of(name) > 1)
        if telling:
            kept[telling] = max(weight, kept.get(telling, 0.0))
    return kept


def _largest(wanted: Iterable[Attributes]) -> list[Attributes]:
    """Marginals that no other one contains."""
    listed = list(wanted)
    within = {smaller for names in listed for smaller in closure([names]) if smaller != names}
    return [names for names in listed if names not in within]


def shares(
    wanted: Mapping[Attributes, float], workload: Workload, *, total: int, sigma: float
) -> dict[Attributes, float]:
    """How much of the budget each marginal gets; public facts only.

    With all of the budget, noise on the d cells of one attribute would leave a total variation of about 0.4 d sigma
    sqrt(attributes) / n. The mean of that over attributes, A, is weighed against a constant B: minimising A / sqrt(s) +
    B / sqrt(1 - s) gives the share s of all single attributes, A^(2/3) / (A^(2/3) + B^(2/3)).

    A smaller marginal is known from the larger ones too: a cell of it is the sum of r cells of each that holds it, with
    r times their variance. Where these make it more precise than a measurement of its own would (many of them, few
    cells), there is no need for one, so both shares of smaller marginals are multiplied by v / (1 + v), v being the
    variance of such a cell over that of a measured one, averaged over marginals.

    Args:
        wanted: Marginals that are measured, and how much an error on each matters.
        workload: What is asked.
        total: Rows of the table.
        sigma: Deviation of the noise on a marginal that gets the whole budget, in rows.
    """
    domain = workload.domain
    single = {names: float(domain.project(names).size) for names in wanted if len(names) == 1}
    largest = [names for names in _largest(wanted) if len(names) > 1]
    between = [names for names in wanted if len(names) > 1 and names not in set(largest)]
    noise = 0.4 * float(np.mean(list(single.values()))) * sigma * sqrt(len(single)) / max(1, total)
    ratio = (noise / _BALANCE) ** (2 / 3)
    alone = _worth(domain, list(single), largest) * ratio / (1 + ratio) if largest else 1.0
    rest = {"between": (1 - alone) * _BETWEEN * _worth(domain, between, largest) if between else 0.0}
    rest["largest"] = 1 - alone - rest["between"]
    given: dict[Attributes, float] = {}
    for names, part, weights in (
        (list(single), alone, [size**_BY_SIZE for size in single.values()]),
        (between, rest["between"], [1.0] * len(between)),
        (largest, rest["largest"], [1.0] * len(largest)),
    ):
        priced = [weight * wanted[name] for name, weight in zip(names, weights, strict=True)]
        given |= {name: part * price / sum(priced) for name, price in zip(names, priced, strict=True)}
    return given


def _worth(domain: Domain, smaller: Sequence[Attributes], largest: Sequence[Attributes]) -> float:
    """v / (1 + v) above, averaged."""
    sizes = {names: domain.project(names).size for names in (*smaller, *largest)}
    precisions = dict.fromkeys(smaller, 0.0)  # 1 / v: of a cell that is summed up, over that of a measured one
    for names in largest:
        for held in closure([names]):
            if held in precisions:
                precisions[held] += sizes[held] / sizes[names]
    return float(np.mean([1 / (1 + precision) for precision in precisions.values()]))


def needed(workload: Workload, settings: FittedSettings) -> dict[Attributes, float]:
    """Marginals that are measured, smallest first, with the largest weight asked of any that holds them."""
    covering = _fitting(workload) if settings.order is None else cover(workload.marginals, settings.order)
    weights: dict[Attributes, float] = {}
    for names, weight in covering.items():
        for smaller in closure([names]):
            weights[smaller] = max(weight, weights.get(smaller, 0.0))
    return {names: weights[names] for names in closure(covering)}


def _fitting(workload: Workload) -> dict[Attributes, float]:
    """The cover of the largest order at which everything fits, smaller marginals included, and what fits beyond it.

    Where most marginals of the next order fit as well, smallest first, these are added: a few large ones should not
    keep all others from being measured. Where few do, they would dilute the budget and say nothing about the others.
    """
    domain, marginals = workload.domain, workload.marginals
    order = largest_order(workload, None)
    while order > 1 and cells_of(domain, closure(cover(marginals, order))) > MOST_CELLS:
        order -= 1
    covering = cover(marginals, order)
    left = MOST_CELLS - cells_of(domain, closure(covering))
    larger = {names: weight for names, weight in cover(marginals, order + 1).items() if names not in covering}
    smallest = sorted(larger, key=lambda names: domain.project(names).size)
    sums = accumulate(domain.project(names).size for names in smallest)
    fitting = [names for names, cells in zip(smallest, sums, strict=True) if cells <= left]
    if len(fitting) < _MOST * len(larger):
        return covering
    return covering | {names: larger[names] for names in fitting}
