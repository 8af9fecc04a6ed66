"""How far published answers are from the truth. For the owner's eyes: the results are NOT private."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discreet.data.schema import Schema
from discreet.data.sparse import Piece, Sparse
from discreet.data.table import Table
from discreet.errors import BadData, BadSetting
from discreet.progress import SILENT, Progress
from discreet.publish.release import Release
from discreet.queries import parse
from discreet.queries.answers import GRID, Answers, differences, fraction
from discreet.queries.history import History, HistoryLike
from discreet.queries.parse import WorkloadLike
from discreet.queries.threshold import Attributes, Query, Threshold, at_cells
from discreet.queries.workload import Workload

_BATCH = 128
"""Thresholds whose marginals are counted together."""


@dataclass(frozen=True)
class WorstQuery:
    """One query with a large error, truth included."""

    query: str
    truth: float
    answer: float
    error: float


@dataclass(frozen=True)
class Errors:
    """Errors over every query of a workload, as fractions of the rows.

    Attributes:
        queries: Number of queries.
        max_error: Largest absolute error.
        mean_error: Mean absolute error over all queries.
        rmse: Root of the mean squared error.
        mean_tvd: Total variation distance (half the L1 error), averaged over the marginals; None without any.
        worst: The queries with the largest errors.
    """

    queries: int
    max_error: float
    mean_error: float
    rmse: float
    mean_tvd: float | None
    worst: list[WorstQuery]


def evaluate(
    release: Release,
    table: Table,
    workload: WorkloadLike | None = None,
    *,
    future: HistoryLike | None = None,
    predict: str | None = None,
    holdout: Table | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Compare a release with the true table: `max_error`, ..., and `rows_max_error`, ... for its synthetic rows.

    With `future`, queries that the release was not made from, in the form of a history, there is also `future`:
    see `discreet.compare.future`. With `predict`, an attribute, there is also `downstream`: how well a classifier does
    that was trained on synthetic rows, tested on `holdout` or on part of the table, see `discreet.compare.downstream`.
    Not private: keep the result on the owner's side.
    """
    if predict is None and holdout is not None:
        raise BadSetting("Rows are held out to test a classifier: say which attribute it is to predict.")
    asked_later = None if future is None else History.read(future, release.domain)
    if table.domain != release.domain:
        raise BadData("The table's domain is not the release's: use the schema that the release was made with.")
    if release.guarantee.neighbours.total_is_public and table.rows() != release.answers.total:
        raise BadData("The table has another number of rows than the one the release was made from.")
    asked = release.workload if workload is None else parse.workload(workload, release.domain)
    trained = {}
    if predict is not None:  # first, because it may be refused
        from discreet.compare.downstream import downstream

        progress.stage(f"training classifiers for {predict}")
        trained["downstream"] = downstream(release, table, predict, holdout=holdout).to_json()
    answered = asdict(errors(release.answers, table, asked, release.schema, progress=progress))
    found = {"private": False, **answered}
    rows = release.rows_as_answers()
    if rows is not None:
        counted = answered
        if rows is not release.answers:
            counted = asdict(errors(rows, table, asked, release.schema, progress=progress))
        found |= {f"rows_{name}": value for name, value in counted.items() if name != "queries"}
    if asked_later is not None:
        from discreet.compare.future import future_errors

        later = future_errors(release.answers, table, release.workload, asked_later, progress=progress)
        found["future"] = later.to_json()
    return found | trained


def errors(
    answers: Answers,
    table: Table,
    workload: Workload,
    schema: Schema,
    *,
    worst: int = 10,
    progress: Progress = SILENT,
) -> Errors:
    """Errors of public answers over a whole workload, exact."""
    scale = GRID * max(1, answers.total)
    largest: list[tuple[int, int, int]] = []
    absolute, squared = 0.0, 0.0
    distances: list[float] = []
    progress.stage("comparing with the truth", len(workload))
    for number, threshold, pieces in differences_by_threshold(answers, table, workload):
        here = 0.0
        for piece in pieces:
            size = np.abs(piece.values)
            here += float(size.sum(dtype=np.float64))
            squared += float(np.square(size, dtype=np.float64).sum())
            least = largest[-1][0] if len(largest) == worst else 0
            if not size.max(initial=0) > least:
                continue
            top = np.argpartition(size, -worst)[-worst:] if len(size) > worst else np.arange(len(size))
            largest = heapq.nlargest(worst, largest + [(int(size[at]), number, int(piece.cells[at])) for at in top])
        absolute += here
        if threshold.is_marginal:
            distances.append(here / scale / 2)
        progress.step(number + 1)
    return Errors(
        queries=workload.size,
        max_error=largest[0][0] / scale if largest else 0.0,
        mean_error=absolute / scale / workload.size,
        rmse=(squared / workload.size) ** 0.5 / scale,
        mean_tvd=float(np.mean(distances)) if distances else None,
        worst=[
            _describe(answers, table, Query(workload.thresholds[number], cell), schema) for _, number, cell in largest
        ],
    )


def differences_by_threshold(
    answers: Answers, table: Table, workload: Workload
) -> Iterator[tuple[int, Threshold, Iterator[Piece]]]:
    """Answer minus truth for each threshold, in units of the grid.

    Where the number of rows is private, answers are fractions of a noisy one, and the truth one of the true number.
    """
    rows = table.rows()
    scale = GRID if rows == answers.total else GRID * answers.total / max(1, rows)
    for start in range(0, len(workload), _BATCH):
        thresholds = workload.thresholds[start : start + _BATCH]
        needed = list(dict.fromkeys(subset for threshold in thresholds for _, subset in threshold.terms()))
        truth = dict(zip(needed, table.counts(needed), strict=True))

        def counted(subset: Attributes, truth: dict[Attributes, Sparse] = truth) -> Sparse:
            exact = truth[subset]
            return (
                exact.times(GRID) if scale == GRID else Sparse(exact.cells, np.rint(exact.values * scale).astype(int))
            )

        for offset, threshold in enumerate(thresholds):
            yield start + offset, threshold, differences(answers, threshold, counted)


def _describe(answers: Answers, table: Table, query: Query, schema: Schema) -> WorstQuery:
    cell = np.array([query.cell])
    count = at_cells(query.threshold, cell, table.domain, lambda subset, part: table.count(subset).at(part))
    truth, answer = int(count[0]) / max(1, table.rows()), fraction(answers, query)
    return WorstQuery(in_words(query, schema), truth, answer, abs(truth - answer))


def in_words(query: Query, schema: Schema) -> str:
    """The form that `discreet answer` reads."""
    names = query.threshold.attributes
    codes = schema.domain.project(names).unravel([query.cell])[0]
    listed = parse.in_words({name: schema[name].labels()[code] for name, code in zip(names, codes, strict=True)})
    return listed if query.threshold.is_marginal else f"{query.threshold.r} of ({listed})"
