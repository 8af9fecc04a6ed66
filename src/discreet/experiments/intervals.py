"""Whether error bars hold as often as they say: many releases of one table, and the truth beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import isfinite
from zlib import crc32

import numpy as np

from discreet.confidence import CONFIDENCE
from discreet.data.domain import Domain
from discreet.data.table import Table
from discreet.experiments import coverage
from discreet.experiments.chart import grouped, lines_of, values, where
from discreet.experiments.claim import CONFIRMED, REFUTED, UNDECIDED, Finding
from discreet.experiments.coverage import Share
from discreet.experiments.experiment import Experiment, Figures, Row, Setting
from discreet.models.rounded import RoundedRows
from discreet.publish.intervals import KINDS
from discreet.publish.make import release
from discreet.publish.svg import Series, Words, lines
from discreet.queries import parse
from discreet.queries.threshold import Threshold
from discreet.queries.workload import Workload

_TABLES = {
    "tiny": ("adult",),
    "quick": ("adult-reduced", "nltcs"),
    "default": ("adult-reduced", "nltcs"),
    "full": ("adult-reduced", "nltcs"),
}
_WORKLOADS = {"nltcs": "all:2"}
"""What is asked of each table; eight pairs of attributes of any other."""

_EPSILONS = {"tiny": (1.0,), "quick": (0.1, 1.0), "default": (0.1, 1.0), "full": (0.1, 1.0)}
_RELEASES = {"tiny": 2, "quick": 20, "default": 100, "full": 200}
"""In each cell."""

_MECHANISMS = ("auto", "gaussian", "residual-planner")
_TINY: Setting = {"rows": 20, "max_steps": 40}
_OURS = ("epsilon", "workload", "mechanism", "releases")
"""What a setting says besides the settings of the mechanism."""

_OUTSIDE = ((2, 2), (2, 1), (3, 3), (3, 2))
"""Kinds (k, r) of queries outside the workload."""

_PANEL = 12
"""Thresholds of each kind outside the workload."""

_LARGE = 0.001
"""Many queries outside are about nobody; those above this are told apart."""

_SLACK = 0.02
"""Shares this close to the stated one are as stated."""

_NAMES = {
    "measured": "measured, each query of the workload",
    "certified": "certified, the whole workload at once",
    "estimated": "estimated, queries outside",
    "estimated_large": f"estimated, those above {_LARGE:g}",
}


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    for dataset in datasets:
        workload = _WORKLOADS.get(dataset, "random:2:8")
        for epsilon in _EPSILONS[size]:
            for mechanism in _MECHANISMS:
                base = {"epsilon": epsilon, "workload": workload, "releases": _RELEASES[size], "mechanism": mechanism}
                yield dataset, base | (_TINY if size == "tiny" and mechanism == "auto" else {})


def _measure(table: Table, setting: Setting, seed: int) -> Figures:
    """Some releases; for each, which share of its error bars of each kind hold the truth."""
    asked = parse.workload(setting["workload"], table.domain, seed=0)
    outside = _outside(table.domain, asked)
    exact = RoundedRows(table.domain, table.rows(), table.codes())
    truth = coverage.every(exact, [*asked, *outside])
    found: dict[str, list[float]] = {}
    published = {kind: np.zeros(3) for kind in KINDS}
    for one in _seeds(setting, seed):
        made = release(
            table,
            asked,
            epsilon=setting["epsilon"],
            mechanism=setting["mechanism"],
            settings={name: value for name, value in setting.items() if name not in _OURS},
            seed=one,
        )
        answers = coverage.every(made.answers, asked)
        noise = coverage.held(replace(made, certificate=None), answers, truth)
        shares = {"measured": noise.share("measured"), "certified": float(coverage.is_certified(made, answers, truth))}
        parts = [coverage.held(made, answers, truth)]
        if made.codes is not None:
            further = coverage.every(made.answers, outside)
            parts.append(coverage.held(made.bootstrap(seed=one), further, truth))
            shares["estimated"] = parts[1].share("estimated")
            shares["estimated_large"] = parts[1].share("estimated", above=_LARGE)
        for name, share in shares.items():
            found.setdefault(name, []).extend([round(share, 6)] if isfinite(share) else [])
        for part in parts:
            for kind in KINDS:
                published[kind] += part.tally(kind)
    return {"queries": asked.size, **found, "published": {kind: sums.tolist() for kind, sums in published.items()}}


def _seeds(setting: Setting, seed: int) -> list[int]:
    """Seeds of the releases of a cell: cells that share theirs share no noise."""
    generator = np.random.default_rng([seed, crc32(json.dumps(setting, sort_keys=True).encode())])
    return [int(generator.integers(2**31)) for _ in range(setting["releases"])]


def _outside(domain: Domain, asked: Workload) -> list[Threshold]:
    """Some thresholds that are not asked for, the same for all releases."""
    generator, known, chosen = np.random.default_rng(0), set(asked), []
    for k, r in _OUTSIDE:
        sets = list(combinations(domain.attributes, k))
        drawn = (Threshold(sets[at], r) for at in generator.permutation(len(sets)))
        chosen += [threshold for threshold in drawn if threshold not in known][:_PANEL]
    return chosen


def _share(rows: Sequence[Row], name: str) -> Share | None:
    """Of all releases of some rows; a certificate holds or not."""
    every = [value for row in rows for value in row.get(name, [])]
    return Share.of_events(every) if name == "certified" else Share.of_shares(every)


def _tables(rows: Sequence[Row], _: Sequence[Row]) -> dict[str, str]:
    """Shares by mechanism and epsilon, and what was published by kind."""
    made = {}
    for (dataset, workload), some in grouped(rows, "dataset", "workload").items():
        text = f"| mechanism | epsilon | {' | '.join(_NAMES.values())} | releases |\n" + "|---" * 7 + "|\n"
        for (mechanism, epsilon), same in sorted(grouped(some, "mechanism", "epsilon").items()):
            shares = [_share(same, name) for name in _NAMES]
            told = [f"{one.mean:.2%} ({one.low:.2%} to {one.high:.2%})" if one else "" for one in shares]
            text += f"| `{mechanism}` | {epsilon:g} | {' | '.join(told)} | {sum(row['releases'] for row in same)} |\n"
        made[f"{dataset}, {workload}: how often error bars hold"] = text
        head = ("mechanism", "epsilon", "kind", "intervals", "hold the truth", "mean width, fraction of rows")
        text = f"| {' | '.join(head)} |\n" + "|---" * len(head) + "|\n"
        for (mechanism, epsilon), same in sorted(grouped(some, "mechanism", "epsilon").items()):
            for kind in KINDS:
                many, held, width = np.sum([row["published"][kind] for row in same], axis=0)
                if many:
                    cells = f"{kind} | {many:,.0f} | {held / many:.2%} | {width / many:.3g}"
                    text += f"| `{mechanism}` | {epsilon:g} | {cells} |\n"
        made[f"{dataset}, {workload}: as published, by kind"] = text
    return made


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for (dataset, workload), some in grouped(where(rows, mechanism="auto"), "dataset", "workload").items():
        series = [Series("95 %, as stated", [(epsilon, 95.0) for epsilon in values(some, "epsilon")])]
        series += [_line(label, some, name) for name, label in _NAMES.items()]
        words = Words(
            f"How often error bars of auto hold: {workload} of {dataset}",
            "Share that holds the truth, with a 95 % interval over releases; 95 % is what they say.",
            "epsilon",
            "hold the truth, %",
        )
        made[f"{dataset}-{workload.replace(':', '-')}"] = lines(lines_of(series), words, log_x=True)
    return made


def _line(label: str, rows: Sequence[Row], name: str) -> Series:
    found = [(epsilon, _share(where(rows, epsilon=epsilon), name)) for epsilon in values(rows, "epsilon")]
    kept = [(epsilon, share) for epsilon, share in found if share is not None]
    return Series(
        label,
        [(epsilon, 100 * share.mean) for epsilon, share in kept],
        [(100 * share.low, 100 * share.high) for _, share in kept],
    )


def _findings(rows: Sequence[Row]) -> list[Finding]:
    found = []
    for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
        said = "Measured intervals hold 95 % of the time: within 2 points."
        some = where(rows, mechanism=mechanism)
        found.append(_close(said, f"`{mechanism}`, all queries of the workload", _share(some, "measured")))
    found.append(_certified(rows))
    for epsilon in values(rows, "epsilon"):
        some = where(rows, mechanism="auto", epsilon=epsilon)
        for name, which in (("estimated", "queries"), ("estimated_large", f"queries with answers above {_LARGE:g}")):
            said = f"Estimated intervals, which promise nothing, hold for 95 % of {which} outside the workload all the "
            said += f"same: within 2 points, at epsilon {epsilon:g}."
            found.append(_close(said, "`auto`", _share(some, name)))
    return found


def _close(said: str, what: str, share: Share | None) -> Finding:
    """Whether a share is as stated."""
    if share is None:
        return Finding(said, f"{what}: not run.", UNDECIDED, "There are too few releases.", "We")
    low, high = CONFIDENCE - _SLACK, CONFIDENCE + _SLACK
    verdict = UNDECIDED
    if low < share.low and share.high < high:
        verdict = CONFIRMED
    elif share.high < low or share.low > high:
        verdict = REFUTED
    why = (
        f"Confirmed if the whole 95 % interval lies between {low:.0%} and {high:.0%}, refuted if all of it is outside."
    )
    return Finding(said, f"{what}: {share}.", verdict, why, "We", str(share))


def _certified(rows: Sequence[Row]) -> Finding:
    """Whether certificates hold; all mechanisms together, since theirs are made in the same way."""
    said = "The certificate's bound holds for every query of the workload at once, in 95 % of releases as it says."
    share = _share(rows, "certified")
    if share is None:
        return Finding(said, "Not run.", UNDECIDED, "There are too few releases.", "We")
    low = CONFIDENCE - _SLACK
    verdict = REFUTED if share.high < CONFIDENCE else CONFIRMED if share.low > low else UNDECIDED
    why = (
        f"The bound's own level is 95 % and hardly more, so no number of releases would lie wholly above. Confirmed if "
        f"the whole 95 % interval lies above {low:.0%}, refuted if all of it lies below {CONFIDENCE:.0%}."
    )
    parts = [
        f"`{mechanism}` at epsilon {epsilon:g}: {found}"
        for (mechanism, epsilon), some in grouped(rows, "mechanism", "epsilon").items()
        if (found := _share(some, "certified")) is not None
    ]
    return Finding(said, f"All together: {share}. {'; '.join(parts)}.", verdict, why, "We", str(share))


EXPERIMENT = Experiment(
    name="intervals",
    title="How often error bars hold",
    source="our own",
    grid=_grid,
    measure=_measure,
    pictures=_pictures,
    findings=_findings,
    tables=_tables,
    datasets=_TABLES,
    remarks=(
        "A cell is several releases, each with noise of its own. The workload is drawn with seed 0 and is the same in "
        "all; a twentieth of each budget pays for the certificate, as by default.",
        "*Measured* is the share of all queries of the workload whose interval from the noise alone holds the truth, "
        "the certificate set aside; where both are there the certified one is published if it is clearly the narrower "
        "(by three deviations of the certificate's noise), as the tables by kind say.",
        f"*Estimated* is after a bootstrap with one run, over up to {_PANEL} thresholds of each kind "
        f"({', '.join(f'{r} of {k}' for k, r in _OUTSIDE)}) outside the workload, but for queries that measured "
        "marginals add up to. Only `auto` makes rows and so can be bootstrapped.",
        "Intervals of the certificate's share are Chernoff's, those of other shares Student's over releases: queries "
        "of one release share its noise.",
    ),
)
