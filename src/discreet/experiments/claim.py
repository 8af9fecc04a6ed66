"""claim.md: what a paper found, what we found, and whether the one bears out the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import exp, log, sqrt

import numpy as np

from discreet.confidence import CONFIDENCE, student_quantile
from discreet.experiments.chart import grouped
from discreet.experiments.experiment import SIZES, Experiment, Row
from discreet.experiments.record import Entry, cell_of, ended, hopeless, planned, rows
from discreet.experiments.trial import PUBLISHED

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"
NOT_RUN = "not run"
"""The figure of a finding without one."""

NOT_PRIVATE = (
    "The minimum over (T, K) is taken by looking at true errors, as in the paper. That is not private: an owner who "
    "chooses T and K this way leaks, or pays for every schedule tried."
)

_DEPENDENT = (
    "Intervals count pairs of cells as independent. Cells of one seed share draws of workload and noise, so with few "
    "seeds the intervals are too narrow; and nothing is corrected for testing several findings."
)


@dataclass(frozen=True)
class Finding:
    """One statement of a paper beside our figures.

    Attributes:
        paper: What the paper found, in our words.
        ours: Our numbers, with their spread.
        verdict: confirmed, refuted or undecided.
        why: The rule that decided, or why it did not.
        whose: Who says so: the paper, or we.
        figure: The number that decided.
        dataset: Which table it was found on.
        seeds: How many seeds the cells have that it compares; None for as many as ran all cells.
    """

    paper: str
    ours: str
    verdict: str
    why: str
    whose: str = "The paper"
    figure: str = NOT_RUN
    dataset: str = ""
    seeds: int | None = None


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of ratios with Student's interval over pairs.

    Attributes:
        mean: Of the ratios.
        low: End of the interval; 0 where there are too few pairs to tell.
        high: The other end; infinite likewise.
        pairs: How many.
    """

    mean: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        if self.pairs < 2:
            return f"{self.mean:.3g} (a single pair)"
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g}, {self.pairs} pairs)"

    def verdict(self, *, below: float | None = None, above: float | None = None) -> str:
        """Whether the whole interval lies on the side that the paper says."""
        if below is not None:
            return CONFIRMED if self.high < below else REFUTED if self.low > below else UNDECIDED
        bound = 1.0 if above is None else above
        return CONFIRMED if self.low > bound else REFUTED if self.high < bound else UNDECIDED


def ratio(pairs: Iterable[tuple[float, float]]) -> Ratio | None:
    """First over second of each pair, on the scale of logarithms; None without a pair. Zeros are left out."""
    logs = [log(one / other) for one, other in pairs if one > 0 and other > 0]
    if not logs:
        return None
    centre, many = float(np.mean(logs)), len(logs)
    if many == 1:
        return Ratio(exp(centre), 0.0, float("inf"), 1)
    reach = student_quantile(many - 1, (1 + CONFIDENCE) / 2) * float(np.std(logs, ddof=1)) / sqrt(many)
    return Ratio(exp(centre), exp(centre - reach), exp(centre + reach), many)


def pairs(
    one: Iterable[Row], other: Iterable[Row], *names: str, figure: str = "max_error"
) -> list[tuple[float, float]]:
    """A figure of two groups of rows, matched by keys; several rows with the same keys count by their mean."""
    left, right = (
        {key: float(np.mean([row[figure] for row in some])) for key, some in grouped(group, *names).items()}
        for group in (one, other)
    )
    return [(left[key], right[key]) for key in left if key in right]


def judged(
    paper: str,
    what: str,
    found: Ratio | None,
    *,
    below: float | None = None,
    above: float | None = None,
    whose: str = "The paper",
) -> Finding:
    """A finding that a ratio decides."""
    side = f"below {below:g}" if below is not None else f"above {1.0 if above is None else above:g}"
    if found is None:
        return Finding(
            paper,
            f"{what}: nothing to compare.",
            UNDECIDED,
            "There is no pair of cells to compare: one of the two was not run, was refused, or did not end in time.",
            whose,
        )
    verdict = found.verdict(below=below, above=above)
    rule = f"Confirmed if the whole {CONFIDENCE:.0%} interval lies {side}, refuted if all of it lies on the other side."
    if verdict == UNDECIDED:
        rule += " It does neither" + (": one pair has no interval." if found.pairs < 2 else ": more seeds may decide.")
    return Finding(paper, f"{what}: {found}.", verdict, rule, whose, str(found))


def render(experiment: Experiment, entries: Sequence[Entry], pictures: Sequence[str], *, strays: int = 0) -> str:
    """The whole file, from the results alone; `strays` of them were left out, whose cells are not in the grid."""
    finished = rows(entries)
    parts = [f"# {experiment.title}", f"*{experiment.name}*: {experiment.source}."]
    parts += [f"![{name}]({name}.svg)" for name in pictures]
    tables = experiment.tables(finished, ended(entries)) if finished else {}
    parts += [f"## {title}\n\n{table.strip()}" for title, table in tables.items()]
    for number, finding in enumerate(findings(experiment, finished), start=1):
        parts.append(
            f"## Finding {number}, {finding.dataset}: {finding.verdict}\n\n- **{finding.whose}:** {finding.paper}\n"
            f"- **Here:** {finding.ours}\n- **Verdict:** {finding.verdict}. {finding.why}"
        )
    remarks = [*experiment.remarks, *_deviations(finished), _DEPENDENT]
    parts.append("## Why numbers differ\n\n" + "\n".join(f"- {remark}" for remark in remarks))
    account = _account(experiment, entries)
    if strays:
        account.append(f"Left out: {strays} results of cells that are not in the grid (any more).")
    parts.append("## What was run\n\n" + "\n".join(f"- {line}" for line in account))
    return "\n\n".join(parts) + "\n"


def findings(experiment: Experiment, finished: Sequence[Row]) -> list[Finding]:
    """What an experiment finds on each table, finding by finding: tables differ, so none speaks for another."""
    tables = [_on_one(experiment, some) for _, some in grouped(finished, "dataset").items()]
    return [finding for same in zip_longest(*tables) for finding in same if finding is not None]


def _on_one(experiment: Experiment, finished: Sequence[Row]) -> list[Finding]:
    """What it finds on one table; nothing is decided by a single seed, whose cells share their draws."""
    cells = Counter(row["seed"] for row in finished)
    whole = sum(many == max(cells.values()) for many in cells.values())
    found = [replace(finding, dataset=finished[0]["dataset"]) for finding in experiment.findings(finished)]
    alone = "Only one seed has been run to its end, and its cells share their draws: more seeds are needed."
    return [
        finding
        if _not_run(finding) or (whole if finding.seeds is None else finding.seeds) > 1
        else replace(finding, verdict=UNDECIDED, why=alone)
        for finding in found
    ]


def _not_run(finding: Finding) -> bool:
    """Whether there is nothing that more seeds could decide."""
    return finding.verdict == UNDECIDED and finding.figure == NOT_RUN


def _deviations(finished: Sequence[Row]) -> list[str]:
    """Published constants that were not used, mechanism by mechanism."""
    said = []
    for (mechanism,), some in grouped(finished, "mechanism").items():
        for name, value in PUBLISHED.items():
            used = sorted({row[name] for row in some if name in row} - {value})
            if used and not (name == "rows" and len({row["rows"] for row in some}) > 1):
                told = {"rows": "relaxed rows", "steps": "Adam steps at most", "rate": "as Adam's learning rate"}[name]
                listed = ", ".join(f"{each:g}" for each in used)
                said.append(f"`{mechanism}` ran with {listed} {told}; the papers have {value:g}.")
    return said


def _account(experiment: Experiment, entries: Sequence[Entry]) -> list[str]:
    """Which cells there are, which are missing, and where they ran."""
    size, seeds = entries[-1]["grid"], max(entry["seeds"] for entry in entries)
    done, without = {cell_of(entry).key for entry in entries}, hopeless(experiment, entries)
    cells = [cell for cell in planned(experiment, entries) if cell.key in done or cell.seedless not in without]
    missing = [cell for cell in cells if cell.key not in done]
    refused = Counter(entry["refused"] for entry in entries if entry.get("refused"))
    seconds = sum(entry["seconds"] for entry in entries)
    told = [
        f"The {size} grid with {seeds} seeds: {len(cells) - len(missing)} of {len(cells)} cells, {seconds:,.0f} s "
        f"in all on {entries[-1]['cores']} cores ({entries[-1]['machine']})."
    ]
    if missing:
        told.append(f"Skipped so far, {len(missing)} cells: " + "; ".join(map(str, missing[:3])) + _more(missing, 3))
    if size in SIZES and size != "full":
        told.append("The papers' whole grid is `--full`.")
    told += [f"Refused in {many} cells: {text}" for text, many in refused.items()]
    for entry in entries:
        if entry.get("unfinished"):
            told.append(f"Unfinished{_ended(entry['unfinished'])}: {cell_of(entry)}.")
    commits = sorted({str(entry["commit"]) for entry in entries})
    versions = ", ".join(f"{name} {number}" for name, number in entries[-1]["versions"].items())
    told.append(f"Commit {', '.join(commits)}; {versions}.")
    return told


def _ended(why: float | str) -> str:
    return f", {why}" if isinstance(why, str) else f" after {why:.3g} minutes"


def _more(listed: Sequence[object], shown: int) -> str:
    return f"; and {len(listed) - shown} more." if len(listed) > shown else "."
