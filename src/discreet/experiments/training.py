"""Training loss, present and future error along the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from discreet.compare.future import errors_by_threshold
from discreet.data.table import Table
from discreet.experiments import past, trial
from discreet.experiments.chart import grouped, where
from discreet.experiments.claim import Finding, judged, ratio
from discreet.experiments.experiment import Experiment, Figures, Row, Setting
from discreet.models.relaxed import RelaxedRows
from discreet.progress import Progress
from discreet.publish.svg import Series, Words, lines
from discreet.queries.history import History
from discreet.queries.workload import Workload

_DRAWS = {"tiny": 4, "quick": 30, "default": 60, "full": 200}
_SCHEDULES = {"tiny": (2, 2), "quick": (4, 4), "default": (4, 4), "full": (16, 4)}
_STEPS = {"quick": 1000, "default": 1000}


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    longer = {"steps": _STEPS[size]} if size in _STEPS else {}
    for dataset in datasets:
        for distribution in ("uniform", "geometric"):
            asked = {"distribution": distribution, "history": 4, "draws": _DRAWS[size], "k": 3, "r": 1}
            yield dataset, {"epsilon": 0.1, **asked, **trial.published(size, _SCHEDULES[size]), **longer}
            yield dataset, {"epsilon": 0.1, **asked, **trial.ours(size)}


class _Watch(Progress):
    """Compares a fit with the truth as it goes. For experiments only: what it finds is not private."""

    def __init__(self, table: Table, asked: Workload, later: History) -> None:
        self._table, self._asked, self._later = table, asked, later
        self._every = Workload(table.domain, [*asked, *later.counts])
        self._total = table.rows()
        self._before, self._round, self._done = 0, 0, 0
        self.seen: list[dict[str, Any]] = []

    def stage(self, name: str, steps: int = 0) -> None:
        """A new fit goes on counting where the last one ended."""
        if name in ("projection", "fit"):
            self._before, self._round, self._done = self._before + self._done, self._round + 1, 0

    def step(self, done: int, note: str = "") -> None:
        """Where the fit is."""
        self._done = done

    def fitted(self, loss: float, rows: Callable[[], Any]) -> None:
        """Compare."""
        answers = RelaxedRows.publish(self._table.domain, self._total, np.asarray(rows()))
        errors = errors_by_threshold(answers, self._table, self._every)
        future = sum(errors[threshold].largest * many for threshold, many in self._later.counts.items())
        self.seen.append(
            {
                "step": self._before + self._done,
                "round": self._round,
                "loss": loss,
                "present": max(errors[threshold].largest for threshold in self._asked),
                "future": future / self._later.size,
            }
        )


def _measure(table: Table, setting: Setting, seed: int) -> Figures:
    domain = table.domain
    asked_about = past.features(domain, setting, seed)
    asked = Workload(domain, past.history(domain, setting, asked_about, seed).counts)
    watch = _Watch(table, asked, past.future(domain, setting, asked_about, seed))
    trial.make(table, setting, seed, workload=asked, progress=watch)
    return {"queries": asked.size, "progress": watch.seen}


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for (mechanism, dataset, distribution), some in grouped(rows, "mechanism", "dataset", "distribution").items():
        seen = min(some, key=lambda row: row["seed"])["progress"]
        first = abs(seen[0]["loss"]) or 1.0
        series = [Series(name, [(at["step"], at[name]) for at in seen]) for name in ("present", "future")]
        if mechanism == "rap-paper":
            series.append(Series("training loss, relative", [(at["step"], at["loss"] / first) for at in seen]))
        words = Words(
            f"{mechanism} along its fit: 4 {distribution} 1-of-3 thresholds of {dataset}",
            "One seed. Errors are fractions of the rows; each round starts a new fit.",
            "steps of the fit",
            "error",
        )
        made[f"{mechanism}-{dataset}-{distribution}"] = lines(series, words, log_y=True)
    return made


def _rise(row: Row) -> tuple[float, float]:
    """Future error at the end beside the least future error on the way."""
    seen = row["progress"]
    return seen[-1]["future"], min(at["future"] for at in seen)


def _fall(row: Row) -> float:
    seen = row["progress"]
    return float(seen[-1]["future"] / seen[0]["future"])


def _findings(rows: Sequence[Row]) -> list[Finding]:
    found = []
    for mechanism in ("rap-paper", "rap"):
        some = where(rows, mechanism=mechanism)
        found.append(
            judged(
                "The fit does not overfit to the history: future error falls all the way.",
                f"`{mechanism}`: future error at the end over the least on the way",
                ratio(map(_rise, some)),
                below=1.1,
            )
        )
        cells = grouped(some, "dataset", "seed").values()
        both = [{row["distribution"]: _fall(row) for row in cell} for cell in cells]
        found.append(
            judged(
                "Future error falls less along the fit for a uniform distribution than for a geometric one.",
                f"`{mechanism}`: last over first future error, uniform over geometric",
                ratio((cell["uniform"], cell["geometric"]) for cell in both if len(cell) == 2),
                above=1,
            )
        )
    return found


EXPERIMENT = Experiment(
    name="training",
    title="Along the fit",
    source="Avent and Korolova (2023), Figure 14",
    grid=_grid,
    measure=_measure,
    pictures=_pictures,
    findings=_findings,
    remarks=(
        "The first point is after 250 steps of the first round for `rap-paper`, and before the first step for `rap`.",
        "The published recipe's loss is of the queries selected so far, so it jumps up when a round adds some. The "
        "loss of `rap` is an estimate of its risk up to a constant, and is not drawn.",
        "A rise of less than a tenth counts as none.",
    ),
)
