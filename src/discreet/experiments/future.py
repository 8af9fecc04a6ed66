"""Future error by distribution and size of the history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.compare.future import future_errors
from discreet.data.table import Table
from discreet.experiments import past, trial
from discreet.experiments.chart import adaptive, best, line, lines_of, over_seeds, spread, values, where
from discreet.experiments.claim import NOT_PRIVATE, Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Figures, Row, Setting
from discreet.publish.svg import Words, lines
from discreet.queries.workload import Workload

_HISTORIES = {"tiny": (1, 3), "quick": (1, 4, 16), "default": (1, 4, 16, 64), "full": (1, 4, 16, 64, 256, 1024)}
_DRAWS = {"tiny": 5, "quick": 50, "default": 100, "full": 400}
_SCHEDULES: dict[str, tuple[tuple[int, int], ...]] = {
    "tiny": ((1, 2),),
    "quick": ((4, 4),),
    "default": ((4, 4), (4, 16)),
    "full": trial.PAPER_GRID,
}
_PLACE = ("dataset", "distribution", "history")


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    mechanisms = [trial.baseline("all-zero"), trial.ours(size)]
    mechanisms += [trial.published(size, schedule) for schedule in _SCHEDULES[size]]
    for dataset in datasets:
        for many in _HISTORIES[size]:
            for distribution in past.DISTRIBUTIONS:
                for mechanism in mechanisms:
                    asked = {"distribution": distribution, "history": many, "draws": _DRAWS[size], "k": 3, "r": 1}
                    yield dataset, {"epsilon": 0.1, **asked, **mechanism}


def _measure(table: Table, setting: Setting, seed: int) -> Figures:
    domain = table.domain
    asked_about = past.features(domain, setting, seed)
    asked = Workload(domain, past.history(domain, setting, asked_about, seed).counts)
    made = trial.make(table, setting, seed, workload=asked)
    found = future_errors(made.answers, table, asked, past.future(domain, setting, asked_about, seed))
    return {
        "queries": asked.size,
        "present_error": found.present_error,
        "present_mean": found.present_mean,
        "future_error": found.future_error.mean,
        "future_low": found.future_error.low,
        "future_high": found.future_error.high,
        "unseen": found.unseen,
        **trial.steps_of(made),
    }


def _chosen(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The lines of Figure 12, and ours."""
    return {
        "rap-paper (least present error over T, K)": best(adaptive(rows), *_PLACE, by="present_error"),
        "rap-paper (least future error)": best(adaptive(rows), *_PLACE, by="future_error"),
        "rap": where(rows, mechanism="rap"),
        "all-zero": where(rows, mechanism="all-zero"),
    }


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for dataset in values(rows, "dataset"):
        some = where(rows, dataset=dataset)
        for name, kind in (("rap-paper", best(adaptive(some), *_PLACE, by="present_error")), ("rap", _rap(some))):
            series = lines_of(
                line(each, where(kind, distribution=each), "history", "future_error") for each in past.DISTRIBUTIONS
            )
            if series:
                made[f"{dataset}-{name}"] = lines(series, _words(dataset, name), log_x=True)
        for distribution in values(some, "distribution"):
            here = where(some, distribution=distribution)
            series = lines_of(line(each, found, "history", "future_error") for each, found in _chosen(here).items())
            made[f"{dataset}-{distribution}"] = lines(series, _words(dataset, distribution), log_x=True, log_y=True)
    return made


def _rap(rows: Sequence[Row]) -> list[Row]:
    return where(rows, mechanism="rap")


def _words(dataset: str, what: str) -> Words:
    return over_seeds(
        f"Future error on 1-of-3 thresholds of {dataset}, {what}, epsilon 0.1",
        "thresholds in the history",
        "largest error on a future threshold, mean",
    )


def _findings(rows: Sequence[Row]) -> list[Finding]:
    found = []
    zero = where(rows, mechanism="all-zero")
    named = {"rap-paper": best(adaptive(rows), *_PLACE, by="present_error"), "rap": _rap(rows)}
    for name, some in named.items():
        if not some:
            continue
        small, large = min(values(some, "history")), max(values(some, "history"))
        listed = "; ".join(
            f"{many}: {spread(where(some, history=many), 'future_error')}" for many in values(some, "history")
        )
        found.append(
            judged(
                "More history lowers future error.",
                f"`{name}`, by thresholds in the history: {listed}. At {large} over at {small}",
                ratio(
                    pairs(
                        where(some, history=large),
                        where(some, history=small),
                        "dataset",
                        "distribution",
                        "seed",
                        figure="future_error",
                    )
                ),
                below=1,
            )
        )
        found.append(
            judged(
                "With little history a concentrated distribution (geometric) is easier than an even one.",
                f"`{name}`: geometric over uniform, histories of at most 4 thresholds",
                ratio(
                    pairs(
                        [row for row in where(some, distribution="geometric") if row["history"] <= 4],
                        [row for row in where(some, distribution="uniform") if row["history"] <= 4],
                        "dataset",
                        "history",
                        "seed",
                        figure="future_error",
                    )
                ),
                below=1,
            )
        )
        found.append(
            judged(
                "RAP's future error is below that of answering zero.",
                f"`{name}` over `all-zero`",
                ratio(pairs(some, zero, *_PLACE, "seed", figure="future_error")),
                below=1,
            )
        )
    return found


EXPERIMENT = Experiment(
    name="future",
    title="Future error by distribution and history",
    source="Avent and Korolova (2023), Figures 12 and 13 and Table 5",
    grid=_grid,
    measure=_measure,
    pictures=_pictures,
    findings=_findings,
    remarks=(
        NOT_PRIVATE,
        "The paper does not print the parameters of its distributions: Zipf's exponent is 1 here, the geometric one "
        "has p = 1/4. Attributes get the probabilities in a random order by seed. Histories are drawn independently, "
        "so they may repeat.",
        "Future error is the mean over drawn thresholds of the largest error on each; present error is a maximum over "
        "the workload, so the one may well be below the other.",
    ),
)
