"""Noisy counts as they were measured: answers without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.errors import BadWorkload
from discreet.privacy.measurement import Measurement
from discreet.queries.answers import GRID, Answers
from discreet.queries.threshold import Attributes

Ints = NDArray[np.int64]

_MOST = 2**62 // GRID
"""Rows that an answer can speak of, about 4 * 10^12; noise beyond that is cut off there instead of overflowing."""


class NoisyCounts(Answers):
    """Answers read off measured marginals; what was not measured is summed from the smallest one that covers it."""

    source = "the noisy counts, as measured"

    def __init__(self, domain: Domain, total: int, measurements: Sequence[Measurement]) -> None:
        self.domain = domain
        self.total = total
        self._whole = {found.threshold.attributes: found.counts for found in measurements if found.cells is None}
        self._listed = {
            found.threshold.attributes: Sparse(found.cells, found.counts)
            for found in measurements
            if found.cells is not None
        }

    def units(self, attributes: Attributes) -> Sparse:
        """Answers to one marginal, in units of 1/GRID of a row; they may be negative. What is not listed is zero."""
        if attributes in self._listed:
            listed = self._listed[attributes]
            return Sparse(listed.cells, _within(listed.values) * GRID)
        return Sparse.from_dense(_within(self._counts(attributes)) * GRID)

    def _counts(self, attributes: Attributes) -> Ints:
        if attributes in self._whole:
            return self._whole[attributes]
        covering = [known for known in self._whole if set(attributes) <= set(known)]
        if not covering:
            raise BadWorkload(
                f"{' x '.join(attributes)} was not measured, and this mechanism has no model to answer it from. "
                "Ask for a marginal of the release's workload, or release with --mechanism auto."
            )
        smallest = min(covering, key=lambda known: self.domain.project(known).size)
        full = self._whole[smallest].reshape(self.domain.project(smallest).sizes)
        away = tuple(axis for axis, name in enumerate(smallest) if name not in attributes)
        summed: Ints = full.sum(axis=away).reshape(-1)
        return summed


def _within(counts: Ints) -> Ints:
    return np.clip(counts, -_MOST, _MOST)
