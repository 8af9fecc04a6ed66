from fractions import Fraction

import numpy as np

from discreet.data.domain import Domain
from discreet.models.noisy import NoisyCounts
from discreet.privacy.measurement import Measurement
from discreet.queries.answers import GRID, fractions
from discreet.queries.threshold import Threshold

DOMAIN = Domain({"a": 3})


def answered(counts: list[int], cells: list[int] | None = None) -> np.ndarray:
    listed = None if cells is None else np.array(cells)
    found = Measurement(Threshold(["a"]), listed, np.array(counts), Fraction(1))
    return np.asarray(fractions(NoisyCounts(DOMAIN, 1, [found]), Threshold(["a"])))


def test_counts_are_answered_as_they_are() -> None:
    np.testing.assert_array_equal(answered([5, -2, 0]), [5, -2, 0])
    np.testing.assert_array_equal(answered([7], [1]), [0, 7, 0])


def test_noise_beyond_what_answers_can_hold_is_cut_off_and_keeps_its_sign() -> None:
    most = 2**62 // GRID
    np.testing.assert_array_equal(answered([2**50, -(2**45), 1]), [most, -most, 1])
    np.testing.assert_array_equal(answered([2**50], [2]), [0, 0, most])
