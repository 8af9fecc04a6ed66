"""The engines that the contract suite runs on: each holds a frame in its own way and lets `read` have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tests.servers import Postgres, postgres, spark

NAMES = (
    "arrow",
    "pandas",
    "polars",
    "polars, lazy",
    "ibis on polars",
    "csv",
    "parquet",
    "duckdb",
    "ibis on duckdb",
    "codes on disk",
    "postgres",
    "ibis on postgres",
    "spark",
    "ibis on spark",
)

POSTGRES_TYPES = {"string": "text", "int64": "bigint", "double": "double precision", "bool": "boolean",
                  "date32[day]": "date", "timestamp[us]": "timestamp", "decimal128(9, 2)": "numeric(9, 2)"}  # fmt: skip


@dataclass(frozen=True)
class Given:
    """What to hand to `read`, and a way to see whether the rows are still as they were."""

    source: Any
    table: str | None
    state: Callable[[], Any]


class Engines:
    """All of them; servers are started when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()
        self.numbers = count()
        self._postgres: Postgres | None = None
        self._spark: Any = None

    @property
    def postgres(self) -> Postgres:
        if self._postgres is None:
            self._postgres = self.stack.enter_context(postgres())
        return self._postgres

    @property
    def spark(self) -> Any:
        if self._spark is None:
            self._spark = self.stack.enter_context(spark())
        return self._spark

    def give(self, name: str, frame: pa.Table) -> Given:
        match name:
            case "arrow":
                return Given(frame, None, lambda: repr(frame.to_pylist()))
            case "pandas":
                held = frame.to_pandas(integer_object_nulls=False, types_mapper=_nullable)
                return Given(held, None, lambda: repr(held.to_dict()))
            case "polars" | "polars, lazy" | "ibis on polars":
                return _polars(name, frame)
            case "csv" | "parquet" | "codes on disk":
                return self._file(name, frame)
            case "duckdb" | "ibis on duckdb":
                return self._duckdb(name, frame)
        return self._in_postgres(name, frame) if "postgres" in name else self._in_spark(name, frame)

    def _file(self, name: str, frame: pa.Table) -> Given:
        path = self.folder / f"table{next(self.numbers)}.{'csv' if name == 'csv' else 'parquet'}"
        pa.csv.write_csv(frame, path) if name == "csv" else pq.write_table(frame, path)
        return Given(path, None, lambda: (path.read_bytes(), sorted(self.folder.iterdir())))

    def _duckdb(self, name: str, frame: pa.Table) -> Given:
        path = self.folder / f"table{next(self.numbers)}.base"
        with duckdb.connect(path) as database:
            database.register("frame", frame)
            database.execute('create table "the table" as select * from frame')
        if name == "duckdb":
            return Given(f"duckdb://{path}", "the table", path.read_bytes)
        database = ibis.duckdb.connect(path, read_only=True)
        self.stack.callback(database.disconnect)
        return Given(database.table("the table"), None, path.read_bytes)

    def _in_postgres(self, name: str, frame: pa.Table) -> Given:
        table = f"Table {next(self.numbers)}"
        columns = ", ".join(f"{_quoted(one.name)} {POSTGRES_TYPES[str(one.type)]}" for one in frame.schema)
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f'create table "{table}" ({columns})')
            with cursor.copy(f'copy "{table}" from stdin') as copy:
                for row in frame.to_pylist():
                    copy.write_row(list(row.values()))

        def state() -> Any:
            with self.postgres.connect() as connection:
                rows = connection.execute(f'select t::text from "{table}" t order by 1').fetchall()
                tables = "select schemaname, tablename from pg_tables where schemaname <> 'pg_catalog' order by 1, 2"
                return rows, [one for one in connection.execute(tables).fetchall() if not one[0].startswith("pg_temp")]

        if name == "postgres":
            return Given(self.postgres.url, table, state)
        connection = self.postgres.connect()
        self.stack.callback(connection.close)
        return Given(ibis.postgres.from_connection(connection).table(table), None, state)

    def _in_spark(self, name: str, frame: pa.Table) -> Given:
        session = self.spark
        path = self.folder / f"table{next(self.numbers)}.parquet"
        pq.write_table(frame, path)
        if name == "spark":
            return Given(f"spark://local{path}", None, path.read_bytes)
        view = f"view{next(self.numbers)}"
        session.read.parquet(str(path)).createTempView(view)
        rows = ibis.pyspark.connect(session).table(view)
        return Given(rows, None, lambda: session.catalog.tableExists(view))


@contextmanager
def engines(folder: Path) -> Iterator[Engines]:
    """Every engine, stopped at the end."""
    every = Engines(folder)
    with every.stack:
        yield every


def _polars(name: str, frame: pa.Table) -> Given:
    held = pl.DataFrame(frame)
    source = {"polars": held, "polars, lazy": held.lazy()}.get(name)
    if source is None:
        source = ibis.polars.connect({"t": held}).table("t")
    return Given(source, None, lambda: repr(held.rows()))


def _nullable(kind: pa.DataType) -> Any:
    import pandas as pd

    return {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get(kind)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
