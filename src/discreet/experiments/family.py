"""Every mechanism beside every other: errors, time and memory, table by table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from discreet.compare.errors import errors
from discreet.data.table import Table
from discreet.experiments.chart import grouped, line, lines_of, mean, over_seeds, values, where
from discreet.experiments.claim import Finding, judged, pairs, ratio
from discreet.experiments.experiment import Cell, Experiment, Figures, Row, Setting
from discreet.publish.make import release
from discreet.publish.svg import lines
from discreet.queries import parse

_WORKLOADS = {"adult": ("random:3:64", "all:3"), "loans": ("random:3:64",)}
"""What is asked of each table; all three-way marginals of any other."""

_TABLES = {
    "tiny": ("adult",),
    "quick": ("adult-reduced", "nltcs"),
    "default": ("adult", "adult-binned", "adult-reduced", "nltcs", "loans"),
    "full": ("adult", "adult-binned", "adult-reduced", "nltcs", "loans"),
}
_EPSILONS = {"tiny": (1.0,), "quick": (0.1, 1.0), "default": (0.1, 1.0), "full": (0.1, 0.25, 0.5, 1.0)}

_MECHANISMS: tuple[Setting, ...] = (
    {"mechanism": "auto"},
    {"mechanism": "rap"},
    {"mechanism": "gaussian"},
    {"mechanism": "residual-planner"},
    {"mechanism": "residual-planner", "objective": "largest"},
    {"mechanism": "all-zero"},
    {"mechanism": "mwem"},
    {"mechanism": "mwem", "passes": 20},
    {"mechanism": "mwem", "passes": 20, "whole": True, "rounds": 30},
    {"mechanism": "pep"},
    {"mechanism": "pep", "whole": True, "rounds": 30},
    {"mechanism": "dualquery"},
    {"mechanism": "fem"},
    {"mechanism": "rap-paper"},
    {"mechanism": "rap-softmax"},
    {"mechanism": "gem"},
    {"mechanism": "gem", "whole": True, "rounds": 30},
    {"mechanism": "mst"},
    {"mechanism": "aim"},
)
_TINY: tuple[Setting, ...] = (
    {"mechanism": "rap", "rows": 20, "max_steps": 40},
    {"mechanism": "rap-paper", "rows": 20, "steps": 20, "rounds": 2, "per_round": 2},
)
_SLOW = ("rap-paper", "rap-softmax", "gem", "fem", "mst", "aim")
_SLOW_EPSILONS, _SLOW_SEEDS = (0.1, 1.0), 3
_MINUTES = 20.0
_FIGURES = {
    "max_error": "largest error",
    "mean_error": "mean error",
    "rmse": "RMSE",
    "mean_tvd": "total variation",
    "release_seconds": "seconds",
    "peak": "peak memory",
}


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    for dataset in datasets:
        for workload in ("random:3:2",) if size == "tiny" else _WORKLOADS.get(dataset, ("all:3",)):
            for epsilon in _EPSILONS[size]:
                for mechanism in _TINY if size == "tiny" else _MECHANISMS:
                    if mechanism["mechanism"] not in _SLOW or epsilon in _SLOW_EPSILONS:
                        yield dataset, {"epsilon": epsilon, "workload": workload, **mechanism}


def _kept(cell: Cell, first: int) -> bool:
    """Slow ones have fewer seeds."""
    return cell.setting["mechanism"] not in _SLOW or cell.seed < first + _SLOW_SEEDS


def _measure(table: Table, setting: Setting, seed: int) -> Figures:
    """One release and its errors; the same conversion for all, and the whole budget for answers."""
    own = {name: value for name, value in setting.items() if name not in ("epsilon", "workload", "mechanism")}
    asked = parse.workload(setting["workload"], table.domain, seed=0)
    began = time.perf_counter()
    made = release(
        table,
        asked,
        epsilon=setting["epsilon"],
        mechanism=setting["mechanism"],
        settings=own,
        conversion="tight",
        certificate=0,
        seed=seed,
    )
    seconds = time.perf_counter() - began
    found = errors(made.answers, table, asked, made.schema, worst=1)
    figures = {name: getattr(found, name) for name in ("max_error", "mean_error", "rmse", "mean_tvd")}
    return {"queries": found.queries, **figures, "release_seconds": seconds}


def _name(row: Row) -> str:
    """A mechanism with what was set."""
    told = [f"{row['passes']} passes"] if row.get("passes") else []
    told += ["whole marginals"] if row.get("whole") else []
    told += ["least largest"] if row.get("objective") else []
    return ", ".join([f"`{row['mechanism']}`", *told])


def _named(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {key[0]: some for key, some in grouped([{**row, "name": _name(row)} for row in rows], "name").items()}


def _tables(rows: Sequence[Row]) -> dict[str, str]:
    """A table for each dataset and workload; the best of each column and epsilon is in bold."""
    made = {}
    for (dataset, workload), some in grouped(rows, "dataset", "workload").items():
        head = ["epsilon", "mechanism", *_FIGURES.values(), "seeds"]
        text = f"| {' | '.join(head)} |\n" + "|---" * len(head) + "|\n"
        for epsilon in values(some, "epsilon"):
            named = _named(where(some, epsilon=epsilon))
            least = {figure: min(mean(one, figure) for one in named.values()) for figure in _FIGURES}
            for name, found in named.items():
                cells = [_cell(found, figure, least[figure]) for figure in _FIGURES]
                text += f"| {epsilon:g} | {name} | {' | '.join(cells)} | {len(found)} |\n"
        made[f"{dataset}, {workload}"] = text
    return made


def _cell(rows: Sequence[Row], figure: str, least: float) -> str:
    """A mean, with its range over seeds for errors."""
    found = mean(rows, figure)
    if figure == "peak":
        text = f"{found / 1e9:.2f} GB"
    elif figure == "release_seconds":
        text = f"{found:.0f}"
    else:
        text = f"{found:.3g} ({min(row[figure] for row in rows):.3g} to {max(row[figure] for row in rows):.3g})"
    return f"**{text}**" if found == least else text


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for (dataset, workload), some in grouped(rows, "dataset", "workload").items():
        for figure in ("max_error", "mean_tvd"):
            kept = {name: found for name, found in _named(some).items() if "all-zero" not in name}
            series = lines_of(line(name.replace("`", ""), found, "epsilon", figure) for name, found in kept.items())
            words = over_seeds(
                f"{_FIGURES[figure].capitalize()} on {workload} of {dataset}", "epsilon", _FIGURES[figure]
            )
            made[f"{dataset}-{workload.replace(':', '-')}-{figure.replace('_', '-')}"] = lines(
                series, words, log_x=True, log_y=True
            )
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    """What Liu et al. find of the family."""
    named = _named(rows)
    cell = ("dataset", "workload", "epsilon", "seed")
    claims = (
        ("RAP with a softmax beats RAP that is kept in place by a projection.", "rap-softmax", "rap-paper", ""),
        ("PEP beats MWEM.", "pep", "mwem", ""),
        ("MWEM does better with past measurements.", "mwem", "mwem", "passes"),
        ("The marginal trick improves GEM.", "gem", "gem", "whole"),
    )
    found = []
    for said, one, other, what in claims:
        left = f"`{one}`" + {"passes": ", 20 passes", "whole": ", whole marginals"}.get(what, "")
        first, second = named.get(left, []), named.get(f"`{other}`", [])
        found.append(
            judged(said, f"Largest error of {left} over `{other}`", ratio(pairs(first, second, *cell)), below=1)
        )
    return found


EXPERIMENT = Experiment(
    name="family",
    title="The whole family, side by side",
    source="Liu, Vietri and Wu (2021), Figures 1, 5, 8, 9 and 11; and our own",
    grid=_grid,
    measure=_measure,
    pictures=_pictures,
    findings=_findings,
    tables=_tables,
    datasets=_TABLES,
    keeps=_kept,
    minutes=_MINUTES,
    remarks=(
        "Delta is 1/n^2 and the conversion to zCDP is the same for all. The workload is drawn with seed 0; seeds are "
        "of the noise. Nothing is spent on a certificate.",
        f"Each cell has a process of its own, and {_MINUTES:g} minutes; one that runs out of time is not tried with "
        "other seeds. Mechanisms that take more than a minute "
        f"({', '.join(_SLOW)}) have {_SLOW_SEEDS} seeds, and epsilon {' and '.join(f'{e:g}' for e in _SLOW_EPSILONS)}.",
        "Every mechanism runs with its defaults, but for what the tables say; the papers choose rounds by looking.",
    ),
)
