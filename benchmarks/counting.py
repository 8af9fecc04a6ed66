"""Counting all 364 three-way marginals of ADULT with the default engine."""

from __future__ import annotations

from itertools import combinations

from benchmarks.record import Context, timed
from discreet.data.table import read


def run(context: Context) -> None:
    with timed() as reading:
        table = read(context.adult, schema=context.adult_schema)
    sets = list(combinations(table.domain.attributes, 3))
    with timed() as counting:
        counts = table.counts(sets)
    with timed() as single:
        for names in sets[:50]:
            table.count(names)
    one_by_one = single.seconds / 50 * len(sets)
    cells = sum(len(found.cells) for found in counts)
    print(
        f"read {reading.seconds:.2f} s; {len(sets)} marginals, {cells:,} non-zero cells in {counting.seconds:.2f} s, "
        f"{one_by_one / counting.seconds:.1f} times faster than one statement each"
    )
    context.record("counting", read=reading.seconds, count=counting.seconds, one_by_one=one_by_one, cells=cells)
