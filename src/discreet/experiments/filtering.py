"""Filtered against unfiltered marginals, with nested regression and likelihood-ratio test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.experiments import trial
from discreet.experiments.chart import best, lines_of, values, where
from discreet.experiments.claim import CONFIRMED, NOT_PRIVATE, REFUTED, UNDECIDED, Finding
from discreet.experiments.experiment import Experiment, Row, Setting
from discreet.experiments.regression import fitted, nested
from discreet.publish.svg import Series, Words, lines

_EPSILONS = {"tiny": (1.0,), "quick": (0.1, 1.0), "default": (0.1, 1.0), "full": (0.01, 0.1, 1.0)}
_THRESHOLDS = {"tiny": (1, 2, 3), "quick": (4, 16, 64), "default": (1, 4, 16, 64), "full": (1, 4, 16, 64, 256)}
_SCHEDULES: dict[str, tuple[tuple[int, int], ...]] = {
    "tiny": ((1, 2),),
    "quick": ((4, 16),),
    "default": ((4, 4), (4, 16)),
    "full": trial.PAPER_GRID,
}
_LEVEL = 0.05
_RULE = "The F-test's p decides, since the likelihood-ratio test is too ready to reject with few runs."
_SIZES = {"thresholds": "workload size", "queries": "number of queries"}


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    mechanisms = [trial.published(size, schedule) for schedule in _SCHEDULES[size]] + [trial.ours(size)]
    for dataset in datasets:
        for many in _THRESHOLDS[size]:
            for epsilon in _EPSILONS[size]:
                for filtered in (False, True):
                    for mechanism in mechanisms:
                        yield (
                            dataset,
                            {"epsilon": epsilon, "k": 3, "thresholds": many, "filtered": filtered, **mechanism},
                        )


def _chosen(rows: Sequence[Row], mechanism: str) -> list[Row]:
    return best(where(rows, mechanism=mechanism), "dataset", "epsilon", "thresholds", "filtered")


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for mechanism in values(rows, "mechanism"):
        for dataset in values(rows, "dataset"):
            some = where(_chosen(rows, mechanism), dataset=dataset)
            epsilon = min(values(some, "epsilon"))
            for size, told in reversed(_SIZES.items()):
                model = fitted(some, size)
                series = []
                for kept, name in ((True, "filtered"), (False, "unfiltered")):
                    here = where(some, filtered=kept, epsilon=epsilon)
                    series.append(Series(name, sorted((row[size], row["max_error"]) for row in here)))
                    if model is not None:
                        curve = {
                            (row[size], value)
                            for row, value in zip(some, model, strict=True)
                            if row["filtered"] == kept and row["epsilon"] == epsilon
                        }
                        series.append(Series(f"{name}, regression", sorted(curve)))
                words = Words(
                    f"{mechanism}: largest error by {told}, {dataset}, epsilon {epsilon:g}",
                    "Every run, and the full regression model.",
                    told,
                    "largest error, fraction of rows",
                )
                made[f"{mechanism}-{dataset}-by-{size}"] = lines(lines_of(series), words, log_x=True)
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    found = []
    for mechanism in ("rap-paper", "rap"):
        some = _chosen(rows, mechanism)
        found.append(_queries(some, f"`{mechanism}`"))
        found.append(_size(some, f"`{mechanism}`"))
    return found


def _queries(rows: Sequence[Row], who: str) -> Finding:
    paper = (
        "At an equal number of queries, filtering out marginals with more queries than there are rows raises the error "
        "(p < 0.0001 on both datasets)."
    )
    test = nested(rows, "queries")
    if test is None:
        return Finding(paper, f"{who}: too few cells.", UNDECIDED, "The regression cannot be fitted.")
    ours = (
        f"{who}: likelihood ratio {test.statistic:.1f} with {test.freedom} degrees of freedom, p = {test.p_value:.2g} "
        f"(F-test {test.f_p_value:.2g}); filtering shifts the error by {test.shift:+.4f} on average; adjusted R² "
        f"{test.adjusted_r2:.2f}, {test.observations} runs."
    )
    verdict = CONFIRMED if test.shift > 0 else REFUTED
    why = f"It is below {_LEVEL:g}, so the sign of the mean shift decides."
    if test.f_p_value > _LEVEL:
        verdict, why = UNDECIDED, f"It is above {_LEVEL:g}: no effect is established."
    return Finding(paper, ours, verdict, f"{_RULE} {why}", figure=test.short)


def _size(rows: Sequence[Row], who: str) -> Finding:
    paper = "At an equal workload size filtering matters on ADULT (p = 0.026) but not evidently on LOANS (0.62)."
    test = nested(rows, "thresholds")
    if test is None:
        return Finding(paper, f"{who}: too few cells.", UNDECIDED, "The regression cannot be fitted.")
    ours = (
        f"{who}: p = {test.p_value:.2g} (F-test {test.f_p_value:.2g}), shift {test.shift:+.4f}, adjusted R² "
        f"{test.adjusted_r2:.2f}."
    )
    verdict = CONFIRMED if rows[0]["dataset"] == "adult" else UNDECIDED
    why = f"It is below {_LEVEL:g}; only ADULT had an effect in the paper."
    if test.f_p_value > _LEVEL:
        verdict, why = UNDECIDED, f"It is above {_LEVEL:g}, which does not show that there is none."
    return Finding(paper, ours, verdict, f"{_RULE} {why}", figure=test.short)


EXPERIMENT = Experiment(
    name="filtering",
    title="Filtering out large marginals",
    source="Avent and Korolova (2023), Figures 5 and 6 and appendix",
    grid=_grid,
    measure=trial.present,
    pictures=_pictures,
    findings=_findings,
    remarks=(
        NOT_PRIVATE,
        "The regression is the appendix's: a dummy for each epsilon but the first, the logarithm of the size, their "
        "interactions, and all of these once more for filtered workloads.",
    ),
)
