"""Scale: whole releases as processes of their own, from 10^5 to 10^11 queries, with time and peak memory.

ADULT with all its k-way marginals for k = 2 .. 5, LOANS with all its three-way marginals, and 64 random 1-of-4 and
2-of-4 thresholds of LOANS, by `auto` and by `rap` in 16 rounds, beside the rate that Avent and Korolova (2023, section
4.3.2) report on a GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.record import Context, timed
from discreet.compare.errors import evaluate
from discreet.data.table import Table, read
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.publish.make import release
from discreet.publish.release import Release
from discreet.queries.workload import Workload

PAPER_RATE = 28_000
SEED = 100

ROUNDS = ["--rounds", "16", "--per-round", "4", "--rows", "1000"]
RUNS: list[tuple[str, str, float, str, list[str]]] = [
    ("adult", "all:2", 1.0, "auto", []),
    ("adult", "all:3", 1.0, "auto", []),
    ("adult", "all:4", 1.0, "auto", []),
    ("adult", "all:5", 1.0, "auto", []),
    ("loans", "all:3", 1.0, "auto", []),
    ("loans", "random:4:64@1", 0.1, "auto", []),
    ("loans", "random:4:64@2", 0.1, "auto", []),
    ("loans", "random:4:64@1", 0.1, "rap", ROUNDS),
    ("loans", "random:4:64@2", 0.1, "rap", ROUNDS),
]

_MEASURED = """
import json, resource, sys
from discreet.apps.cli import main
code = main(sys.argv[1:])
print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
sys.exit(code)
"""


def run(context: Context) -> None:
    tables: dict[str, Table] = {}
    for name, workload, epsilon, mechanism, more in RUNS:
        source, schema = context.data / f"{name}.csv", context.data / f"{name}-domain.json"
        if name not in tables:
            tables[name] = read(source, schema=schema)
        table = tables[name]
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "release"
            asked = ["--workload", workload, "--epsilon", str(epsilon), "--mechanism", mechanism, *more]
            asked += ["--seed", str(SEED), "--out", str(out)]
            with timed() as whole:
                peak = _process(["release", str(source), "--schema", str(schema), *asked])
            made = Release.open(out)
        with timed() as compared:
            found = evaluate(made, table)
        figures: dict[str, Any] = {
            "table": name,
            "mechanism": mechanism,
            "workload": workload,
            "epsilon": epsilon,
            "queries": made.workload.size,
            "seconds": whole.seconds,
            "peak": peak,
            "evaluation": compared.seconds,
            "round": _round(table, made),
            "certificate": made.certificate.bound if made.certificate else None,
            **{key: found[key] for key in ("max_error", "mean_error", "rmse", "mean_tvd")},
        }
        if workload == "all:5":
            figures |= _baselines(table, made.workload, epsilon)
        rate = made.workload.size / whole.seconds
        print(
            f"{name} {workload} by {mechanism}: {made.workload.size:,} queries in {whole.seconds:.0f} s and "
            f"{peak / 1e9:.2f} GB ({rate:,.0f} a second, {rate / PAPER_RATE:,.0f} times the paper's {PAPER_RATE:,}); "
            f"one selection round {figures['round']:.1f} s; largest error {found['max_error']:.4f}"
            + "".join(f", {key} {figures[key]:.4f}" for key in ("all_zero", "thresholded_noise") if key in figures),
            flush=True,
        )
        context.record("scale", **figures)


def _process(arguments: list[str]) -> int:
    """Run the command line in a process of its own; its peak memory in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *arguments], capture_output=True, text=True, check=False, timeout=7200
    )
    if done.returncode:
        raise RuntimeError(f"discreet {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return int(json.loads(done.stdout.splitlines()[-1])["peak"])


def _round(table: Table, made: Release) -> float:
    """Seconds of one scoring and selection over the whole workload, after counting."""
    curator = Curator(table, budget=Budget(Fraction(1)), neighbours=Neighbours(), entropy=SeededEntropy(0))
    rho = Fraction(1, 10_000)
    curator.worst(made.workload, against=made.answers, rho=rho)  # counts everything once
    with timed() as clock:
        curator.select(made.workload, against=made.answers, picks=16, rho=rho)
    return clock.seconds


def _baselines(table: Table, workload: Workload, epsilon: float) -> dict[str, float]:
    """Largest error of zeros, and of Gaussian noise on whole marginals where what does not stand out is dropped."""
    found = {}
    for mechanism, name in (("all-zero", "all_zero"), ("gaussian", "thresholded_noise")):
        made = release(table, workload, epsilon=epsilon, mechanism=mechanism, seed=SEED)
        found[name] = evaluate(made, table)["max_error"]
    return found
