"""One selection round over all 20,894,536 three-way queries of ADULT, after counting, on fitted answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from benchmarks.record import Context, timed
from discreet.data.table import Table, read
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.publish.make import release
from discreet.queries import parse
from discreet.queries.answers import GRID, Answers
from discreet.queries.workload import Workload

PICKS = 16


def run(context: Context) -> None:
    table = read(context.adult, schema=context.adult_schema)
    workload = parse.workload("all:3", table.domain)
    answers = release(table, "all:3", epsilon=1.0, seed=0, settings={"max_steps": 64}, certificate=0.0).answers
    curator = Curator(table, budget=Budget(Fraction(1)), neighbours=Neighbours(), entropy=SeededEntropy(0))
    rho = Fraction(1, 10_000)
    curator.worst(workload, against=answers, rho=rho)  # counts everything once
    with timed() as ours:
        curator.select(workload, against=answers, picks=PICKS, rho=rho)
    with timed() as plain:
        _gumbel_per_query(table, answers, workload, rho)
    print(
        f"{workload.size:,} queries: histogram selection {ours.seconds:.2f} s, a Gumbel draw per query "
        f"{plain.seconds:.2f} s ({plain.seconds / ours.seconds:.1f} times slower, and inexact)"
    )
    context.record("selection", queries=workload.size, ours=ours.seconds, gumbel=plain.seconds)


def _gumbel_per_query(table: Table, answers: Answers, workload: Workload, rho: Fraction) -> None:
    """The published way, with the same answers: one draw per query and a running top-k."""
    rng = np.random.default_rng(0)
    scale = (PICKS / (2 * float(rho))) ** 0.5
    best = np.zeros(0)
    for threshold, counts in zip(workload, table.counts([t.attributes for t in workload]), strict=True):
        cells = threshold.cells(workload.domain)
        scores = np.abs(answers.units(threshold.attributes).dense(cells) / GRID - counts.dense(cells))
        noisy = scores + rng.gumbel(scale=scale, size=len(scores))
        best = np.sort(np.concatenate([best, np.partition(noisy, -min(PICKS, len(noisy)))[-PICKS:]]))[-PICKS:]
