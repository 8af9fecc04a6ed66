"""What the published algorithm really gives: rap-paper over rounds and queries per round, on ADULT, random:3:64."""

from __future__ import annotations

from benchmarks.record import Context, spread, timed
from discreet.compare.errors import evaluate
from discreet.data.table import read
from discreet.publish.make import release

SCHEDULES = [(4, 4), (4, 16), (4, 64), (16, 4), (16, 16), (64, 4)]


def run(context: Context) -> None:
    table = read(context.adult, schema=context.adult_schema)
    for epsilon in (0.1, 1.0):
        for rounds, per_round in SCHEDULES:
            errors, seconds = [], 0.0
            for seed in context.noise_seeds():
                with timed() as clock:
                    made = release(
                        table,
                        "random:3:64",
                        epsilon=epsilon,
                        mechanism="rap-paper",
                        rounds=rounds,
                        per_round=per_round,
                        seed=seed,
                    )
                figures = {k: v for k, v in evaluate(made, table).items() if not k.endswith("worst")}
                errors.append(figures["max_error"])
                seconds += clock.seconds
                context.record(
                    "grid",
                    epsilon=epsilon,
                    rounds=rounds,
                    per_round=per_round,
                    seed=seed,
                    seconds=clock.seconds,
                    **figures,
                )
            print(
                f"epsilon {epsilon:g} T={rounds:3} K={per_round:3}: largest {spread(errors)}, "
                f"{seconds / context.seeds:.0f} s each",
                flush=True,
            )
