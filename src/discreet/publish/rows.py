"""Synthetic rows: drawing them, and the answers that people get by counting them."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.errors import BadRelease
from discreet.models.relaxed import RelaxedRows
from discreet.queries.answers import GRID, Answers
from discreet.queries.threshold import Attributes

Codes = NDArray[np.int64]

MOST_ROWS = 1_000_000
"""Rows written with a release unless more are asked for."""


def default_copies(model: RelaxedRows) -> int:
    """Copies of each relaxed row that make a synthetic table about as long as the original."""
    return max(1, round(min(model.total, MOST_ROWS) / model.rows))


def draw(answers: Answers, count: int, generator: np.random.Generator) -> Codes:
    """`count` synthetic rows as codes (rows x attributes)."""
    if not isinstance(answers, RelaxedRows):
        raise BadRelease("This mechanism publishes answers only; release with --mechanism rap to have rows.")
    copies = -(-count // answers.rows)
    return answers.sample(copies, generator)[:count]


class Tabulated(Answers):
    """Answers by counting synthetic rows: what a user of the rows would find."""

    def __init__(self, domain: Domain, total: int, codes: Codes) -> None:
        self.domain = domain
        self.total = total
        self._columns = {name: np.ascontiguousarray(codes[:, at]) for at, name in enumerate(domain)}
        self._rows = len(codes)

    def units(self, attributes: Attributes) -> Sparse:
        """Counts of one marginal, scaled to the total."""
        cell = np.zeros(self._rows, dtype=np.int64)
        sizes = self.domain.project(attributes).sizes
        for name, size in zip(attributes, sizes, strict=True):
            cell = cell * size + self._columns[name]
        if prod(sizes) <= 4 * self._rows:
            counts = np.bincount(cell, minlength=prod(sizes))
            cells = np.flatnonzero(counts)
            counts = counts[cells]
        else:
            cells, counts = np.unique(cell, return_counts=True)
        return Sparse.from_pairs(cells, np.rint(counts * (self.total * GRID / self._rows)).astype(np.int64))
