"""Rounded rows: ordinary rows, answered by counting them.

A marginal of N ordinary rows has at most N cells that are not zero, whatever its size, so the answers to a hundred
billion queries can be scored, certified and compared at the cost of sorting N integers per marginal. Relaxed rows
answer every cell with something tiny and cannot do that; drawing enough rows from them (Aydore et al. 2021, section 4)
loses little: the more draws, the less (`discreet experiment oversampling`).
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.queries.answers import GRID, Answers
from discreet.queries.threshold import Attributes

Codes = NDArray[np.int64]


class RoundedRows(Answers):
    """Answers by counting rows: what whoever counts the published rows would find.

    Attributes:
        domain: Public.
        total: Number of rows that answers are fractions of.
        codes: The rows, rows x attributes.
    """

    source = "the synthetic rows, by counting them"

    def __init__(self, domain: Domain, total: int, codes: Codes) -> None:
        self.domain = domain
        self.total = total
        self.codes = codes
        self._columns = {name: np.ascontiguousarray(codes[:, at]) for at, name in enumerate(domain)}

    def units(self, attributes: Attributes) -> Sparse:
        """Counts of one marginal, scaled to the total."""
        cell = np.zeros(len(self.codes), dtype=np.int64)
        sizes = self.domain.project(attributes).sizes
        for name, size in zip(attributes, sizes, strict=True):
            cell = cell * size + self._columns[name]
        if prod(sizes) <= 4 * len(cell):
            counts = np.bincount(cell, minlength=prod(sizes))
            cells = np.flatnonzero(counts)
            counts = counts[cells]
        else:
            cells, counts = np.unique(cell, return_counts=True)
        return Sparse.from_pairs(cells, np.rint(counts * (self.total * GRID / len(cell))).astype(np.int64))

    def draw(self, count: int, generator: np.random.Generator) -> Codes:
        """`count` of the rows in random order: each as often as the others, give or take one."""
        order = np.concatenate([generator.permutation(len(self.codes)) for _ in range(-(-count // len(self.codes)))])
        drawn: Codes = self.codes[order[:count]]
        return drawn
