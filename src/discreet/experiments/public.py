"""Whether a related public table helps: mechanisms that start from one beside those that do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.data.table import Table
from discreet.experiments import acs, beside
from discreet.experiments.chart import values, where
from discreet.experiments.claim import Finding
from discreet.experiments.experiment import Experiment, Figures, Row, Setting
from discreet.models.rounded import RoundedRows
from discreet.queries import parse

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

_TABLE = ("private", "workload")
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
    private = acs.excerpt(table, setting["private"])
    asked = parse.workload(setting["workload"], private.domain, seed=0)
    public = None
    if "public" in setting:
        public = acs.excerpt(table, setting["public"], without=setting.get("lacks", "").split(","))
        if setting["mechanism"] == _ALONE:
            alone = RoundedRows(private.domain, private.rows(), public.codes())
            return beside.measured(private, asked, lambda: alone)
    return beside.measured(private, asked, lambda: beside.released(private, asked, setting, seed, public))


def _findings(rows: Sequence[Row]) -> list[Finding]:
    """What Liu et al. say of public rows, and what we add."""
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
            told = f"{said[:-1]}: {beside.FIGURES[figure]}."
            found.append(beside.compared(told, (left, right), rows, *_CELL, figure=figure, whose=whose))
    for epsilon in values(rows, "epsilon"):
        some = where(rows, epsilon=epsilon)
        for what in ("single queries", "whole marginals"):
            said = f"At epsilon {epsilon:g}, weights on related public rows, by {what}, beat `auto`, which has none."
            weights = single if what == "single queries" else f"{single}, {what}"
            found.append(beside.compared(said, (weights, "`auto`"), some, *_CELL, figure="mean_tvd", whose="We"))
        said = f"At epsilon {epsilon:g}, `auto` beats the public table, published as if it were the private one."
        found.append(beside.compared(said, ("`auto`", alone), some, *_CELL, figure="mean_tvd", whose="We"))
    return found


EXPERIMENT = Experiment(
    name="public",
    title="A related public table",
    source="Liu, Vietri and Wu (2021), for GEM-Pub; Liu, Vietri, Steinke et al. (2021), for PMW-Pub; and our own",
    grid=_grid,
    measure=_measure,
    pictures=lambda rows: beside.pictures(rows, *_TABLE, without=_UNSEEN),
    findings=_findings,
    tables=lambda rows, ended: beside.tables(rows, ended, *_TABLE),
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
        "`gem-pub` learns public rows by maximum likelihood; the authors' code fits the answers to their queries.",
        f"`{_ALONE}` is no mechanism: it reads nothing private, and has no noise that seeds could change. `auto` was "
        "compared with it, and with `pmw-pub` on single queries, after results had been seen.",
        "Liu, Vietri and Wu speak of limits of PMW-Pub where public rows are few, poor or lack attributes; the "
        "comparison of the two here, with related rows that lack nothing, is ours.",
        "The domain is far too large for `mwem` and `pep`.",
    ),
)
