"""Whether a related public table helps: mechanisms that start from one beside those that do not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from discreet.compare.errors import errors
from discreet.data.table import Table
from discreet.experiments import acs
from discreet.experiments.chart import grouped, line, lines_of, mean, over_seeds, values, where
from discreet.experiments.claim import Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Figures, Row, Setting
from discreet.models.rounded import RoundedRows
from discreet.publish.make import release
from discreet.publish.svg import lines
from discreet.queries import parse
from discreet.queries.answers import Answers
from discreet.queries.workload import Workload

_TABLES = dict.fromkeys(("tiny", "quick", "default", "full"), (acs.DATASET,))
_PRIVATE = {
    "tiny": ("massachusetts",),
    "quick": ("massachusetts",),
    "default": ("massachusetts",),
    "full": ("massachusetts", "national"),
}
_RELATED = "texas"
_FURTHER = {"tiny": (), "quick": (), "default": ("national",), "full": ("national",)}
"""Other public tables, for `gem-pub` alone."""

_LACKING = "EDU,INDP_CAT"
_ALONE = "public-alone"
"""The public table itself, published as if it were the private one: nothing private is read."""

_EPSILONS = {"tiny": (1.0,), "quick": (0.1, 1.0), "default": (0.1, 1.0), "full": (0.1, 0.25, 0.5, 1.0)}
_WORKLOADS = {"tiny": "random:3:2", "quick": "random:3:64", "default": "random:3:64", "full": "all:3"}
_GEM: dict[str, Setting] = {
    "tiny": {"rounds": 2, "rows": 20, "hidden": "8", "steps": 3},
    "quick": {"rounds": 30, "rows": 200, "hidden": "256,512"},
    "default": {"rounds": 30, "rows": 200, "hidden": "256,512"},
    "full": {},
}
_LEARNING: dict[str, Setting] = {
    "tiny": {"learning": 5},
    "quick": {"learning": 1000},
    "default": {"learning": 1000},
    "full": {},
}
_ROUNDS: dict[str, Setting] = {"tiny": {"rounds": 2}, "quick": {}, "default": {}, "full": {}}
_UNSEEN = (f"`pmw-pub`, {_RELATED}", f"`gem-pub`, {_RELATED}, which lacks {_LACKING.replace(',', ' and ')}")
"""Left out of pictures, which have six colours."""

_OURS = ("epsilon", "workload", "mechanism", "private", "public", "lacks")
"""What a setting says besides the settings of the mechanism."""

_FIGURES = {
    "max_error": "largest error",
    "mean_error": "mean error",
    "mean_tvd": "total variation",
    "release_seconds": "seconds",
}
_CELL = ("dataset", "private", "workload", "epsilon", "seed")


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    for dataset in datasets:
        for private in _PRIVATE[size]:
            for epsilon in _EPSILONS[size]:
                for mechanism in _mechanisms(size):
                    if mechanism.get("public") != private:
                        base = {"private": private, "epsilon": epsilon, "workload": _WORKLOADS[size]}
                        yield dataset, base | mechanism


def _mechanisms(size: str) -> Iterator[Setting]:
    if size != "tiny":
        yield {"mechanism": "auto"}
    yield {"mechanism": "gem", **_GEM[size]}
    learned = {**_GEM[size], **_LEARNING[size]}
    yield {"mechanism": "gem-pub", "public": _RELATED, **learned}
    yield {"mechanism": "gem-pub", "public": _RELATED, "lacks": _LACKING, **learned}
    for other in _FURTHER[size]:
        yield {"mechanism": "gem-pub", "public": other, **learned}
    for mechanism in ("pmw-pub", "pep-pub"):
        yield {"mechanism": mechanism, "public": _RELATED, **_ROUNDS[size]}
    yield {"mechanism": "pmw-pub", "public": _RELATED, "whole": True, "rounds": 2 if size == "tiny" else 30}
    yield {"mechanism": _ALONE, "public": _RELATED}


def _measure(table: Table, setting: Setting, seed: int) -> Figures:
    """One release and its errors; the same conversion for all, and the whole budget for answers."""
    private = acs.excerpt(table, setting["private"])
    lacks = setting.get("lacks", "")
    public = acs.excerpt(table, setting["public"], without=lacks.split(",")) if "public" in setting else None
    asked = parse.workload(setting["workload"], private.domain, seed=0)
    began = time.perf_counter()
    answers = _answers(private, public, asked, setting, seed)
    seconds = time.perf_counter() - began
    found = errors(answers, private, asked, private.schema, worst=1)
    figures = {name: getattr(found, name) for name in ("max_error", "mean_error", "rmse", "mean_tvd")}
    return {"queries": found.queries, **figures, "release_seconds": seconds}


def _answers(private: Table, public: Table | None, asked: Workload, setting: Setting, seed: int) -> Answers:
    if setting["mechanism"] == _ALONE:
        assert public is not None
        return RoundedRows(private.domain, private.rows(), public.codes())
    made = release(
        private,
        asked,
        epsilon=setting["epsilon"],
        mechanism=setting["mechanism"],
        settings={name: value for name, value in setting.items() if name not in _OURS},
        public=public,
        conversion="tight",
        certificate=0,
        seed=seed,
    )
    return made.answers


def _name(row: Row) -> str:
    """A mechanism with what it started from, and what was set."""
    told = [row["public"]] if row.get("public") else []
    told += [f"which lacks {row['lacks'].replace(',', ' and ')}"] if row.get("lacks") else []
    told += ["whole marginals"] if row.get("whole") else []
    return ", ".join([f"`{row['mechanism']}`", *told])


def _named(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {key[0]: some for key, some in grouped([{**row, "name": _name(row)} for row in rows], "name").items()}


def _tables(rows: Sequence[Row]) -> dict[str, str]:
    """A table for each private excerpt; the best of each column and epsilon is in bold."""
    made = {}
    for (private, workload), some in grouped(rows, "private", "workload").items():
        head = ["epsilon", "mechanism", *_FIGURES.values(), "seeds"]
        text = f"| {' | '.join(head)} |\n" + "|---" * len(head) + "|\n"
        for epsilon in values(some, "epsilon"):
            named = _named(where(some, epsilon=epsilon))
            least = {figure: min(mean(one, figure) for one in named.values()) for figure in _FIGURES}
            for name, found in named.items():
                cells = [_cell(found, figure, least[figure]) for figure in _FIGURES]
                text += f"| {epsilon:g} | {name} | {' | '.join(cells)} | {len(found)} |\n"
        made[f"{private}, {workload}"] = text
    return made


def _cell(rows: Sequence[Row], figure: str, least: float) -> str:
    """A mean, with its range over seeds for errors."""
    found = mean(rows, figure)
    if figure == "release_seconds":
        return f"{found:.0f}"
    text = f"{found:.3g} ({min(row[figure] for row in rows):.3g} to {max(row[figure] for row in rows):.3g})"
    return f"**{text}**" if found == least else text


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for (private, workload), some in grouped(rows, "private", "workload").items():
        kept = {name: found for name, found in _named(some).items() if name not in _UNSEEN}
        for figure in ("max_error", "mean_tvd"):
            series = lines_of(line(name.replace("`", ""), found, "epsilon", figure) for name, found in kept.items())
            words = over_seeds(
                f"{_FIGURES[figure].capitalize()} on {workload} of {private}", "epsilon", _FIGURES[figure]
            )
            made[f"{private}-{figure.replace('_', '-')}"] = lines(series, words, log_x=True, log_y=True)
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    """What Liu et al. say of public rows, and what we add."""
    named = _named(rows)
    related, less = f"`gem-pub`, {_RELATED}", f"`gem-pub`, {_RELATED}, which lacks {_LACKING.replace(',', ' and ')}"
    single, alone = f"`pmw-pub`, {_RELATED}", f"`{_ALONE}`, {_RELATED}"
    claims = (
        ("The paper", "GEM that starts from a related public table (GEM-Pub) beats GEM.", related, "`gem`"),
        ("The paper", "GEM-Pub beats GEM even where the public table lacks attributes.", less, "`gem`"),
        ("We", "Where the public table lacks nothing, GEM-Pub has less error than PMW-Pub too.", related, single),
        ("We", "GEM-Pub beats its public table, published as if it were the private one.", related, alone),
        ("We", "`auto`, which has no public rows, beats GEM-Pub.", "`auto`", related),
    )
    found = []
    for whose, said, left, right in claims:
        for figure in ("max_error", "mean_tvd"):
            found.append(_compared(f"{said[:-1]}: {_FIGURES[figure]}.", (left, right), named, figure, whose))
    for epsilon in values(rows, "epsilon"):
        some = _named(where(rows, epsilon=epsilon))
        for what in ("single queries", "whole marginals"):
            said = f"At epsilon {epsilon:g}, weights on related public rows, by {what}, beat `auto`, which has none."
            weights = single if what == "single queries" else f"{single}, {what}"
            found.append(_compared(said, (weights, "`auto`"), some, "mean_tvd", "We"))
        said = f"At epsilon {epsilon:g}, `auto` beats the public table, published as if it were the private one."
        found.append(_compared(said, ("`auto`", alone), some, "mean_tvd", "We"))
    return found


def _compared(said: str, names: tuple[str, str], named: dict[str, list[Row]], figure: str, whose: str) -> Finding:
    """The ratio of a figure of two mechanisms, cell by cell."""
    one, other = (named.get(name, []) for name in names)
    what = f"{_FIGURES[figure].capitalize()} of {names[0]} over {names[1]}"
    return judged(said, what, ratio(pairs(one, other, *_CELL, figure=figure)), below=1, whose=whose)


EXPERIMENT = Experiment(
    name="public",
    title="A related public table",
    source="Liu, Vietri and Wu (2021), for GEM-Pub; Liu, Vietri, Steinke et al. (2021), for PMW-Pub; and our own",
    grid=_grid,
    measure=_measure,
    pictures=_pictures,
    findings=_findings,
    tables=_tables,
    datasets=_TABLES,
    remarks=(
        "*The paper* is Liu, Vietri and Wu (2021). They use the American Community Survey of whole states, and other "
        "states or years as public; here are NIST's excerpts of 2019: Massachusetts (7,634 rows) is private, Texas "
        "(9,276 rows) public.",
        f"{len(acs.COLUMNS)} columns are kept: {', '.join(acs.COLUMNS)}. Left out are those that differ by place, have "
        "hundreds of values, or are weights. The schema follows from the data dictionary alone.",
        "Delta is 1/n^2 and the conversion to zCDP is the same for all. The workload is drawn with seed 0; seeds are "
        "of the noise. Nothing is spent on a certificate.",
        "But for `--full`, `gem` and `gem-pub` have a smaller network (256, 512), 30 rounds and 200 rows, and "
        "`gem-pub` 1,000 steps on public rows: less than published, and the same for both.",
        f"`{_ALONE}` is no mechanism: it reads nothing private, and has no noise that seeds could change. `auto` was "
        "compared with it, and with `pmw-pub` on single queries, after results had been seen.",
        "Liu, Vietri and Wu speak of limits of PMW-Pub where public rows are few, poor or lack attributes; the "
        "comparison of the two here, with related rows that lack nothing, is ours.",
        "The domain is far too large for `mwem` and `pep`.",
    ),
)
