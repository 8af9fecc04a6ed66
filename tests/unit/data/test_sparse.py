from __future__ import annotations

import numpy as np

from discreet.data.sparse import Sparse


def sparse(**cells: int) -> Sparse:
    pairs = sorted((int(cell[1:]), value) for cell, value in cells.items())
    return Sparse(np.array([cell for cell, _ in pairs], np.int64), np.array([v for _, v in pairs], np.int64))


def test_dense_and_back() -> None:
    dense = np.array([0, 3, 0, -1])
    assert Sparse.from_dense(dense).cells.tolist() == [1, 3]
    assert Sparse.from_dense(dense).dense(4).tolist() == dense.tolist()
    assert Sparse.from_dense(dense, start=10).cells.tolist() == [11, 13]


def test_at_gives_zero_where_nothing_is_stored() -> None:
    assert sparse(c2=5, c7=1).at(np.array([0, 2, 7, 9])).tolist() == [0, 5, 1, 0]
    assert sparse().at(np.array([0, 1])).tolist() == [0, 0]


def test_minus_is_on_the_union_without_zeros() -> None:
    left, right = sparse(c1=4, c2=5), sparse(c2=5, c3=1)
    assert left.minus(right).cells.tolist() == [1, 3]
    assert left.minus(right).values.tolist() == [4, -1]
    assert left.minus(left).cells.tolist() == []
    assert sparse().minus(sparse()).values.tolist() == []
