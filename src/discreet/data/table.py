"""Table: coded rows over a Domain; the only private type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.encode import encode
from discreet.data.schema import Schema
from discreet.data.schema import Source as SchemaSource
from discreet.data.sparse import Sparse
from discreet.errors import BadData
from discreet.progress import SILENT, Progress

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MARGINALS_PER_STATEMENT = 26
"""Several group-bys in one statement share DuckDB's threads; more than this gains nothing more on ADULT."""


@dataclass(frozen=True, repr=False, eq=False)
class Table:
    """Private rows, held as codes in an embedded engine.

    Only the Curator, which charges for it, and evaluation on the owner's side may call `rows`, `count`,
    `counts` and `codes`: their results are exact. `schema` and `domain` are public, and so is the text of a
    table.
    """

    schema: Schema
    _engine: duckdb.DuckDBPyConnection = field(repr=False)

    def __repr__(self) -> str:
        return f"Table({self.domain!r})"

    @property
    def domain(self) -> Domain:
        """Attribute names and sizes. Public."""
        return self.schema.domain

    def rows(self) -> int:
        """Exact number of rows. Private under add/remove neighbours."""
        return int(self._fetch("select count(*) k from codes")["k"][0])

    def count(self, attributes: Sequence[str]) -> Sparse:
        """Exact counts of one marginal; no attributes give the total as the only cell."""
        return self.counts([tuple(attributes)])[0]

    def counts(self, sets: Sequence[tuple[str, ...]], *, progress: Progress = SILENT) -> list[Sparse]:
        """Exact counts of many marginals, in the order asked for.

        Args:
            sets: The attributes of each marginal; cells are addressed in their order, see `Domain.ravel`.
            progress: Hears how many marginals are done.

        Raises:
            UnknownAttribute: A name is not in the domain.
            BadWorkload: A marginal has more than 2^63 cells.
        """
        selects = [f"{self._cell(names)} c, count(*) k from codes group by c" for names in sets]
        counted: list[Sparse] = []
        progress.stage("counting marginals", len(selects))
        while len(counted) < len(selects):
            batch = selects[len(counted) : len(counted) + MARGINALS_PER_STATEMENT]
            counted += self._count_batch(batch)
            progress.step(len(counted))
        return counted

    def codes(self) -> NDArray[np.int64]:
        """All rows as codes, rows x attributes, in no particular order."""
        columns = self._fetch("select * from codes").values()
        return np.column_stack([column.astype(np.int64) for column in columns])

    def _cell(self, names: Sequence[str]) -> str:
        """SQL text of the cell index of a row, by Horner's rule."""
        marginal = self.domain.project(names)
        marginal.require_addressable()
        cell = "0::bigint"
        for name, size in zip(marginal.attributes, marginal.sizes, strict=True):
            cell = f"({cell} * {size} + c{self.domain.index(name)}::bigint)"
        return cell

    def _count_batch(self, selects: Sequence[str]) -> list[Sparse]:
        """Run some group-bys as one statement and take its result apart again."""
        statement = " union all ".join(f"select {place} m, {text}" for place, text in enumerate(selects))
        found = self._fetch(statement)
        order = np.lexsort((found["c"], found["m"]))
        marginal, cells, values = (found[key][order] for key in ("m", "c", "k"))
        ends = np.searchsorted(marginal, np.arange(1, len(selects)))
        return [Sparse(*pair) for pair in zip(np.split(cells, ends), np.split(values, ends), strict=True)]

    def _fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """Columns of a result; every call has its own cursor, so threads may share a table."""
        return self._engine.cursor().execute(query).fetchnumpy()


def read(source: Any, *, schema: SchemaSource | Schema, table: str | None = None) -> Table:
    """Read private rows and code them by a public schema.

    Args:
        source: Path of a .csv, .tsv (also .gz), .parquet or DuckDB file; a pandas, polars or Arrow table; or
            any Ibis table, whose own engine then does the coding. Sources are never modified.
        schema: Public, see `Schema.load`. Columns it does not name are ignored.
        table: Which table of a DuckDB file; not needed if it has only one.

    Raises:
        BadSchema: The schema is not understood.
        BadData: The source cannot be read, lacks a column, or has rows outside the schema. The text counts
            such rows and never shows one.
    """
    import duckdb  # slow to import, like Ibis and Arrow behind `open_source`

    from discreet.data.source import open_source, veiled

    known = Schema.load(schema)
    origin = open_source(source, table=table)
    numbered = Schema(tuple(replace(one, name=f"c{place}") for place, one in enumerate(known)))
    picked = origin.pick(known.domain.attributes)
    tally = np.zeros((2, len(known)), dtype=np.int64)
    engine = duckdb.connect()

    def copy() -> None:
        batches = origin.run(encode(picked, numbered))
        engine.register("batches", _compact(batches, known.domain, tally))
        engine.execute("create table codes as select * from batches")
        engine.unregister("batches")

    veiled(
        copy,
        "The rows cannot be read. In a text file every row needs as many cells as the header, and all lines must end "
        "alike; or the engine lacks a function that this needs.",
    )
    _refuse_marked(known, tally)
    return Table(known, engine)


def _compact(batches: pa.RecordBatchReader, domain: Domain, tally: NDArray[np.int64]) -> pa.RecordBatchReader:
    """Pass batches on in the smallest types; `tally` adds up the rows marked as outside and as missing."""
    import pyarrow as pa

    from discreet.data.reading import MISSING, OUTSIDE

    types = [np.min_scalar_type(size - 1) for size in domain.sizes]
    layout = pa.schema([(f"c{place}", pa.from_numpy_dtype(kind)) for place, kind in enumerate(types)])

    def passed() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            tally[:] += [[np.count_nonzero(codes == mark) for codes in columns] for mark in (OUTSIDE, MISSING)]
            smaller = [codes.astype(kind) for codes, kind in zip(columns, types, strict=True)]
            yield pa.record_batch([pa.array(codes) for codes in smaller], schema=layout)

    return pa.RecordBatchReader.from_batches(layout, passed())


def _refuse_marked(schema: Schema, tally: NDArray[np.int64]) -> None:
    """Say how many rows do not fit the schema, by attribute, and nothing else about them."""
    lines = []
    for attribute, outside, missing in zip(schema, *tally, strict=True):
        parts = [f"{_rows(outside)} outside the schema"] if outside else []
        parts += [f"{_rows(missing)} missing"] if missing else []
        lines += [f"  {attribute.name}: {', '.join(parts)}"] if parts else []
    if lines:
        raise BadData(
            "Some rows do not fit the schema.\n" + "\n".join(lines) + "\n"
            'Mend the rows, or widen the schema: "outside": "other" (or "clip", for numbers and dates) takes '
            'in values outside, "missing": true takes in missing ones.'
        )


def _rows(number: int) -> str:
    return f"{number:,} row" if number == 1 else f"{number:,} rows"
