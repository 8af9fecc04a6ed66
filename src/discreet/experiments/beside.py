"""Mechanisms side by side: how a cell of them is measured, and the tables and pictures that show them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from discreet.compare.errors import errors
from discreet.data.table import Table
from discreet.experiments.chart import grouped, line, lines_of, mean, over_seeds, values, where
from discreet.experiments.claim import Finding, judged, pairs, ratio
from discreet.experiments.experiment import Figures, Row, Setting
from discreet.publish.make import release
from discreet.publish.svg import lines
from discreet.queries.answers import Answers
from discreet.queries.workload import Workload

FIGURES = {
    "max_error": "largest error",
    "mean_error": "mean error",
    "rmse": "RMSE",
    "mean_tvd": "total variation",
    "release_seconds": "seconds",
    "peak": "peak memory",
}
"""What is told of a mechanism, and its words."""

_GRID = ("epsilon", "workload", "mechanism", "private", "public", "lacks")
"""What a setting says besides the settings of the mechanism."""

_COLOURS = 6
"""Lines that a picture can tell apart."""


def measured(table: Table, asked: Workload, answer: Callable[[], Answers]) -> Figures:
    """Errors of what is answered, and how long it took."""
    began = time.perf_counter()
    answers = answer()
    seconds = time.perf_counter() - began
    found = errors(answers, table, asked, table.schema, worst=1)
    figures = {name: getattr(found, name) for name in ("max_error", "mean_error", "rmse", "mean_tvd")}
    return {"queries": found.queries, **figures, "release_seconds": seconds}


def released(table: Table, asked: Workload, setting: Setting, seed: int, public: Table | None = None) -> Answers:
    """Answers of one release; the same conversion for all, and the whole budget for answers."""
    made = release(
        table,
        asked,
        epsilon=setting["epsilon"],
        mechanism=setting["mechanism"],
        settings={name: value for name, value in setting.items() if name not in _GRID},
        public=public,
        conversion="tight",
        certificate=0,
        seed=seed,
    )
    return made.answers


def name(row: Row) -> str:
    """A mechanism with what it started from, and what was set."""
    told = [row["public"]] if row.get("public") else []
    told += [f"which lacks {row['lacks'].replace(',', ' and ')}"] if row.get("lacks") else []
    told += ["in a box"] if row.get("transform") == "box" else []
    told += ["separator"] if row.get("perturb") == "laplace" else []
    told += [f"{row['passes']} passes"] if row.get("passes") else []
    told += ["whole marginals"] if row.get("whole") else []
    told += ["least largest"] if row.get("objective") else []
    return ", ".join([f"`{row['mechanism']}`", *told])


def named(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Cells by the name of their mechanism."""
    return {key[0]: some for key, some in grouped([{**row, "name": name(row)} for row in rows], "name").items()}


def tables(rows: Sequence[Row], ended: Sequence[Row], *by: str) -> dict[str, str]:
    """A table for each of what is in the columns `by`; the best of each column and epsilon is in bold.

    Mechanisms are in the order of their largest errors, and those that came to no end at all stand below.
    """
    shown = [figure for figure in FIGURES if any(figure in row for row in rows)]
    made = {}
    for key, some in grouped(rows, *by).items():
        head = ["epsilon", "mechanism", *(FIGURES[figure] for figure in shown), "seeds"]
        text = f"| {' | '.join(head)} |\n" + "|---" * len(head) + "|\n"
        without = where(ended, **dict(zip(by, key, strict=True)))
        for epsilon in values(some, "epsilon"):
            mechanisms, lost = named(where(some, epsilon=epsilon)), named(where(without, epsilon=epsilon))
            least = {figure: min(mean(one, figure) for one in mechanisms.values()) for figure in shown}
            for title in sorted(mechanisms, key=lambda title: mean(mechanisms[title], "max_error")):
                cells = [_cell(mechanisms[title], figure, least[figure]) for figure in shown]
                seeds = ", ".join([str(len(mechanisms[title])), *_ends(lost.get(title, []))])
                text += f"| {epsilon:g} | {title} | {' | '.join(cells)} | {seeds} |\n"
            for title in (title for title in lost if title not in mechanisms):
                cells = [lost[title][0]["ended"], *[""] * (len(shown) - 1)]
                text += f"| {epsilon:g} | {title} | {' | '.join(cells)} | {len(lost[title])} |\n"
        made[", ".join(key)] = text
    return made


def _ends(lost: Sequence[Row]) -> list[str]:
    """How many seeds ended without figures."""
    return [f"{many} {end}" for end, many in Counter(row["ended"] for row in lost).items()]


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


def pictures(rows: Sequence[Row], *by: str, without: Collection[str] = ()) -> dict[str, str]:
    """Largest error and total variation by epsilon, for each of what is in `by`: the best six mechanisms."""
    made = {}
    for key, some in grouped(rows, *by).items():
        kept = {title: found for title, found in named(some).items() if title not in without}
        for figure in ("max_error", "mean_tvd"):
            best = sorted(kept, key=lambda title: _rank(kept, title, figure))[:_COLOURS]
            series = lines_of(line(title.replace("`", ""), kept[title], "epsilon", figure) for title in best)
            what = f"{FIGURES[figure].capitalize()} on {' of '.join(reversed(key))}"
            what += f": the best {_COLOURS} of {len(kept)}" if len(kept) > _COLOURS else ""
            words = over_seeds(what, "epsilon", FIGURES[figure])
            file = "-".join([*key, figure]).replace(":", "-").replace("_", "-")
            made[file] = lines(series, words, log_x=True, log_y=True)
    return made


def _rank(mechanisms: Mapping[str, Sequence[Row]], title: str, figure: str) -> float:
    """The mean place of a mechanism among those that ran at the same epsilon."""
    places = []
    for epsilon in values(mechanisms[title], "epsilon"):
        ran = {one: where(some, epsilon=epsilon) for one, some in mechanisms.items()}
        means = sorted((mean(some, figure), one) for one, some in ran.items() if some)
        places.append([one for _, one in means].index(title))
    return float(np.mean(places))


def compared(
    said: str,
    names: tuple[str, str],
    rows: Sequence[Row],
    *cell: str,
    figure: str = "max_error",
    whose: str = "The paper",
) -> Finding:
    """The ratio of a figure of two mechanisms, cell by cell."""
    mechanisms = named(rows)
    one, other = (mechanisms.get(title, []) for title in names)
    what = f"{FIGURES[figure].capitalize()} of {names[0]} over {names[1]}"
    found = judged(said, what, ratio(pairs(one, other, *cell, figure=figure)), below=1, whose=whose)
    return replace(found, seeds=len({row["seed"] for row in one} & {row["seed"] for row in other})) if one else found


class Standing(NamedTuple):
    """One mechanism against the best of the others, at one epsilon of one table.

    Attributes:
        where: The table, the workload and epsilon.
        figure: What is compared.
        ratio: Of the means over seeds: its own over the best other's.
        best: The best other.
    """

    where: tuple[Any, ...]
    figure: str
    ratio: float
    best: str


def standing(rows: Sequence[Row], ours: str, figures: Sequence[str], *by: str) -> list[Standing]:
    """Where a mechanism stands, cell by cell; a cell without it or without another does not count."""
    found = []
    for key, some in grouped(rows, *by).items():
        mechanisms = named(some)
        own = mechanisms.pop(ours, [])
        if own and mechanisms:
            for figure in figures:
                best = min(mechanisms, key=lambda title: mean(mechanisms[title], figure))
                found.append(Standing(key, figure, mean(own, figure) / mean(mechanisms[best], figure), best))
    return found
