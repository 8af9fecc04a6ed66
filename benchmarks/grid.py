"""What the published algorithm really gives: rap-paper over rounds and queries per round, on ADULT, random:3:64.

Runs that are already in the results are not repeated.
"""

from __future__ import annotations

from typing import Any

from benchmarks.record import Context, spread, timed
from discreet.compare.errors import evaluate
from discreet.data.table import read
from discreet.publish.make import release

SCHEDULES = [(4, 4), (4, 16), (4, 64), (16, 4), (16, 16)]


def run(context: Context) -> None:
    table = read(context.adult, schema=context.adult_schema)
    for epsilon in (0.1, 1.0):
        for rounds, per_round in SCHEDULES:
            errors = []
            for seed in context.noise_seeds():
                setting: dict[str, Any] = {"epsilon": epsilon, "rounds": rounds, "per_round": per_round, "seed": seed}
                found = context.recorded("grid", setting)
                if found is None:
                    with timed() as clock:
                        made = release(table, "random:3:64", mechanism="rap-paper", **setting)
                    found = {k: v for k, v in evaluate(made, table).items() if not k.endswith("worst")}
                    context.record("grid", **setting, seconds=clock.seconds, **found)
                errors.append(found["max_error"])
            print(f"epsilon {epsilon:g} T={rounds:3} K={per_round:3}: largest {spread(errors)}", flush=True)
