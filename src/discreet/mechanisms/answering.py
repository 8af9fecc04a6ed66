"""How mechanisms with relaxed rows answer: by the rows themselves, or by ordinary rows drawn from them.

Relaxed rows answer every query with something; the cost of a pass grows with the number of queries. Ordinary rows drawn
from them have sparse answers, so that workloads of any size can be scored, certified and compared.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from discreet import _check
from discreet.errors import BadWorkload
from discreet.mechanisms.job import Job
from discreet.models.relaxed import MOST_QUERIES, RelaxedRows
from discreet.models.rounded import RoundedRows
from discreet.privacy.measurement import Measurement
from discreet.queries.answers import GRID, Answers
from discreet.queries.threshold import at_cells
from discreet.queries.workload import Workload

_MOST_RELAXED = 2**28
"""Most queries that are answered by relaxed rows unless these are asked for: about ten seconds a round."""

_MOST_DENSE = 2**24
"""Most queries of one threshold with r < k for the same: its dense table is expanded whole, tens of bytes each."""

MOST_ENTRIES = 2**27
"""Most numbers in the relaxed rows of a model; a fit holds about six such arrays."""


class Answering(Protocol):
    """Settings that say how answers are given."""

    @property
    def rows(self) -> int:
        """Relaxed rows of the model."""

    @property
    def answers(self) -> str:
        """relaxed, rounded or auto."""

    @property
    def copies(self) -> int:
        """Ordinary rows drawn from each relaxed row where answers are rounded."""


def publish(relaxed: RelaxedRows, settings: Answering, job: Job) -> Answers:
    """Relaxed rows, or ordinary rows drawn from them where there are too many queries for those."""
    if not rounds(job.workload, settings):
        return relaxed
    codes = relaxed.sample(settings.copies, np.random.default_rng(job.seed))
    return RoundedRows(relaxed.domain, relaxed.total, codes)


def largest_gap(answers: Answers, found: Measurement) -> float:
    """The largest distance between public answers and measured ones, as a fraction of the rows."""
    if found.cells is None:
        units = answers.units(found.threshold.attributes).dense(len(found.counts))
    else:
        units = at_cells(found.threshold, found.cells, answers.domain, answers.at)
    return float(np.abs(units / GRID - found.counts).max()) / answers.total


def check_settings(settings: Answering) -> None:
    """Refuse settings that make no sense."""
    _check.whole("rows", settings.rows)
    _check.whole("copies", settings.copies)
    _check.one_of("answers", settings.answers, ("auto", "relaxed", "rounded"))


def require_answerable(workload: Workload, settings: Answering) -> None:
    """Refuse a workload that these rows cannot answer; public facts only."""
    if not rounds(workload, settings) and (workload.size > MOST_QUERIES or _densest(workload) > _MOST_DENSE):
        raise BadWorkload(
            f"The workload has {workload.size:,} queries; relaxed rows can score {MOST_QUERIES:,}, and {_MOST_DENSE:,} "
            "of one threshold with r < k, in bearable time and memory. Leave out --set answers=relaxed: rounded rows "
            "can answer any number."
        )
    if workload.domain.bits * settings.rows > MOST_ENTRIES:
        widest = max(workload.domain, key=workload.domain.size_of)
        raise BadWorkload(
            f"{settings.rows:,} relaxed rows of {workload.domain.bits:,} values exceed {MOST_ENTRIES:,} numbers. "
            f"Give {widest!r} coarser bins ({workload.domain.size_of(widest):,} values), or ask for fewer --rows."
        )


def rounds(workload: Workload, settings: Answering) -> bool:
    """Whether answers come from rounded rows."""
    large = workload.size > _MOST_RELAXED or _densest(workload) > _MOST_DENSE
    return settings.answers == "rounded" or (settings.answers == "auto" and large)


def _densest(workload: Workload) -> int:
    """Most queries of a threshold with r < k."""
    cells = (threshold.cells(workload.domain) for threshold in workload if not threshold.is_marginal)
    return max(cells, default=0)
