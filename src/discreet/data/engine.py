"""Engine: who holds the codes of a table and counts them. All give the same counts, to the last digit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.data.sparse import Ints

if TYPE_CHECKING:
    import pyarrow as pa

Marginal = tuple[tuple[int, int], ...]
"""A marginal as engines see it: number and size of each column, the last one running fastest."""

Portion = tuple[int, Ints, Ints]
"""Which marginal, some of its cells in rising order, and their counts."""

PRIME, BASE = 2**31 - 1, 1_000_003
"""Modulus and base of the digest."""


class Engine(Protocol):
    """Codes of a private table: columns c0, c1, ..., one per attribute."""

    def rows(self) -> int:
        """Exact number of rows."""

    def count(self, marginals: Sequence[Marginal]) -> Iterator[Portion]:
        """Exact counts: one marginal after another, each in one stretch or in several that follow each other."""

    def digest(self) -> int:
        """A number that changes with the rows, whatever their order.

        With h the codes of a row in base `BASE` modulo `PRIME`, it is the sum of h * h modulo `PRIME`.
        """

    def codes(self) -> NDArray[np.int64]:
        """All rows, rows x attributes, in no particular order."""

    def close(self) -> None:
        """Let go of everything."""


def split(batch: pa.RecordBatch) -> Iterator[Portion]:
    """Take apart a batch with columns m, c and k, sorted by the first two."""
    marginal, cells, values = (np.asarray(batch.column(name), dtype=np.int64) for name in ("m", "c", "k"))
    starts = np.flatnonzero(np.diff(marginal, prepend=-1))
    for start, stop in zip(starts, np.append(starts[1:], len(marginal)), strict=True):
        yield int(marginal[start]), cells[start:stop], values[start:stop]
