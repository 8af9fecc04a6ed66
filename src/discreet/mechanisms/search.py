"""Searching for rounds and queries per round, at a price.

Avent and Korolova (2023, section 3.4.2) find that RAP's error depends mostly on T * K, and is lowest somewhere along
the diagonal of a grid of both; they propose a binary search on the diagonal, then a linear search over the pairs with
the same product. Every trial looks at the private table, so it has to be paid for, which their experiments do not do.

Here each trial is a whole run of the published recipe on a small part of the budget, and its largest error is
measured privately like a certificate. What is left pays for the final run with the pair whose error was lowest. The
search is offered for comparison: it spends up to half of the budget on looking, at budgets far below the one that it
chooses for, and the best pair moves with the budget.

Privacy:
    Trials are chosen by noisy results of earlier ones. The Curator's budget is a filter: zCDP losses of adaptively
    chosen steps add up, and no step starts that would exceed the total.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from discreet import _check
from discreet.errors import BadSetting, BadWorkload, DiscreetError
from discreet.mechanisms import rap
from discreet.mechanisms.adaptive import Outcome
from discreet.mechanisms.job import Job
from discreet.mechanisms.rap import PaperSettings
from discreet.privacy.curator import Curator
from discreet.queries.workload import Workload

Pair = tuple[int, int]
"""T and K."""

ROUNDS = (1, 4, 16, 64)
PER_ROUND = (4, 16, 64, 256)
"""The grid of the paper; its diagonal pairs entries of equal position."""

_MOST_TRIALS = 5
"""Three on a diagonal of four, at most two more of the same product."""

_LOOK = Fraction(1, 10)
"""Share of a trial's budget that measures its error."""


@dataclass(frozen=True)
class Settings:
    """Settings of `rap-search`.

    Attributes:
        rows: n', relaxed rows.
        share: Part of the budget that may be spent on the search.
        steps: Most steps of one projection.
    """

    rows: int = 1000
    share: float = 0.5
    steps: int = 5000

    def __post_init__(self) -> None:
        _check.fraction("share", self.share)
        if not 0 < self.share < 1:
            raise BadSetting(f"share must lie between 0 and 1, not {self.share}: both search and release need some.")
        self.at((1, 4))

    def at(self, pair: Pair) -> PaperSettings:
        """The published recipe with these rounds and queries per round."""
        return PaperSettings(rounds=pair[0], per_round=pair[1], rows=self.rows, steps=self.steps)


@dataclass
class _Search:
    """Trials made so far, and what each of them may spend."""

    curator: Curator
    job: Job
    each: Fraction
    errors: dict[Pair, int] = field(default_factory=dict)

    def error(self, pair: Pair) -> int:
        """Noisy largest error of a trial, in rows."""
        if pair not in self.errors:
            outcome = _run(self.curator, self.job, pair, self.each * (1 - _LOOK))
            label = f"T={pair[0]}, K={pair[1]}: error"
            found = self.curator.worst(self.job.workload, against=outcome.answers, rho=self.each * _LOOK, label=label)
            self.errors[pair] = found.value
        return self.errors[pair]


def run(curator: Curator, job: Job) -> Outcome:
    """Search, then release with what is left."""
    settings: Settings = job.settings
    budget = job.rho * Fraction(str(settings.share))
    search = _Search(curator, job, budget / _MOST_TRIALS)
    allowed = feasible(job.workload, settings)
    best = lowest(_diagonal(allowed), search.error)
    best = min(_same_product(allowed, best), key=search.error)
    outcome = _run(curator, job, best, job.rho - search.each * len(search.errors))
    tried = [{"rounds": pair[0], "per_round": pair[1], "noisy_error": found} for pair, found in search.errors.items()]
    return Outcome(outcome.answers, outcome.measurements, {**outcome.notes, "chosen": list(best), "tried": tried})


def check(workload: Workload, settings: Settings) -> None:
    """Refuse a workload that no pair fits."""
    if workload.size < min(PER_ROUND):
        raise BadWorkload(f"rap-search selects at least {min(PER_ROUND)} queries; the workload has {workload.size:,}.")
    if not feasible(workload, settings):
        rap.check(workload, settings.at((ROUNDS[0], PER_ROUND[0])))


def feasible(workload: Workload, settings: Settings) -> list[Pair]:
    """Pairs of the grid that the workload has enough queries for."""
    found = []
    for pair in ((rounds, per_round) for rounds in ROUNDS for per_round in PER_ROUND):
        try:
            rap.check(workload, settings.at(pair))
        except DiscreetError:
            continue
        found.append(pair)
    return found


def lowest(pairs: list[Pair], error: Callable[[Pair], int]) -> Pair:
    """Binary search for the lowest of errors that fall and then rise."""
    low, high = 0, len(pairs) - 1
    while low < high:
        middle = (low + high) // 2
        if error(pairs[middle]) <= error(pairs[middle + 1]):
            high = middle
        else:
            low = middle + 1
    return pairs[low]


def _diagonal(allowed: list[Pair]) -> list[Pair]:
    on = [pair for pair in zip(ROUNDS, PER_ROUND, strict=True) if pair in allowed]
    return on or allowed[:1]


def _same_product(allowed: list[Pair], best: Pair) -> list[Pair]:
    return [pair for pair in allowed if pair[0] * pair[1] == best[0] * best[1]]


def _run(curator: Curator, job: Job, pair: Pair, rho: Fraction) -> Outcome:
    settings: Settings = job.settings
    return rap.run_paper(curator, Job(job.workload, rho, settings.at(pair), None, job.seed, job.progress))
