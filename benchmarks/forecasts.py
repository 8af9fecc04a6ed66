"""Plans beside the family: the forecast of every mechanism against what `discreet experiment family` found.

Nothing is run: cells come from the experiment's results.jsonl. They were run in processes of their own, on one core,
and the time of each is divided by the slowness of its machine, so that only cells count whose machine is known. Cells
that took less than a second and were forecast to are left out: that is not what a plan is for.
"""

from __future__ import annotations

from math import exp, log
from typing import Any

from benchmarks.record import HERE, Context
from discreet.data.table import Table
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
    entries = known()
    rows = [
        {**row, "slowness": entry["slowness"], "paced": row["release_seconds"] / entry["slowness"]}
        for entry in entries
        for row in record.rows([entry])
    ]
    for (dataset,), of_table in grouped(rows, "dataset").items():
        table = read_dataset(context.data, dataset)
        for (workload,), of_workload in grouped(of_table, "workload").items():
            asked = parse.workload(workload, table.domain, seed=0)
            for (epsilon,), some in grouped(of_workload, "epsilon").items():
                for title, cells in beside.named(some).items():
                    told = _forecast(table, asked, epsilon, cells[0])
                    if mean(cells, "slowness") * max(told["seconds"], mean(cells, "paced")) < _LEAST_SECONDS:
                        continue
                    for figure, (foreseen, found) in _FIGURES.items():
                        ratio = mean(cells, found) / told[foreseen]
                        where = f"{dataset} {workload} {epsilon:g}"
                        ratios[figure].setdefault(title, []).append((ratio, where))
    print("| mechanism | cells |" + "".join(f" {figure} within 2 | found over forecast |" for figure in _FIGURES))
    print("|---|---|" + "---|---|" * len(_FIGURES))
    times = ratios["time"]
    for title in times:
        print(f"| {title} | {len(times[title])} |" + "".join(f" {_told(by[title])} |" for by in ratios.values()))
    every = [[one for found in by.values() for one in found] for by in ratios.values()]
    print(f"| all | {len(every[0])} |" + "".join(f" {_told(found)} |" for found in every))
    print(f"\nFrom {len(entries):,} results. Times that are off by more than a factor of two, found over forecast:")
    for title in times:
        for ratio, where in times[title]:
            if not _close(ratio):
                print(f"- {title}, {where}: {ratio:.2f}")


def known() -> list[record.Entry]:
    """Results that say how slow their machine was."""
    return [entry for entry in record.load(RESULTS) if entry.get("figures") and "slowness" in entry]


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
    return {
        "seconds": told.seconds or 0.0,
        "bytes": float(told.bytes or 0),
        "largest_error": told.largest_error or 1.0,
    }


def _close(ratio: float) -> bool:
    return 1 / _WITHIN <= ratio <= _WITHIN


def _told(found: list[tuple[float, str]]) -> str:
    """How many are close, their geometric mean and range."""
    ratios = [ratio for ratio, _ in found]
    middle = exp(sum(map(log, ratios)) / len(ratios))
    return f"{sum(map(_close, ratios))} | {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
