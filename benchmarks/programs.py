"""Integer programs of `dualquery` and `fem`: time of a row by the values of an attribute, beside the forecast."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.record import Context
from discreet.data.domain import Domain
from discreet.mechanisms import forecast, machine
from discreet.models.oracle import Oracle
from discreet.queries.threshold import Query, Threshold

VALUES = (2**11, 2**12, 2**13, 2**14)
QUERIES, NOISE = 40, 2.0


def run(context: Context) -> None:
    slowness, before = machine.slowness(), None
    for values in (*VALUES, 2**16) if context.full else VALUES:
        domain = Domain({"code": values, "b": 8, "c": 5})
        seconds = _seconds(domain)
        foreseen = slowness * forecast.program(domain, QUERIES)
        longer = "" if before is None else f"{seconds / before:.1f} times as long as before, "
        print(f"{values:,} values: {seconds:.2f} s a row, {longer}found over forecast {seconds / foreseen:.2f}")
        context.record("programs", values=values, seconds=seconds, foreseen=foreseen)
        before = seconds


def _seconds(domain: Domain) -> float:
    """Of the processor, for one row against queries of either sign, with noise on every value as `fem` has it."""
    draws = np.random.default_rng(0)
    asked = Threshold(("code", "b"))
    wanted = {
        Query(asked, int(cell)): float(sign)
        for cell, sign in zip(
            draws.integers(asked.cells(domain), size=QUERIES), draws.choice([-1, 1], QUERIES), strict=True
        )
    }
    oracle, taken = Oracle(domain), []
    for _ in range(2):
        began = time.process_time()
        oracle.best(wanted, -draws.exponential(NOISE, domain.bits))
        taken.append(time.process_time() - began)
    return min(taken)
