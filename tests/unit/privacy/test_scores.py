from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.sparse import Piece, Run, Sparse
from discreet.privacy.select import Scores


def pieces_of(values: list[int], cuts: list[int], dense: list[bool]) -> list[Piece]:
    """The same values as runs and sparse stretches."""
    array = np.array(values, dtype=np.int64)
    ends = sorted({0, len(values), *(cut % (len(values) + 1) for cut in cuts)})
    made: list[Piece] = []
    for at, (start, stop) in enumerate(pairwise(ends)):
        part = array[start:stop]
        run = dense[at % len(dense)]
        made.append(Run(start, part.astype(np.int32)) if run else Sparse.from_dense(part, start=start))
    return made


@given(
    st.lists(st.integers(-2, 3) | st.sampled_from([0, 2**25]), min_size=1, max_size=40),
    st.lists(st.integers(0, 50), max_size=4),
    st.lists(st.booleans(), min_size=1, max_size=3),
)
def test_histograms_members_and_zeros_are_those_of_the_listed_scores(
    values: list[int], cuts: list[int], dense: list[bool]
) -> None:
    scores = Scores([len(values)], lambda _: pieces_of(values, cuts, dense))
    (distinct, many), found = scores.survey(0, list(range(len(values))))
    expected = np.unique([value for value in values if value], return_counts=True)
    assert np.array_equal(distinct, expected[0])
    assert np.array_equal(many, expected[1])
    listed = {score: np.flatnonzero(np.array(values) == score) for score in sorted({0, *values})}
    everything = scores.members(0, {score: np.arange(len(cells)) for score, cells in listed.items()})
    for score, cells in listed.items():
        assert np.array_equal(everything[score], cells)
        assert np.array_equal(scores.members(0, {score: np.arange(len(cells))[::-1]})[score], cells[::-1])
        for rank in range(len(cells)):
            assert scores.members(0, {score: np.array([rank, rank])})[score].tolist() == [cells[rank]] * 2
    assert found.tolist() == values
