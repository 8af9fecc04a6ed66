"""Stored: codes of a large table in a compressed DuckDB file of our own, counted within a limit of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.data import scratch
from discreet.data.engine import BASE, PRIME, Marginal, Portion, split
from discreet.data.scratch import Scratch

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Result = TypeVar("Result")


class Stored:
    """An engine for tables larger than memory.

    Args:
        batches: Codes, in the smallest types; they are read once.
        folder: Private; the file of codes and what does not fit in memory go there. It is closed with the engine.
        memory: Bytes that the database may use.
    """

    def __init__(self, batches: pa.RecordBatchReader, *, folder: Scratch, memory: int) -> None:
        import duckdb

        self._folder = folder
        self._complaint = (
            f"The codes cannot be held and counted within {memory >> 20:,} MB of memory and the free disk space at "
            f"{folder.path.parent}. Give more with --memory, or choose a larger disk with --scratch DIR."
        )
        settings: dict[str, Any] = {
            "memory_limit": f"{memory >> 10}KiB",
            "temp_directory": str(folder.path / "spill"),
            "preserve_insertion_order": "false",
        }
        with scratch.writing(folder.path):
            self._database: duckdb.DuckDBPyConnection = self._veiled(
                lambda: duckdb.connect(folder.path / "codes.duckdb", config=settings)
            )
        self._database.register("batches", batches)
        self._veiled(lambda: self._database.execute("create table codes as select * from batches"))
        self._database.unregister("batches")
        self._width = len(batches.schema)

    def rows(self) -> int:
        """See `Engine`."""
        return self._number("select count(*) from codes")

    def count(self, marginals: Sequence[Marginal]) -> Iterator[Portion]:
        """See `Engine`: group-bys of one statement share the database's threads and its memory."""
        from discreet.data.source import stream

        parts = (
            f"select {number} m, {_cell(marginal)} c, count(*) k from codes group by c"
            for number, marginal in enumerate(marginals)
        )
        statement = " union all ".join(parts) + " order by m, c"
        found = self._veiled(lambda: iter(stream(self._cursor(), statement)))
        while (batch := self._veiled(lambda: next(found, None))) is not None:
            yield from split(batch)

    def digest(self) -> int:
        """See `Engine`."""
        mixed = "0::bigint"
        for place in range(self._width):
            mixed = f"(({mixed} * {BASE} + c{place}::bigint) % {PRIME})"
        return self._number(f"select sum(h * h % {PRIME}) from (select {mixed} h from codes)")

    def codes(self) -> NDArray[np.int64]:
        """See `Engine`."""
        columns = self._veiled(lambda: self._cursor().execute("select * from codes").fetchnumpy()).values()
        return np.column_stack([column.astype(np.int64) for column in columns])

    def close(self) -> None:
        """See `Engine`."""
        self._database.close()
        self._folder.close()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """Every call has its own, so threads may share a table."""
        return self._database.cursor()

    def _number(self, query: str) -> int:
        (found,) = self._veiled(lambda: self._cursor().execute(query).fetchall())[0]
        return int(found or 0)

    def _veiled(self, work: Callable[[], Result]) -> Result:
        from discreet.data.source import veiled

        return veiled(work, self._complaint, starved=self._complaint)


def _cell(marginal: Marginal) -> str:
    """SQL text of the cell index of a row, by Horner's rule."""
    cell = "0::bigint"
    for column, size in marginal:
        cell = f"({cell} * {size} + c{column}::bigint)"
    return cell
