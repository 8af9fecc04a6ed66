"""Error over rounds T and queries per round K."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import exp, log

import numpy as np

from discreet.experiments import trial
from discreet.experiments.chart import adaptive, grouped, mean, values, where
from discreet.experiments.claim import NOT_PRIVATE, Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Row, Setting
from discreet.publish.svg import Words, heat

_EPSILONS = {"tiny": (0.1, 1.0), "quick": (0.1, 1.0), "default": (0.1, 1.0), "full": (0.01, 0.1, 1.0)}
_THRESHOLDS = {"tiny": (2,), "quick": (16,), "default": (16,), "full": (1, 4, 16, 64, 256)}
_SCHEDULES = {
    "tiny": tuple(product((1, 2), (1, 2))),
    "quick": tuple(product((1, 4, 16), (4, 16, 64))),
    "default": tuple(product((1, 4, 16), (4, 16, 64))),
    "full": trial.PAPER_GRID,
}
_KINDS = {"tiny": ((3, 3),), "quick": ((3, 3),), "default": ((3, 3), (4, 1)), "full": ((3, 3), (4, 1), (4, 4))}
_PLACE = ("dataset", "k", "r", "epsilon", "thresholds", "mechanism")


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    for dataset in datasets:
        for k, r in _KINDS[size]:
            for many in _THRESHOLDS[size]:
                for epsilon in _EPSILONS[size]:
                    base: Setting = {"epsilon": epsilon, "k": k, "r": r, "thresholds": many}
                    for schedule in _SCHEDULES[size]:
                        yield dataset, base | trial.published(size, schedule)
                    turns = _SCHEDULES[size] if size == "full" else [s for s in _SCHEDULES[size] if s[0] in (1, 4)]
                    for schedule in turns:
                        yield dataset, base | trial.ours(size, schedule)


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for (dataset, k, r, epsilon, many, mechanism), some in grouped(rows, *_PLACE).items():
        across, down = values(some, "per_round"), values(some, "rounds")
        cells = grouped(some, "rounds", "per_round")
        table = [[mean(cells[t, p], "max_error") if (t, p) in cells else float("nan") for p in across] for t in down]
        what = f"{many} {k}-way marginals" if r == k else f"{many} {r}-of-{k} thresholds"
        words = Words(
            f"{mechanism}: largest error, {what} of {dataset}, epsilon {epsilon:g}",
            "Mean over seeds; lower is better, and paler.",
            "K, queries selected in a round",
            "T, rounds",
        )
        name = f"{mechanism}-{dataset}-{r}-of-{k}-{many}-epsilon-{epsilon:g}"
        made[name] = heat(table, words, across=[str(p) for p in across], down=[str(t) for t in down])
    return made


def _products(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """For each place and seed: how much schedules of equal T K differ, beside how much others do (as factors)."""
    found = []
    for some in grouped(rows, *_PLACE, "seed").values():
        same: list[float] = []
        other: list[float] = []
        for one, two in combinations(some, 2):
            apart = abs(log(one["max_error"] / two["max_error"]))
            equal = one["rounds"] * one["per_round"] == two["rounds"] * two["per_round"]
            (same if equal else other).append(apart)
        if same and other:
            found.append((exp(float(np.mean(same))), exp(float(np.mean(other)))))
    return found


def _optimum(rows: Sequence[Row], epsilon: float) -> list[Row]:
    """The product T K of least error, place by place."""
    found = []
    for some in grouped(where(rows, epsilon=epsilon), *_PLACE, "seed").values():
        least = min(some, key=lambda row: row["max_error"])
        found.append(least | {"product": least["rounds"] * least["per_round"]})
    return found


def _findings(rows: Sequence[Row]) -> list[Finding]:
    found = []
    for mechanism in ("rap-paper", "rap"):
        marginals = [row for row in adaptive(rows, mechanism) if row["k"] == row["r"] and row["max_error"] > 0]
        epsilons = values(marginals, "epsilon")
        found.append(
            judged(
                "What matters on marginals is T K, the number of queries measured: schedules with the same product "
                "have comparable errors.",
                f"`{mechanism}`: factor between two schedules of the same T K, over the factor between others",
                ratio(_products(marginals)),
                below=1,
            )
        )
        low, high = (_optimum(marginals, epsilons[at]) for at in (0, -1)) if len(epsilons) > 1 else ([], [])
        found.append(
            judged(
                "A larger epsilon moves the best T K up.",
                f"`{mechanism}`: best T K at the largest epsilon over that at the smallest",
                ratio(pairs(high, low, "dataset", "k", "r", "thresholds", "seed", figure="product")),
                above=1,
            )
        )
    low_r = [row for row in adaptive(rows) if row["r"] < row["k"] and row["rounds"] * row["per_round"] > 1]
    many = [row for row in low_r if row["rounds"] > row["per_round"]]
    few = [row for row in low_r if row["rounds"] < row["per_round"]]
    found.append(
        judged(
            "For thresholds with r < k, many rounds with few queries each do best, whatever the product.",
            "`rap-paper`: mean error of schedules with T > K over that of schedules with T < K",
            ratio(pairs(many, few, "dataset", "epsilon", "thresholds", "k", "r", "seed")),
            below=1,
        )
    )
    return found


EXPERIMENT = Experiment(
    name="schedule",
    title="Rounds and queries per round",
    source="Avent and Korolova (2023), Figures 3, 4 and 8",
    grid=_grid,
    measure=trial.present,
    pictures=_pictures,
    findings=_findings,
    remarks=(
        NOT_PRIVATE,
        "`rap` measures the whole marginals of the K selected queries, so its K counts marginals rather than queries.",
    ),
)
