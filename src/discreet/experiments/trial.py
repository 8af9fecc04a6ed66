"""Trial: one release made from a setting of an experiment, and its errors. The whole budget answers queries.

Settings name things as `discreet.release` does, and besides them `k`, `r`, `thresholds` (how many) and `filtered`.
"""

from __future__ import annotations

from itertools import combinations, product

from discreet.compare.errors import errors
from discreet.data.table import Table
from discreet.errors import BadWorkload
from discreet.experiments.experiment import Figures, Setting
from discreet.mechanisms.search import PER_ROUND, ROUNDS
from discreet.progress import SILENT, Progress
from discreet.publish.make import release
from discreet.publish.release import Release
from discreet.queries import parse
from discreet.queries.history import HistoryLike
from discreet.queries.threshold import Threshold
from discreet.queries.workload import Workload

PUBLISHED = {"rows": 1000, "steps": 5000, "rate": 0.001}
"""Constants of the published recipe; what differs from them in a cell is said in its claim."""

PAPER_GRID = tuple(product(ROUNDS, PER_ROUND))
"""T and K of the papers' grids (Tables 3 to 5)."""

_RECIPES: dict[str, Setting] = {
    "tiny": {"rows": 20, "steps": 20, "rate": 0.02},
    "quick": {"rows": 200, "steps": 250, "rate": 0.005},
    "default": {"rows": 200, "steps": 250, "rate": 0.005},
    "full": dict(PUBLISHED),
}


def published(size: str, schedule: tuple[int, int | None]) -> Setting:
    """A setting of `rap-paper` with T rounds of K queries; (1, None) is the non-adaptive form."""
    rounds, per_round = schedule
    picks = {} if per_round is None else {"per_round": per_round}
    return {"mechanism": "rap-paper", "rounds": rounds, **picks, **_RECIPES[size]}


def ours(size: str, schedule: tuple[int, int | None] = (1, None)) -> Setting:
    """A setting of `rap`."""
    rounds, per_round = schedule
    picks = {} if per_round is None else {"per_round": per_round}
    short = {"max_steps": 40} if size == "tiny" else {}
    return {"mechanism": "rap", "rounds": rounds, **picks, "rows": _RECIPES[size]["rows"], **short}


def baseline(mechanism: str) -> Setting:
    """A setting of a mechanism that has nothing to set."""
    return {"mechanism": mechanism}


def workload(table: Table, setting: Setting, seed: int) -> Workload:
    """Thresholds drawn at random; filtered ones have at most as many queries as the table has rows."""
    domain, k = table.domain, int(setting["k"])
    sets = list(combinations(domain.attributes, k))
    if setting.get("filtered"):
        most = table.rows()
        sets = [names for names in sets if domain.project(names).size <= most]
    many = int(setting["thresholds"])
    if many > len(sets):
        raise BadWorkload(f"There are only {len(sets):,} sets of {k} attributes, not {many:,}.")
    return Workload(domain, [Threshold(sets[at], setting.get("r")) for at in parse.drawn(len(sets), many, seed)])


def make(
    table: Table,
    setting: Setting,
    seed: int,
    *,
    workload: Workload | None = None,
    history: HistoryLike | None = None,
    progress: Progress = SILENT,
) -> Release:
    """A release as a setting says."""
    named = {name: setting[name] for name in ("rounds", "per_round", "rows") if name in setting}
    further: Setting = {name: setting[name] for name in ("steps", "rate", "max_steps", "order") if name in setting}
    return release(
        table,
        workload,
        history=history,
        epsilon=setting["epsilon"],
        mechanism=setting["mechanism"],
        settings=further,
        seed=seed,
        certificate=0,
        oversample=1,
        progress=progress,
        **named,
    )


def present(table: Table, setting: Setting, seed: int) -> Figures:
    """Release a random workload; the largest and the mean error over all its queries."""
    asked = workload(table, setting, seed)
    made = make(table, setting, seed, workload=asked)
    found = errors(made.answers, table, asked, made.schema, worst=1)
    return {
        "queries": found.queries,
        "max_error": found.max_error,
        "mean_error": found.mean_error,
        "rmse": found.rmse,
        **steps_of(made),
    }


def steps_of(made: Release) -> Figures:
    """How long the fits were, where there were any."""
    taken = made.notes.get("steps") or [fit["steps"] for fit in made.notes.get("fits", [])]
    return {"fit_steps": sum(taken)} if taken else {}
