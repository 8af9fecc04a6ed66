"""Neighbouring tables can produce the same outputs: no result is possible for one and impossible for the other."""

from collections import Counter
from fractions import Fraction

import numpy as np
from tests.tables import CodedTable, random_table

from discreet.data.domain import Domain
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.queries import parse
from discreet.queries.answers import Zeros

SMALL = Domain({"a": 2, "b": 3})
RHO = Fraction(1, 50)
RUNS = 3000


def gates() -> list[Curator]:
    one = random_table(12, domain=SMALL)
    changed = one.codes.copy()
    changed[0] = (changed[0] + 1) % np.array(SMALL.sizes)
    tables = [one, CodedTable(SMALL, changed)]
    return [
        Curator(table, budget=Budget(RHO * 2 * RUNS), neighbours=Neighbours(), entropy=SeededEntropy(seed))
        for seed, table in enumerate(tables)
    ]


def test_every_query_can_be_selected_from_both_tables() -> None:
    workload = parse.workload("all:1+all:2", SMALL)
    seen = [
        Counter(curator.select(workload, against=Zeros(SMALL, 12), picks=1, rho=RHO)[0] for _ in range(RUNS))
        for curator in gates()
    ]
    assert set(seen[0]) == set(seen[1])
    assert len(seen[0]) == workload.size


def test_measurements_have_the_same_shape_and_overlapping_values() -> None:
    values: list[set[tuple[int, ...]]] = []
    for curator in gates():
        found = [curator.measure([("a",)], rho=RHO)[0].counts for _ in range(RUNS)]
        assert all(counts.shape == (2,) for counts in found)
        values.append({tuple(int(count) // 8 for count in counts) for counts in found})
    common = values[0] & values[1]
    assert len(common) > 0.6 * max(len(values[0]), len(values[1]))
    assert any(min(pair) < 0 for pair in common)  # noise reaches below zero: no clipping gives empty cells away


def test_probability_ratios_of_selection_stay_within_its_epsilon() -> None:
    """One pick at epsilon: for neighbours, no query's chance may change by more than a factor exp(epsilon)."""
    workload = parse.workload("all:2", SMALL)
    epsilon = float((8 * RHO) ** Fraction(1, 2))
    chances = []
    for curator in gates():
        counted = Counter(
            curator.select(workload, against=Zeros(SMALL, 12), picks=1, rho=RHO)[0] for _ in range(2 * RUNS - 10)
        )
        chances.append({query: many / (2 * RUNS - 10) for query, many in counted.items()})
    for query, chance in chances[0].items():
        noise = 5 * (chance / (2 * RUNS)) ** 0.5
        assert chance - noise <= np.exp(epsilon) * (chances[1][query] + noise)
        assert chances[1][query] - noise <= np.exp(epsilon) * (chance + noise)
