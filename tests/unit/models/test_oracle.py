"""The integer program finds the row that brute force finds."""

from itertools import product

import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.models.oracle import Oracle
from discreet.queries.threshold import Query, Threshold

DOMAIN = Domain([("a", 3), ("b", 2), ("c", 4)])
KINDS = [Threshold(("a", "b")), Threshold(("a", "b", "c")), Threshold(("a", "b", "c"), 2), Threshold(("b", "c"), 1)]


def worth(row: tuple[int, ...], wanted: dict[Query, float], bits: np.ndarray) -> float:
    total = sum(bits[start + code] for start, code in zip(DOMAIN.offsets, row, strict=True))
    for query, weight in wanted.items():
        names = query.threshold.attributes
        codes = DOMAIN.project(names).unravel(np.array([query.cell]))[0]
        agree = sum(row[DOMAIN.index(name)] == code for name, code in zip(names, codes, strict=True))
        total += weight * (agree >= query.threshold.r)
    return float(total)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_best_row_is_the_one_of_brute_force(seed: int, noise: float) -> None:
    draws = np.random.default_rng(seed)
    wanted: dict[Query, float] = {}
    for _ in range(15):
        kind = KINDS[draws.integers(len(KINDS))]
        wanted[Query(kind, int(draws.integers(kind.cells(DOMAIN))))] = float(draws.integers(-2, 4))
    bits = -noise * draws.exponential(size=DOMAIN.bits)
    oracle = Oracle(DOMAIN)
    found = oracle.best(wanted, bits)
    best = max(worth(row, wanted, bits) for row in product(*map(range, DOMAIN.sizes)))
    assert worth(tuple(found), wanted, bits) == pytest.approx(best)
    assert (oracle.solved, oracle.cut_short) == (1, 0)


def test_an_oracle_can_be_asked_again_and_forgets_what_it_was_asked_before() -> None:
    oracle = Oracle(DOMAIN)
    first = oracle.best({Query(Threshold(("a", "b", "c")), 23): 1.0})
    second = oracle.best({Query(Threshold(("a", "b", "c")), 0): 1.0})
    assert first.tolist() == [2, 1, 3]
    assert second.tolist() == [0, 0, 0]
