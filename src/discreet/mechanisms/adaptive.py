"""The loop that the whole family shares: score the workload on the current model, select, measure, fit.

A mechanism is this loop with a model and a way to spend. It contains no noise, no accounting and no private table:
every private number it sees came out of the Curator and has been paid for.

Reference: Liu, Vietri, Wu (2021), "Iterative Methods for Private Synthetic Data", section 3 ("Adaptive
Measurements").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.errors import BadSetting
from discreet.mechanisms.cover import cover
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import Measurement
from discreet.progress import SILENT, Progress
from discreet.queries.answers import Answers
from discreet.queries.threshold import Attributes, Query
from discreet.queries.workload import Workload

EVERYTHING = "measure every marginal"


@dataclass(frozen=True)
class Outcome:
    """What a mechanism leaves behind, all of it public.

    Attributes:
        answers: Answers to every query.
        measurements: Everything that was measured.
        notes: Facts about the run for release.json.
    """

    answers: Answers
    measurements: list[Measurement]
    notes: dict[str, Any] = field(default_factory=dict)


class Model(ABC):
    """What is fitted to measurements. Post-processing only."""

    @abstractmethod
    def answers(self) -> Answers:
        """Public answers of the current fit, for the next selection."""

    @abstractmethod
    def fit(self, measurements: Sequence[Measurement], progress: Progress) -> None:
        """Move towards the measurements, starting from the current fit."""

    def published(self) -> Answers:
        """What is released once the last round is over: the current fit, or an average over rounds."""
        return self.answers()

    def notes(self) -> dict[str, Any]:
        """Facts about the fit."""
        return {}


@dataclass(frozen=True)
class Schedule:
    """How the budget is spent.

    Attributes:
        rounds: T. One round without `per_round` measures everything at once and selects nothing.
        per_round: K, queries selected in each round; None for everything.
        order: Measure whole marginals of at most this many attributes, those of the selected queries or of all;
            None to measure nothing but the selected queries.
        priced: How queries measured together are priced, see `Curator`.
        selection: Share of a round's budget that pays for the selection.
        again: Whether a query may be selected in several rounds.
    """

    rounds: int = 1
    per_round: int | None = None
    order: int | None = None
    priced: str = "jointly"
    selection: Fraction = Fraction(1, 2)
    again: bool = False


def adaptive(
    curator: Curator,
    workload: Workload,
    model: Model,
    *,
    rho: Fraction,
    schedule: Schedule,
    progress: Progress = SILENT,
) -> Outcome:
    """Run the loop and spend `rho`."""
    if schedule.per_round is None:
        measured = measure_everything(curator, workload, rho=rho, order=schedule.order, priced=schedule.priced)
        model.fit(measured, progress)
        return Outcome(model.published(), measured, model.notes())
    measured = []
    chosen: list[Query] = []
    each = rho / schedule.rounds
    for turn in range(1, schedule.rounds + 1):
        name = f"round {turn} of {schedule.rounds}"
        picked = curator.select(
            workload,
            against=model.answers(),
            picks=schedule.per_round,
            rho=each * schedule.selection,
            without=() if schedule.again else chosen,
            label=f"{name}: select",
        )
        chosen += picked
        spend = each * (1 - schedule.selection)
        known = {found.threshold.attributes for found in measured}
        measured += _selected(curator, workload, picked, known, rho=spend, schedule=schedule, label=f"{name}: measure")
        model.fit(measured, progress)
    return Outcome(model.published(), measured, {**model.notes(), "selected": len(chosen)})


def require_picks(workload: Workload, schedule: Schedule) -> None:
    """Refuse to select more queries than there are; public facts only."""
    if schedule.per_round is None:
        return
    if schedule.per_round * (1 if schedule.again else schedule.rounds) > workload.size:
        raise BadSetting(
            f"{schedule.rounds} rounds of {schedule.per_round} queries are more than the workload's "
            f"{workload.size:,}. Ask for fewer, with --rounds and --per-round."
        )


def measure_everything(
    curator: Curator, workload: Workload, *, rho: Fraction, order: int | None = None, priced: str = "jointly"
) -> list[Measurement]:
    """Measure every marginal that a workload needs, by its weights, or a cover of them."""
    needed = workload.marginals if order is None else cover(workload.marginals, order)
    return curator.measure(list(needed), rho=rho, weights=list(needed.values()), priced=priced, label=EVERYTHING)


def _selected(
    curator: Curator,
    workload: Workload,
    picked: Sequence[Query],
    known: Set[Attributes],
    *,
    rho: Fraction,
    schedule: Schedule,
    label: str,
) -> list[Measurement]:
    """The selected queries, or the marginals behind them: new ones once, and known ones again if all are known."""
    if schedule.order is None:
        return curator.measure_queries(picked, rho=rho, priced=schedule.priced, label=label)
    touched = {subset: workload.marginals[subset] for query in picked for _, subset in query.threshold.terms()}
    covering = cover(touched, schedule.order)
    covering = {subset: weight for subset, weight in covering.items() if subset not in known} or covering
    return curator.measure(
        list(covering), rho=rho, weights=list(covering.values()), priced=schedule.priced, label=label
    )
