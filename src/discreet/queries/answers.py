"""Answers: what is published about every query, on a grid, so that all who speak of an answer speak of the same one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Piece, Sparse
from discreet.queries.expand import Lookup, expand
from discreet.queries.threshold import Attributes, Query, Threshold, at_cells

Ints = NDArray[np.int64]

GRID = 2**20
"""An answer is a whole number of units, each 1/GRID of a row."""


class Answers(ABC):
    """Public answers to every query over a domain.

    Attributes:
        domain: Public.
        total: Rows that fractions are taken of: public, or a noisy number that was paid for.
        source: What answers are read off, in words.
    """

    domain: Domain
    total: int
    source: ClassVar[str]

    @abstractmethod
    def units(self, attributes: Attributes) -> Sparse:
        """Answers to all queries of one marginal, in units of 1/GRID of a row; absent cells are zero."""

    def at(self, attributes: Attributes, cells: Ints) -> Ints:
        """The same at some cells only."""
        return self.units(attributes).at(cells)

    def stretches(self, attributes: Attributes, *, grid: int = GRID) -> Iterator[Stretch]:
        """The same in stretches of cells that follow each other, rounded to units of 1/grid of a row.

        For marginals too large to hold at once, and for those who need no finer grid.
        """
        yield Stretch(0, self.domain.project(attributes).size, _rounded(self.units(attributes), grid))


@dataclass(frozen=True)
class Stretch:
    """Answers to the cells start .. stop-1 of a marginal."""

    start: int
    stop: int
    units: Sparse


@dataclass(frozen=True)
class Zeros(Answers):
    """Every answer is zero."""

    domain: Domain
    total: int
    source = "nothing: each is zero"

    def units(self, attributes: Attributes) -> Sparse:
        """No cell at all."""
        empty = np.zeros(0, dtype=np.int64)
        return Sparse(empty, empty)


def differences(answers: Answers, threshold: Threshold, other: Lookup, *, grid: int = GRID) -> Iterator[Piece]:
    """Answers minus something else, for all queries of a threshold, in stretches of cells.

    Args:
        answers: Public.
        threshold: Which queries.
        other: What to subtract, marginal by marginal, in units of 1/grid of a row.
        grid: A power of two up to GRID; answers are rounded to its units first.
    """
    if not threshold.is_marginal:
        yield from expand(
            threshold, answers.domain, lambda subset: _rounded(answers.units(subset), grid).minus(other(subset))
        )
        return
    subtracted = other(threshold.attributes)
    for stretch in answers.stretches(threshold.attributes, grid=grid):
        yield stretch.units.minus(subtracted.between(stretch.start, stretch.stop))


def _rounded(units: Sparse, grid: int) -> Sparse:
    """Units of a coarser grid, a power of two, rounded to the nearest."""
    shift = (GRID // grid).bit_length() - 1
    if not shift:
        return units
    return Sparse.from_pairs(units.cells, (units.values + (1 << shift - 1)) >> shift)


def pieces(answers: Answers, threshold: Threshold) -> Iterator[Piece]:
    """Answers to all queries of a threshold, in units, in stretches of cells."""
    return expand(threshold, answers.domain, answers.units)


def fractions(answers: Answers, threshold: Threshold) -> NDArray[np.float64]:
    """The answers to all queries of a threshold as fractions of the rows."""
    units = np.zeros(threshold.cells(answers.domain), dtype=np.int64)
    for piece in pieces(answers, threshold):
        units[piece.cells] = piece.values
    return units / GRID / max(1, answers.total)


def fraction(answers: Answers, query: Query) -> float:
    """The answer to one query as a fraction of the rows."""
    units = at_cells(query.threshold, np.array([query.cell]), answers.domain, answers.at)
    return int(units[0]) / GRID / max(1, answers.total)
