from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import DOMAIN, brute_force, random_table

from discreet.data.domain import Domain
from discreet.data.sparse import Piece
from discreet.errors import BadWorkload
from discreet.queries import expand as module
from discreet.queries.expand import expand
from discreet.queries.threshold import Threshold, at_cells
from discreet.queries.workload import Workload


def dense(pieces: list[Piece], size: int) -> np.ndarray:
    full = np.zeros(size, dtype=np.int64)
    for piece in pieces:
        full[piece.cells] = piece.values
    return full


@pytest.mark.parametrize("block", [1, 5, 30, 2**22])
@pytest.mark.parametrize("names", [c for k in (1, 2, 3, 4) for c in combinations(DOMAIN.attributes, k)], ids=str)
def test_all_thresholds_equal_their_definition(
    names: tuple[str, ...], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    table = random_table(60)
    for r in range(1, len(names) + 1):
        threshold = Threshold(names, r)
        pieces = list(expand(threshold, DOMAIN, lambda subset: table.counts([subset])[0]))
        expected = brute_force(table, names, r)
        assert np.array_equal(dense(pieces, threshold.cells(DOMAIN)), expected)
        cells = np.arange(threshold.cells(DOMAIN))
        assert np.array_equal(
            at_cells(threshold, cells, DOMAIN, lambda s, part: table.counts([s])[0].at(part)), expected
        )


def test_terms_of_a_threshold_are_inclusion_exclusion() -> None:
    assert Threshold(("a", "b"), 1).terms() == [(1, ("a",)), (1, ("b",)), (-1, ("a", "b"))]
    assert Threshold(("a", "b", "c"), 2).terms() == [
        (1, ("a", "b")),
        (1, ("a", "c")),
        (1, ("b", "c")),
        (-2, ("a", "b", "c")),
    ]
    assert Threshold(("a", "b", "c")).terms() == [(1, ("a", "b", "c"))]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 40), st.integers(0, 10**6), st.integers(1, 3))
def test_thresholds_of_random_tables(rows: int, seed: int, r: int) -> None:
    domain = Domain({"a": 3, "b": 2, "c": 4})
    table = random_table(rows, domain=domain, seed=seed)
    pieces = list(expand(Threshold(("a", "b", "c"), r), domain, lambda subset: table.counts([subset])[0]))
    assert np.array_equal(dense(pieces, domain.size), brute_force(table, ("a", "b", "c"), r))


def test_a_table_too_large_to_visit_is_refused_when_the_workload_is_made() -> None:
    domain = Domain({"a": 2**20, "b": 2**20, "c": 2})
    with pytest.raises(BadWorkload, match="each of them is visited"):
        Workload(domain, [Threshold(("a", "b", "c"), 2)])


@pytest.mark.parametrize(("names", "r"), [((), None), (("a", "a"), None), (("a",), 2), (("a",), 0), (("a",), True)])
def test_bad_thresholds_are_refused(names: tuple[str, ...], r: int | None) -> None:
    with pytest.raises(BadWorkload):
        Threshold(names, r)


def test_a_text_is_not_a_list_of_its_letters() -> None:
    with pytest.raises(BadWorkload, match="list of names, not 'age'"):
        Threshold("age")  # type: ignore[arg-type]
