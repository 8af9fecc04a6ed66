"""Largest error, mean error and total variation of every mechanism on ADULT, several seeds, certificate included.

64 three-way marginals (random:3:64, workload seed 0) at epsilon 0.1 and 1, and all of them (all:3) for some at 1.
"""

from __future__ import annotations

import resource
from typing import Any

from benchmarks.record import Context, spread, timed
from discreet.compare.errors import evaluate
from discreet.data.table import Table, read
from discreet.publish.make import release

MECHANISMS: dict[str, dict[str, Any]] = {
    "all-zero": {},
    "gaussian-paper": {},
    "gaussian": {},
    "rap-paper": {"rounds": 4, "per_round": 16},
    "rap": {},
    "auto": {},
}


def run(context: Context) -> None:
    table = read(context.adult, schema=context.adult_schema)
    for epsilon in (0.1, 1.0):
        for mechanism, settings in MECHANISMS.items():
            seeds = context.noise_seeds()[:1] if mechanism == "all-zero" else context.noise_seeds()
            _row(context, table, "random:3:64", epsilon, mechanism, settings, seeds)
    for mechanism in ("gaussian", "rap", "auto"):
        _row(context, table, "all:3", 1.0, mechanism, {}, context.noise_seeds())


def _row(
    context: Context,
    table: Table,
    workload: str,
    epsilon: float,
    mechanism: str,
    settings: dict[str, Any],
    seeds: range,
) -> None:
    found = []
    for seed in seeds:
        with timed() as clock:
            made = release(table, workload, epsilon=epsilon, mechanism=mechanism, seed=seed, **settings)
        figures = {k: v for k, v in evaluate(made, table).items() if not k.endswith("worst")}
        assert made.certificate is not None
        figures |= {"seconds": clock.seconds, "certificate": made.certificate.bound, "notes": made.notes}
        figures["memory_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        context.record(
            "utility", workload=workload, epsilon=epsilon, mechanism=mechanism, settings=settings, seed=seed, **figures
        )
        found.append(figures)
    print(
        f"{workload} epsilon {epsilon:g} {mechanism:15} largest {spread([f['max_error'] for f in found])}  "
        f"mean {sum(f['mean_error'] for f in found) / len(found):.2e}  "
        f"total variation {sum(f['mean_tvd'] for f in found) / len(found):.4f}  "
        f"covered {sum(f['max_error'] <= f['certificate'] for f in found)}/{len(found)}  "
        f"{sum(f['seconds'] for f in found) / len(found):.1f} s  up to {found[-1]['memory_gb']:.2f} GB",
        flush=True,
    )
