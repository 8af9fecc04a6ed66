"""Error of synthetic rows by how many are drawn from each relaxed row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from discreet.compare.errors import errors
from discreet.data.table import Table
from discreet.experiments import trial
from discreet.experiments.chart import line, lines_of, mean, over_seeds, values, where
from discreet.experiments.claim import Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Figures, Row, Setting
from discreet.models.rounded import RoundedRows
from discreet.publish import rows as synthetic
from discreet.publish.svg import lines

COPIES = (1, 2, 5, 10, 20, 50)
_THRESHOLDS = {"tiny": 2, "quick": 16, "default": 16, "full": 64}
_EPSILONS = {"tiny": (1.0,), "quick": (0.1, 1.0), "default": (0.1, 1.0), "full": (0.1, 0.5, 1.0)}
_SCHEDULES = {"tiny": (1, 2), "quick": (4, 16), "default": (4, 16), "full": (16, 16)}


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    for dataset in datasets:
        for epsilon in _EPSILONS[size]:
            for mechanism in (trial.published(size, _SCHEDULES[size]), trial.ours(size)):
                yield dataset, {"epsilon": epsilon, "k": 3, "thresholds": _THRESHOLDS[size], **mechanism}


def _measure(table: Table, setting: Setting, seed: int) -> Figures:
    """One release, rounded many times: independently for each row, and systematically as releases are."""
    asked = trial.workload(table, setting, seed)
    made = trial.make(table, setting, seed, workload=asked)
    generator, rows = np.random.default_rng([seed, 4]), int(made.settings["rows"])

    def largest(codes: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]) -> float:
        counted = RoundedRows(table.domain, made.answers.total, np.concatenate(codes))
        return errors(counted, table, asked, made.schema, worst=1).max_error

    rounded = []
    for copies in COPIES:
        once = [synthetic.draw(made.answers, rows, generator) for _ in range(copies)]
        whole = [synthetic.draw(made.answers, rows * copies, generator)]
        rounded.append({"copies": copies, "independent": largest(once), "systematic": largest(whole)})
    relaxed = errors(made.answers, table, asked, made.schema, worst=1).max_error
    return {"queries": asked.size, "max_error": relaxed, "rounded": rounded, **trial.steps_of(made)}


def _flat(rows: Sequence[Row]) -> list[Row]:
    return [{**row, **each} for row in rows for each in row["rounded"]]


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made, flat = {}, _flat(rows)
    for mechanism in ("rap-paper", "rap"):
        for dataset in values(flat, "dataset"):
            for epsilon in values(flat, "epsilon"):
                some = where(flat, dataset=dataset, epsilon=epsilon, mechanism=mechanism)
                names = {"independent": "independent", "systematic": "systematic", "max_error": "before rounding"}
                series = lines_of(line(name, some, "copies", figure) for figure, name in names.items())
                words = over_seeds(
                    f"{mechanism}: largest error of rounded rows, {dataset}, epsilon {epsilon:g}",
                    "rows drawn from each relaxed row",
                )
                if series:
                    made[f"{mechanism}-{dataset}-epsilon-{epsilon:g}"] = lines(series, words, log_x=True)
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    found, flat = [], _flat(rows)
    keys = ("dataset", "epsilon", "seed")
    for mechanism in ("rap-paper", "rap"):
        some = where(flat, mechanism=mechanism)
        listed = "; ".join(
            f"{copies}: {mean(where(some, copies=copies), 'independent'):.4f}" for copies in values(some, "copies")
        )
        before = [row | {"independent": row["max_error"]} for row in where(some, copies=1)]
        found.append(
            judged(
                "Rounding each relaxed row five times comes close to the error before rounding.",
                f"`{mechanism}`, largest error by rows drawn from each: {listed}. Five rows over before rounding",
                ratio(pairs(where(some, copies=5), before, *keys, figure="independent")),
                below=1.1,
            )
        )
        found.append(
            judged(
                "Systematic draws lose less than independent ones.",
                f"`{mechanism}`: systematic over independent, five rows each",
                ratio((row["systematic"], row["independent"]) for row in where(some, copies=5)),
                below=1,
                whose="We",
            )
        )
    return found


EXPERIMENT = Experiment(
    name="oversampling",
    title="Randomised rounding with oversampling",
    source="Aydore et al. (2021), Figure 5 (b)",
    grid=_grid,
    measure=_measure,
    pictures=_pictures,
    findings=_findings,
    remarks=(
        "The paper does not print the workload of its figure. Close means less than a tenth above.",
        "With fewer relaxed rows there are fewer rounded ones too, and rounding loses more.",
    ),
)
