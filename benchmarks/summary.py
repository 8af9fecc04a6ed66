"""The pictures and tables of the docs, from results.jsonl alone."""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks.record import HERE, spread
from benchmarks.scale import PAPER_RATE
from discreet.experiments.chart import grouped, line, mean, where
from discreet.publish.svg import Series, Words, lines, standalone

Entry = dict[str, Any]

DOCS = HERE.parent / "docs"
PICTURED = ("all-zero", "rap-paper", "gaussian", "rap", "auto")


def main() -> None:
    entries = [json.loads(text) for text in (HERE / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    for name, picture in (
        ("largest-error", largest_error(entries)),
        ("time-by-queries", time_by_queries(entries)),
        ("time-by-rows", time_by_rows(entries)),
    ):
        (DOCS / f"{name}.svg").write_text(standalone(picture), encoding="utf-8")
    tables = {
        "benchmarks.md": {"utility": utility, "grid": grid, "speed": speed, "scale": scale},
        "engines.md": {"rows": by_rows, "engines": engines},
    }
    for file, makers in tables.items():
        page = (DOCS / file).read_text(encoding="utf-8")
        for name, make in makers.items():
            page = re.sub(
                rf"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{make(entries)}\g<2>", page, flags=re.DOTALL
            )
        (DOCS / file).write_text(page, encoding="utf-8")


def largest_error(entries: list[Entry]) -> str:
    """By epsilon and mechanism."""
    of_kind = where(entries, benchmark="utility", workload="random:3:64")
    words = Words(
        "Largest error over 2,492,287 queries (64 three-way marginals of ADULT)",
        "Mean of five seeds, with the smallest and the largest; lower is better.",
        "epsilon",
        "largest error, fraction of rows",
    )
    series = [line(name, where(of_kind, mechanism=name), "epsilon") for name in PICTURED]
    return lines(series, words, log_x=True, log_y=True)


def time_by_queries(entries: list[Entry]) -> str:
    """Whole releases, from 10^5 to 10^11 queries."""
    found = sorted(latest(entries, "scale", "table", "workload", "mechanism"), key=lambda e: e["queries"])
    adult, whole, some = (
        [(e["queries"], e["seconds"]) for e in found if (e["mechanism"], e["table"], e["workload"][:3]) == kind]
        for kind in (("auto", "adult", "all"), ("auto", "loans", "all"), ("rap", "loans", "ran"))
    )
    first, last = adult[0], adult[-1]
    words = Words(
        "Seconds of a whole release by number of queries",
        "From reading the file to the certificate, on two cores.",
        "queries",
        "seconds",
    )
    proportional = Series("in proportion to the queries", [first, (last[0], first[1] * last[0] / first[0])])
    series = [
        Series("ADULT, all 2- to 5-way marginals", adult),
        Series("LOANS, all 3-way", whole),
        Series("LOANS, 64 r-of-4 thresholds, 16 rounds of rap", some),
        proportional,
    ]
    return lines(series, words, log_x=True, log_y=True)


def time_by_rows(entries: list[Entry]) -> str:
    """Reading and counting on DuckDB within 2 GB."""
    found = sorted(latest(entries, "engines by rows", "rows"), key=lambda e: e["rows"])
    total = [(float(e["rows"]), e["read"] + e["count"]) for e in found]
    proportional = [(rows, total[-1][1] * rows / total[-1][0]) for rows, _ in total]
    words = Words(
        "Seconds to read and count by number of rows",
        "All 45 two-way marginals of ten attributes in a Parquet file, on DuckDB within 2 GB and two cores.",
        "rows",
        "seconds",
    )
    series = [Series("reading and counting", total), Series("in proportion to the rows", proportional)]
    return lines(series, words, log_x=True, log_y=True)


def utility(entries: list[Entry]) -> str:
    """One line per workload, epsilon and mechanism."""
    text = _head(
        "workload | epsilon | mechanism | largest error: mean ± sd (range) | mean error | total variation | seconds | "
        "covered"
    )
    of_kind = where(entries, benchmark="utility")
    for (workload, epsilon, mechanism), some in grouped(of_kind, "workload", "epsilon", "mechanism").items():
        covered = sum(e["max_error"] <= e["certificate"] for e in some)
        text += (
            f"| {workload} | {epsilon:g} | `{mechanism}` | {_largest(some)} | {mean(some, 'mean_error'):.2e} | "
            f"{mean(some, 'mean_tvd'):.3g} | {mean(some, 'seconds'):.1f} | {covered}/{len(some)} |\n"
        )
    return text


def grid(entries: list[Entry]) -> str:
    """The published algorithm by rounds and queries per round."""
    text = _head("epsilon | T | K | largest error: mean ± sd (range) | total variation | seconds | seeds")
    of_kind = where(entries, benchmark="grid")
    for (epsilon, rounds, per_round), some in grouped(of_kind, "epsilon", "rounds", "per_round").items():
        text += (
            f"| {epsilon:g} | {rounds} | {per_round} | {_largest(some)} | {mean(some, 'mean_tvd'):.3g} | "
            f"{mean(some, 'seconds'):.0f} | {len(some)} |\n"
        )
    return text


def speed(entries: list[Entry]) -> str:
    """What was timed, and what ran beside it."""
    text = _head("what | measured | beside it")
    for e in latest(entries, "noise", "sigma"):
        text += (
            f"| 10^6 exact discrete Gaussian draws, sigma {e['sigma']:g} | {e['ours']:.3f} s | OpenDP's vector "
            f"mechanism: {e['opendp']:.1f} s, {e['ratio']:.0f} times as long |\n"
        )
    for e in latest(entries, "counting"):
        text += (
            f"| counting all 364 three-way marginals ({e['cells']:,} non-zero cells) | {e['count']:.2f} s | one "
            f"statement per marginal: {e['one_by_one'] / e['count']:.1f} times as long |\n"
        )
    for e in latest(entries, "selection"):
        text += (
            f"| one selection round of 16 over {e['queries']:,} queries, after counting | {e['ours']:.1f} s | a Gumbel "
            f"draw per query: {e['gumbel']:.1f} s, and inexact |\n"
        )
    for e in latest(entries, "blocks", "table", "transform"):
        text += (
            f"| a step of `rap-paper` on {e['table']}, {e['transform']}, 128 queries | {1e3 * e['ours']:.2f} ms | rows "
            f"kept as one array: {e['whole'] / e['ours']:.1f} times as long |\n"
        )
    for e in latest(entries, "speed", "epsilon"):
        text += (
            f"| `rap` end to end, 64 marginals, epsilon {e['epsilon']:g} | {e['ours']:.0f} s | plain RAP (below): "
            f"at least {e['ratio']:.1f} times as long, stopped after {e['steps']:,} of up to 80,000 steps |\n"
        )
    return text


def scale(entries: list[Entry]) -> str:
    """Whole releases by number of queries."""
    text = _head(
        "table | workload | epsilon | mechanism | queries | seconds | queries a second, over the paper's | "
        "peak memory | one selection round | largest error | certificate | evaluation"
    )
    for e in latest(entries, "scale", "table", "workload", "mechanism"):
        rate = e["queries"] / e["seconds"]
        text += (
            f"| {e['table']} | `{e['workload']}` | {e['epsilon']:g} | `{e['mechanism']}` | {e['queries']:,} | "
            f"{e['seconds']:.0f} | {rate:,.0f}, {rate / PAPER_RATE:,.1f} times | {e['peak'] / 1e9:.2f} GB | "
            f"{e['round']:.1f} s | {e['max_error']:.4f} | {e['certificate']:.4f} | {e['evaluation']:.0f} s |\n"
        )
    for e in latest([e for e in entries if "thresholded_noise" in e], "scale", "table", "workload"):
        text += (
            f"\nOn the same `{e['workload']}` of {e['table']} at epsilon {e['epsilon']:g}, answering zero has a "
            f"largest error of {e['all_zero']:.4f}, and Gaussian noise on whole marginals, with small values "
            f"dropped, {e['thresholded_noise']:.4f}.\n"
        )
    return text


def by_rows(entries: list[Entry]) -> str:
    """DuckDB within 2 GB."""
    text = _head("rows | read | count | seconds for 10^6 rows | peak memory")
    for e in sorted(latest(entries, "engines by rows", "rows"), key=lambda e: e["rows"]):
        each = 1e6 * (e["read"] + e["count"]) / e["rows"]
        text += f"| {e['rows']:,} | {e['read']:.1f} s | {e['count']:.1f} s | {each:.2f} | {e['peak'] / 1e9:.2f} GB |\n"
    return text


def engines(entries: list[Entry]) -> str:
    """One table on every engine."""
    found = latest(entries, "engines", "engine_name")
    arrays = next(e["count"] for e in found if e["engine_name"] == "arrays")
    text = _head("engine | read and check | count | count, beside arrays")
    for e in found:
        ratio = e["count"] / arrays
        text += f"| {e['engine_name']} | {e['read']:.1f} s | {e['count']:.2f} s | {ratio:.1f} times |\n"
    return text


def latest(entries: list[Entry], benchmark: str, *keys: str) -> list[Entry]:
    """The last entry of a benchmark for each value of some keys."""
    return [some[-1] for some in grouped(where(entries, benchmark=benchmark), *keys).values()]


def _largest(entries: list[Entry]) -> str:
    return spread([entry["max_error"] for entry in entries])


def _head(columns: str) -> str:
    return f"| {columns} |\n" + "|---" * len(columns.split(" | ")) + "|\n"


if __name__ == "__main__":
    main()
