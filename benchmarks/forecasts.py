"""Plans beside the family: the forecast of every mechanism against what `discreet experiment family` found.

Nothing is run: cells come from the experiment's results.jsonl. They were run in processes of their own, on one core.
Memory and errors are compared of all of them. The time of each is divided by the slowness of its machine, so that of
times only those count whose machine is known, and of these cells only those that took more than a second or were
forecast to: less is not what a plan is for.
"""

from __future__ import annotations

from math import exp, log
from typing import Any

from benchmarks.record import HERE, Context
from discreet.data.table import Table
from discreet.errors import BadSetting
from discreet.experiments import beside, record
from discreet.experiments.chart import grouped, mean
from discreet.experiments.runner import read_dataset
from discreet.publish.planning import plan
from discreet.queries import parse
from discreet.queries.workload import Workload

RESULTS = HERE.parent / "docs" / "reproduction" / "family" / record.RESULTS
_FIGURES = {
    "time": ("seconds", "paced"),
    "memory": ("bytes", "peak"),
    "largest error": ("largest_error", "max_error"),
}
_SETTINGS: tuple[str, ...] = ("passes", "whole", "rounds", "objective", "transform", "perturb")
_LEAST_SECONDS = 1.0
_WITHIN = 2.0

Row = dict[str, Any]


def run(context: Context) -> None:
    """A line for each mechanism: how many cells are within a factor of two, and how far off they are."""
    ratios: dict[str, dict[str, list[tuple[float, str]]]] = {figure: {} for figure in _FIGURES}
    results = rows()
    for (dataset,), of_table in grouped(results, "dataset").items():
        table = read_dataset(context.data, dataset)
        for (workload,), of_workload in grouped(of_table, "workload").items():
            asked = parse.workload(workload, table.domain, seed=0)
            for (epsilon,), some in grouped(of_workload, "epsilon").items():
                for title, cells in beside.named(some).items():
                    told = _forecast(table, asked, epsilon, cells[0])
                    for figure, ratio in _ratios(told, cells).items():
                        ratios[figure].setdefault(title, []).append((ratio, f"{dataset} {workload} {epsilon:g}"))
    print("| mechanism |" + "".join(f" {figure} within 2 | found over forecast |" for figure in _FIGURES))
    print("|---|" + "---|---|" * len(_FIGURES))
    titles = ratios["memory"]
    for title in titles:
        print(f"| {title} |" + "".join(f" {_told(by.get(title, []))} |" for by in ratios.values()))
    every = [[one for found in by.values() for one in found] for by in ratios.values()]
    print("| all |" + "".join(f" {_told(found)} |" for found in every))
    print(f"\nFrom {len(results):,} results, {len(paced(results)):,} of them of machines whose pace is known. ", end="")
    print("Time and memory that are off by more than a factor of two, found over forecast:")
    for figure in ("time", "memory"):
        for title, found in ratios[figure].items():
            for ratio, where in found:
                if not _close(ratio):
                    print(f"- {figure}, {title}, {where}: {ratio:.2f}")


def rows() -> list[Row]:
    """Results with figures; those that say how slow their machine was have their time at the pace of forecasts."""
    entries = [entry for entry in record.load(RESULTS) if entry.get("figures")]
    slow = [entry.get("slowness") for entry in entries]
    return [
        row if pace is None else row | {"slowness": pace, "paced": row["release_seconds"] / pace}
        for row, pace in zip(record.rows(entries), slow, strict=True)
    ]


def paced(some: list[Row]) -> list[Row]:
    """Those of machines whose pace is known."""
    return [row for row in some if "paced" in row]


def _ratios(told: dict[str, float], cells: list[Row]) -> dict[str, float]:
    """What was found over what was foreseen."""
    found = {
        figure: mean(cells, key) / told[foreseen]
        for figure, (foreseen, key) in _FIGURES.items()
        if key != "paced" and foreseen in told
    }
    timed = paced(cells)
    if timed and mean(timed, "slowness") * max(told["seconds"], mean(timed, "paced")) >= _LEAST_SECONDS:
        found["time"] = mean(timed, "paced") / told["seconds"]
    return found


def _forecast(table: Table, asked: Workload, epsilon: float, cell: Row) -> dict[str, float]:
    """What `discreet plan` says of a cell, on the machine that forecasts were measured on."""
    (told,) = plan(
        table,
        asked,
        epsilon=epsilon,
        mechanisms=[cell["mechanism"]],
        settings={name: cell[name] for name in _SETTINGS if name in cell},
        certificate=0,
        slowness=1.0,
    )
    if told.seconds is None or told.bytes is None or told.largest_error is None:
        raise BadSetting(f"{told.mechanism} ran, and its plan refuses it: {told.refused}")
    foreseen = {"seconds": told.seconds, "bytes": float(told.bytes)}
    if told.mechanism == "all-zero":  # "up to 1" is no forecast
        return foreseen
    return foreseen | {"largest_error": told.largest_error}


def _close(ratio: float) -> bool:
    return 1 / _WITHIN <= ratio <= _WITHIN


def _told(found: list[tuple[float, str]]) -> str:
    """How many are close, of how many, their geometric mean and range."""
    ratios = [ratio for ratio, _ in found]
    if not ratios:
        return "0 of 0 |"
    middle = exp(sum(map(log, ratios)) / len(ratios))
    return f"{sum(map(_close, ratios))} of {len(ratios)} | {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
