"""Answers: what is published about every query, on a grid, so that all who speak of an answer speak of the same one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.queries.threshold import Attributes, Query, Threshold, at_cells, expand

GRID = 2**20
"""An answer is a whole number of units, each 1/GRID of a row."""


class Answers(Protocol):
    """Public answers to every query over a domain, as fractions of a total that is public or was paid for."""

    @property
    def domain(self) -> Domain:
        """Public."""

    @property
    def total(self) -> int:
        """Rows that fractions are taken of."""

    def units(self, attributes: Attributes) -> Sparse:
        """Answers to all queries of one marginal, in units of 1/GRID of a row; absent cells are zero."""


@dataclass(frozen=True)
class Zeros:
    """Every answer is zero."""

    domain: Domain
    total: int

    def units(self, attributes: Attributes) -> Sparse:
        """No cell at all."""
        empty = np.zeros(0, dtype=np.int64)
        return Sparse(empty, empty)


def pieces(answers: Answers, threshold: Threshold) -> Iterator[Sparse]:
    """Answers to all queries of a threshold, in units, in stretches of cells."""
    return expand(threshold, answers.domain, answers.units)


def fraction(answers: Answers, query: Query) -> float:
    """The answer to one query as a fraction of the rows."""
    units = at_cells(query.threshold, np.array([query.cell]), answers.domain, answers.units)
    return int(units[0]) / GRID / max(1, answers.total)
