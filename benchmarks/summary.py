"""The picture of the README and the tables of docs/benchmarks.md, from results.jsonl alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.record import HERE
from discreet.publish.svg import Series, Words, lines, standalone

Entry = dict[str, Any]

DOCS = HERE.parent / "docs"
PICTURED = ("all-zero", "rap-paper", "gaussian", "rap")


def main() -> None:
    entries = [json.loads(line) for line in (HERE / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    (DOCS / "largest-error.svg").write_text(picture(entries), encoding="utf-8")
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    for name, table in (("utility", utility(entries)), ("grid", grid(entries))):
        page = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{table}\g<2>", page, flags=re.DOTALL)
    (DOCS / "benchmarks.md").write_text(page, encoding="utf-8")


def picture(entries: list[Entry]) -> str:
    """Largest error by epsilon."""
    rows = grouped([e for e in entries if e.get("workload") == "random:3:64"], "mechanism", "epsilon")
    series = []
    for name in PICTURED:
        found = {epsilon: [e["max_error"] for e in some] for (who, epsilon), some in rows.items() if who == name}
        points = [(epsilon, float(np.mean(errors))) for epsilon, errors in sorted(found.items())]
        ends = [(min(errors), max(errors)) for _, errors in sorted(found.items())]
        series.append(Series(name, points, ends))
    words = Words(
        "Largest error over 2,492,287 queries (64 three-way marginals of ADULT)",
        "Mean of five seeds, with the smallest and the largest; lower is better.",
        "epsilon",
        "largest error, fraction of rows",
    )
    return standalone(lines(series, words, log_x=True, log_y=True))


def utility(entries: list[Entry]) -> str:
    """One line per workload, epsilon and mechanism."""
    text = (
        "| workload | epsilon | mechanism | largest error: mean ± sd (range) | mean error | total variation | "
        "seconds | covered |\n|---|---|---|---|---|---|---|---|\n"
    )
    of_kind = [e for e in entries if e["benchmark"] == "utility"]
    for (workload, epsilon, mechanism), some in grouped(of_kind, "workload", "epsilon", "mechanism").items():
        covered = sum(e["max_error"] <= e["certificate"] for e in some)
        text += (
            f"| {workload} | {epsilon:g} | `{mechanism}` | {spread(some)} | {mean(some, 'mean_error'):.2e} | "
            f"{mean(some, 'mean_tvd'):.3g} | {mean(some, 'seconds'):.1f} | {covered}/{len(some)} |\n"
        )
    return text


def grid(entries: list[Entry]) -> str:
    """The published algorithm by rounds and queries per round."""
    text = (
        "| epsilon | T | K | largest error: mean ± sd (range) | total variation | seconds | seeds |\n"
        + "|---" * 7
        + "|\n"
    )
    of_kind = [e for e in entries if e["benchmark"] == "grid"]
    for (epsilon, rounds, per_round), some in grouped(of_kind, "epsilon", "rounds", "per_round").items():
        text += (
            f"| {epsilon:g} | {rounds} | {per_round} | {spread(some)} | {mean(some, 'mean_tvd'):.3g} | "
            f"{mean(some, 'seconds'):.0f} | {len(some)} |\n"
        )
    return text


def grouped(entries: list[Entry], *keys: str) -> dict[tuple[Any, ...], list[Entry]]:
    """Entries that agree in some keys, in the order first met."""
    found: dict[tuple[Any, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        found[tuple(entry[key] for key in keys)].append(entry)
    return found


def mean(entries: list[Entry], key: str) -> float:
    return float(np.mean([entry[key] for entry in entries]))


def spread(entries: list[Entry]) -> str:
    errors = [entry["max_error"] for entry in entries]
    return f"{np.mean(errors):.4f} ± {np.std(errors):.4f} ({min(errors):.4f} to {max(errors):.4f})"


if __name__ == "__main__":
    main()
