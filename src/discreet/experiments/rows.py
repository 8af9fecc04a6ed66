"""Relaxed rows n' against error and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.experiments import trial
from discreet.experiments.chart import grouped, line, lines_of, mean, over_seeds, values, where
from discreet.experiments.claim import Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Row, Setting
from discreet.publish.svg import lines

_ROWS = {
    "tiny": (10, 20),
    "quick": (50, 200, 1000),
    "default": (50, 100, 200, 500, 1000),
    "full": (50, 100, 200, 500, 1000, 2000, 5000),
}
_KINDS = {
    "tiny": ((4, 4),),
    "quick": ((3, 3), (3, 1)),
    "default": ((3, 3), (4, 4), (4, 1)),
    "full": ((3, 3), (4, 1), (4, 2), (4, 3), (4, 4)),
}
_USUAL, _CLOSE = 1000, 1.25
_THRESHOLDS = {"tiny": 2, "quick": 16, "default": 16, "full": 64}
_SCHEDULE = {"tiny": (1, 2), "quick": (2, 16), "default": (4, 16), "full": (16, 4)}


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    for dataset in datasets:
        for k, r in _KINDS[size]:
            for mechanism in (trial.published(size, _SCHEDULE[size]), trial.ours(size)):
                for rows in _ROWS[size]:
                    base = {"epsilon": 0.1, "k": k, "r": r, "thresholds": _THRESHOLDS[size]}
                    yield dataset, base | mechanism | {"rows": rows}


def _named(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {
        f"{mechanism}, {r} of {k}": some for (mechanism, k, r), some in grouped(rows, "mechanism", "k", "r").items()
    }


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for dataset in values(rows, "dataset"):
        some = where(rows, dataset=dataset)
        for figure, what in (("max_error", "largest error, fraction of rows"), ("seconds", "seconds")):
            words = over_seeds(
                f"{what.split(',')[0].capitalize()} by relaxed rows on {dataset}, epsilon 0.1", "relaxed rows n'", what
            )
            series = lines_of(line(name, found, "rows", figure) for name, found in _named(some).items())
            made[f"{dataset}-{'error' if figure == 'max_error' else figure}"] = lines(
                series, words, log_x=True, log_y=True
            )
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    found = []
    for mechanism in ("rap-paper", "rap"):
        some = where(rows, mechanism=mechanism)
        if not some:
            continue
        small, large = min(values(some, "rows")), max(values(some, "rows"))
        listed = "; ".join(
            f"n' = {n}: {mean(where(some, rows=n), 'max_error'):.4f} in {mean(where(some, rows=n), 'seconds'):.1f} s"
            for n in values(some, "rows")
        )
        keys = ("dataset", "k", "r", "seed")
        few, many = where(some, rows=small), where(some, rows=large)
        found.append(
            judged(
                "More relaxed rows lower the error, mildly.",
                f"`{mechanism}`: {listed}. Error at n' = {large} over n' = {small}",
                ratio(pairs(many, few, *keys)),
                below=1,
            )
        )
        found.append(
            judged(
                "Time does not grow in proportion to n': few rows make the optimisation harder.",
                f"`{mechanism}`: seconds at n' = {large} over seconds at n' = {small}, divided by {large / small:g}",
                ratio((one / large, other / small) for one, other in pairs(many, few, *keys, figure="seconds")),
                below=1,
            )
        )
        found.append(
            judged(
                "n' = 1000 is close to the quickest.",
                f"`{mechanism}`: seconds at n' = {_USUAL} over those at n' = {small}; close is up to {_CLOSE:g} times",
                ratio(pairs(where(some, rows=_USUAL), few, *keys, figure="seconds")),
                below=_CLOSE,
            )
        )
    return found


EXPERIMENT = Experiment(
    name="rows",
    title="Relaxed rows against error and time",
    source="Avent and Korolova (2023), Figure 9; Aydore et al. (2021), Figures 6 and 8",
    grid=_grid,
    measure=trial.present,
    pictures=_pictures,
    findings=_findings,
    remarks=(
        "One schedule (T, K) is run rather than the best of many.",
        "Seconds are of the whole cell: counting, selection, fit and comparison, on a machine that may be shared; the "
        "first cell of each shape also compiles. The papers ran on GPUs.",
    ),
)
