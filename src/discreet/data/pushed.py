"""Pushed: codes that stay in the database they came from, which counts them. Rows never leave it, only counts do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from threading import Lock
from typing import Any, TypeVar
from uuid import uuid4

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.data.attended import attended
from discreet.data.engine import BASE, PRIME, Marginal, Portion, split
from discreet.data.source import Source, selects_kept_apart, veiled

Result = TypeVar("Result")

FETCHED_ROWS = 100_000
"""Rows of a result that are fetched at one time, where the database lets us choose."""

GONE = (
    "The database stopped answering, so counting stopped. Nothing was changed there, and what was charged before stays "
    "charged. Run again when it is back; with --scratch DIR (scratch=DIR in Python), what was counted is kept."
)
UNABLE = (
    "The database cannot code the rows. The account needs to be allowed to read the table and to make temporary "
    "tables, and the server needs room for them."
)


class Pushed:
    """An engine for databases: the codes are computed once, into a temporary table there, and counted there.

    Args:
        origin: Where the rows are.
        coded: Their codes, c0, c1, ..., as an expression.
        sizes: Of the attributes.
    """

    def __init__(self, origin: Source, coded: ir.Table, sizes: Sequence[int]) -> None:
        self._origin = origin
        self._backend = origin.rows.get_backend()
        self._is_spark = self._backend.name == "pyspark"
        self._one_at_a_time = Lock()  # a connection serves one thread at a time
        self._name = f"discreet_{uuid4().hex}"
        types = {name: _smallest(size) for name, size in zip(coded.columns, sizes, strict=True)}
        small = coded.select(**{name: coded[name].cast(kind) for name, kind in types.items()})
        self._codes: ir.Table = veiled(lambda: self._keep(small), UNABLE)
        self._rows: int | None = None

    def rows(self) -> int:
        """See `Engine`; asked for once, since the codes do not change."""
        if self._rows is None:
            self._rows = self._number(self._codes.count())
        return self._rows

    def count(self, marginals: Sequence[Marginal]) -> Iterator[Portion]:
        """See `Engine`: one statement over the temporary table."""
        counted = self._exploded(marginals) if self._is_spark else self._united(marginals)
        with self._one_at_a_time:
            found = iter(self._veiled(lambda: self._fetch(counted.order_by(["m", "c"]))))
            while (batch := self._veiled(lambda: next(found, None))) is not None:
                yield from split(batch)

    def _united(self, marginals: Sequence[Marginal]) -> ir.Table:
        """A group-by for each marginal: in PostgreSQL, faster than grouping sets."""
        parts = [
            self._codes.select(m=ibis.literal(number, "int32"), c=self._cell(marginal))
            .group_by(["m", "c"])
            .aggregate(k=lambda table: table.count())
            for number, marginal in enumerate(marginals)
        ]
        return ibis.union(*parts) if len(parts) > 1 else parts[0]

    def _exploded(self, marginals: Sequence[Marginal]) -> ir.Table:
        """One group-by over the cells of all marginals, one after the other for each row: one exchange in Spark."""
        cells = [
            ibis.struct({"m": ibis.literal(number, "int32"), "c": self._cell(marginal)})
            for number, marginal in enumerate(marginals)
        ]
        pairs = self._codes.select(p=ibis.array(cells).unnest())
        return pairs.select(m=pairs.p.m, c=pairs.p.c).group_by(["m", "c"]).aggregate(k=lambda table: table.count())

    def marked(self, marks: Sequence[int]) -> NDArray[np.int64]:
        """How many rows carry each of some codes: marks x attributes."""
        asked = {
            f"{name}_{place}": (self._codes[name] == mark).sum()
            for place, mark in enumerate(marks)
            for name in self._codes.columns
        }
        found = self._row(self._codes.aggregate(**asked))
        counts = [int(found[name] or 0) for name in asked]
        return np.array(counts, dtype=np.int64).reshape(len(marks), -1)

    def digest(self) -> int:
        """See `Engine`."""
        start = ibis.literal(0, "int64")
        mixed = reduce(lambda sofar, name: (sofar * BASE + self._wide(name)) % PRIME, self._codes.columns, start)
        squares = self._codes.select(h=mixed)
        return self._number((squares.h * squares.h % PRIME).sum())

    def codes(self) -> NDArray[np.int64]:
        """See `Engine`. This is the only call that moves rows: for evaluation on small tables."""
        with self._one_at_a_time:
            batches = self._veiled(lambda: list(self._fetch(self._codes)))
        columns = [
            np.concatenate([np.zeros(0, dtype=np.int64), *(np.asarray(batch.column(name)) for batch in batches)])
            for name in self._codes.columns
        ]
        return np.column_stack(columns).astype(np.int64)

    def close(self) -> None:
        """See `Engine`."""
        with suppress(Exception):
            if self._is_spark:
                self._backend._session.catalog.uncacheTable(self._name)
                self._backend._session.catalog.dropTempView(self._name)
            else:
                self._backend.drop_table(self._name, force=True)
        with suppress(Exception):
            self._origin.close()

    def _keep(self, coded: ir.Table) -> ir.Table:
        """Compute the codes once, where they are; Spark does so when they are first counted."""
        with selects_kept_apart():
            if not self._is_spark:
                return self._backend.create_table(self._name, coded, temp=True)
            statement = self._backend.compile(coded)
        session = self._backend._session
        for lookup in coded.op().find(ops.InMemoryTable):  # Ibis would hand them over by way of pandas
            session.createDataFrame(lookup.data.to_pyarrow(lookup.schema)).createOrReplaceTempView(lookup.name)
        session.sql(statement).createTempView(self._name)
        session.catalog.cacheTable(self._name)
        return self._backend.table(self._name)

    def _cell(self, marginal: Marginal) -> ir.IntegerValue:
        """The cell index of a row, by Horner's rule."""
        start = ibis.literal(0, "int64")
        return reduce(lambda sofar, column: sofar * column[1] + self._wide(f"c{column[0]}"), marginal, start)

    def _wide(self, name: str) -> ir.IntegerColumn:
        return self._codes[name].cast("int64")

    def _fetch(self, query: ir.Table) -> Iterator[pa.RecordBatch]:
        """Run a query and stream its result; Spark hands it over whole."""
        if self._is_spark:
            with attended(self._backend._session):
                return iter(self._backend._session.sql(self._backend.compile(query)).toArrow().to_batches())
        return iter(self._backend.to_pyarrow_batches(query, chunk_size=FETCHED_ROWS))

    def _row(self, query: ir.Table) -> dict[str, Any]:
        with self._one_at_a_time:
            batches = self._veiled(lambda: list(self._fetch(query)))
        (found,) = pa.Table.from_batches(batches).to_pylist()
        return dict(found)

    def _number(self, value: Any) -> int:
        return int(self._row(value.name("k").as_table())["k"] or 0)

    def _veiled(self, work: Callable[[], Result]) -> Result:
        return veiled(work, GONE)


def _smallest(size: int) -> str:
    """The smallest type that every engine has for codes and marks."""
    return next(kind for kind, bits in (("int16", 15), ("int32", 31), ("int64", 63)) if size <= 2**bits)
