"""Present and future error of a release. For the owner's eyes: the results are NOT private.

Present error (Avent and Korolova 2023, Definition 3.1) is the largest error over the known workload,
err_P = E ||a - a~||_inf with a the answers to all its queries. Future error (Definition 5.3) is
err_F = E ||a - a~||_inf with a the answers to the queries of *one* threshold drawn from the future: the mean over
drawn thresholds of the largest error on each. The paper calls the randomness of the draw "the only difference", but
present error is a maximum over all thresholds of the workload and grows with their number, and future error is
not; so it may well be below present error. `present_mean` is the mean over the workload's thresholds of the largest
error on each, to be compared with future error.

Both expectations are also over the mechanism's noise. A release is one run, and what is found holds for that run:
the intervals speak of the draw of future queries. Over several runs, give the mean of each run to
`discreet.confidence.mean_of`; the paper's intervals, "between independent repetitions and across sampling future
thresholds", would be too narrow if all draws of all runs were pooled as independent ones.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discreet.compare.errors import differences_by_threshold
from discreet.confidence import CONFIDENCE, Mean, mean_of, rate_at_most
from discreet.data.table import Table
from discreet.progress import SILENT, Progress
from discreet.queries.answers import GRID, Answers
from discreet.queries.distribution import ThresholdDistribution
from discreet.queries.history import History
from discreet.queries.threshold import Threshold
from discreet.queries.workload import Workload


@dataclass(frozen=True)
class ThresholdError:
    """Errors over the queries of one threshold, as fractions of the rows."""

    largest: float
    mean: float


@dataclass(frozen=True)
class FutureErrors:
    """How well the answers of one release do on future queries, as fractions of the rows.

    Attributes:
        present_error: Largest error over the workload: Definition 3.1.
        present_mean: Mean over the workload's thresholds of the largest error on each.
        future_error: Mean over future queries of the largest error on their threshold: Definition 5.3.
        future_mean_error: Mean over future queries of the mean error on their threshold.
        unseen: Share of future queries whose threshold is not in the workload.
        unseen_error: Future error of those alone; None if there are none.
        largest_error: Largest error on any future threshold.
        above_at_most: At most this share of further queries, with the confidence of the intervals, meets a larger
            error than `largest_error`.
    """

    present_error: float
    present_mean: float
    future_error: Mean
    future_mean_error: Mean
    unseen: float
    unseen_error: Mean | None
    largest_error: float
    above_at_most: float

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def future_errors(
    answers: Answers,
    table: Table,
    workload: Workload,
    future: History,
    *,
    confidence: float = CONFIDENCE,
    progress: Progress = SILENT,
) -> FutureErrors:
    """Present error over a workload, and future error over queries drawn independently from the future.

    Args:
        answers: Public.
        table: The true one.
        workload: What the release was made for.
        future: Queries that were not used to make it.
        confidence: Of each interval.
        progress: Hears how far it is.
    """
    known = set(workload.thresholds)
    asked = Workload(workload.domain, [*workload.thresholds, *future.counts])
    errors = errors_by_threshold(answers, table, asked, progress=progress)
    present = [errors[threshold].largest for threshold in workload]
    unseen = {threshold: count for threshold, count in future.counts.items() if threshold not in known}
    return FutureErrors(
        present_error=max(present),
        present_mean=float(np.mean(present)),
        future_error=_mean(errors, future.counts, "largest", confidence),
        future_mean_error=_mean(errors, future.counts, "mean", confidence),
        unseen=sum(unseen.values()) / future.size,
        unseen_error=_mean(errors, unseen, "largest", confidence) if unseen else None,
        largest_error=max(errors[threshold].largest for threshold in future.counts),
        above_at_most=rate_at_most(0, future.size, confidence=confidence),
    )


def expected_error(answers: Answers, table: Table, distribution: ThresholdDistribution) -> float:
    """Future error over a known distribution, exactly: no threshold is left to chance, so there is no interval."""
    possible = {
        Threshold(tuple(sorted(threshold.attributes, key=table.domain.index)), threshold.r): probability
        for threshold, probability in distribution.every()
    }
    errors = errors_by_threshold(answers, table, Workload(table.domain, possible))
    return sum(probability * errors[threshold].largest for threshold, probability in possible.items())


def errors_by_threshold(
    answers: Answers, table: Table, workload: Workload, *, progress: Progress = SILENT
) -> dict[Threshold, ThresholdError]:
    """Errors on each threshold of a workload, exact."""
    scale = GRID * max(1, answers.total)
    found = {}
    progress.stage("comparing with the truth, threshold by threshold", len(workload))
    for number, threshold, pieces in differences_by_threshold(answers, table, workload):
        largest, summed = 0, 0.0
        for piece in pieces:
            size = np.abs(piece.values)
            largest = max(largest, int(size.max(initial=0)))
            summed += float(size.sum(dtype=np.float64))
        found[threshold] = ThresholdError(largest / scale, summed / scale / threshold.cells(workload.domain))
        progress.step(number + 1)
    return found


def _mean(errors: dict[Threshold, ThresholdError], counts: dict[Threshold, int], which: str, confidence: float) -> Mean:
    values = [getattr(errors[threshold], which) for threshold in counts]
    return mean_of(values, list(counts.values()), confidence=confidence)
