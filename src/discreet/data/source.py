"""Where rows come from: files, frames and engines, all seen as one Ibis table with numbered columns.

Errors of the engines may quote rows, so none of them is passed on: `veiled` replaces them by a text of ours.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.data.shown import HIDDEN, parts, shown
from discreet.errors import BadData, BadSetting, DiscreetError

Result = TypeVar("Result")

DELIMITERS = {".csv": ",", ".tsv": "\t"}
DATABASES = (".duckdb", ".db")
IN_PROCESS = ("datafusion", "polars", "sqlite")
"""Engines of Ibis without a server, besides DuckDB; their rows are taken over as a frame."""

STRICT = ("postgres", "risingwave")
"""Engines of Ibis whose only cast stops at what it cannot convert."""

_BUFFER = 2**23
"""Bytes of a text that are read at once; each thread holds several such parts. No line may be longer."""

_STARVED = "Reading needs more memory than it was given: give more with --memory (memory= in Python)."

_BATCH = 2**20
"""Values in one batch of a result."""

READABLE = ".csv, .tsv (also .gz), .parquet, .duckdb or .db"


def veiled(work: Callable[[], Result], complaint: str, *, starved: str = _STARVED) -> Result:
    """Do some work; if it fails, raise BadData with a text of ours and no trace of the original error.

    The new error is raised outside the handler, so that not even its `__context__` holds the old one.
    """
    try:
        return work()
    except DiscreetError:
        raise
    except Exception as error:
        kind = type(error).__name__
    if kind == "OutOfMemoryException":
        raise BadData(starved)
    raise BadData(f"{complaint} ({kind}; details are withheld because they may quote rows.)")


@dataclass(frozen=True)
class Source:
    """Rows of some engine.

    Attributes:
        columns: Names of the columns, distinct.
        rows: The columns as an Ibis table, called c0, c1, ...: engines differ in which names they can hold.
        engine: The DuckDB connection that reads `rows`, or None if Ibis has to ask another engine.
        identity: What tells this table from others, without anything secret; empty for frames.
        path: The file behind it, if there is one.
        close: Lets go of the connection, where it is ours.
    """

    columns: tuple[str, ...]
    rows: ir.Table
    engine: duckdb.DuckDBPyConnection | None
    identity: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    close: Callable[[], object] = lambda: None

    @property
    def is_database(self) -> bool:
        """Whether the rows live in a database that can count them, not in this process."""
        return self.engine is None

    @property
    def is_lenient(self) -> bool:
        """Whether the engine has a cast that gives null where it fails."""
        return self.engine is not None or self.rows.get_backend().name not in STRICT

    def __post_init__(self) -> None:
        twice = [place for place, name in enumerate(self.columns) if name in self.columns[:place]]
        if twice:
            places = ", ".join(str(place + 1) for place in twice)
            raise BadData(f"Column names must be distinct; column {places} repeats an earlier one. Rename it.")

    def pick(self, names: Sequence[str]) -> ir.Table:
        """Some columns, numbered c0, c1, ... in the order asked for."""
        lacking = [name for name in names if name not in self.columns]
        if lacking:
            raise BadData(
                f"{self.path or 'The table'} has no column {', '.join(map(repr, lacking))}, which the schema "
                "describes. Check the header's spelling, or take the attribute out of the schema."
            )
        places = [f"c{self.columns.index(name)}" for name in names]
        renamed = zip(_numbered(len(names)), places, strict=True)
        return self.rows.select(**{new: self.rows[old] for new, old in renamed})

    def run(self, query: ir.Table) -> pa.RecordBatchReader:
        """Start a query on these rows and stream its result."""
        with selects_kept_apart():
            if self.engine is None:
                return query.to_pyarrow_batches()  # each engine's own way; small results, or an engine in this process
            statement = ibis.to_sql(query, dialect="duckdb")
        for lookup in query.op().find(ops.InMemoryTable):
            self.engine.register(lookup.name, lookup.data.to_pyarrow(lookup.schema))
        return stream(self.engine, statement)


def open_source(source: Any, *, table: str | None = None) -> Source:
    """Open a file, an address, a frame, an Arrow table or an Ibis table. Nothing is modified, nothing is copied yet."""
    if isinstance(source, ir.Table):
        return from_ibis(source)
    if isinstance(source, str) and parts(source):
        from discreet.data.connect import open_address  # which opens sources

        return open_address(source, table)
    if isinstance(source, str | os.PathLike):
        return open_file(Path(source), table)
    if not hasattr(source, "__arrow_c_stream__") and hasattr(source, "collect"):
        source = veiled(source.collect, "The lazy frame cannot be computed.")
    if not hasattr(source, "__arrow_c_stream__"):
        kind = type(source).__name__
        raise BadData(f"A table can be a path, a pandas, polars, Arrow or Ibis table, not {kind}.")
    if hasattr(source, "set_axis"):  # pandas, whose names may be of any type and may be repeated
        names = [str(name) for name in source.columns]
        return _open_frame(source.set_axis(_numbered(len(names)), axis="columns"), names)
    return _open_frame(source)


def from_ibis(
    source: ir.Table,
    *,
    identity: Mapping[str, Any] | None = None,
    path: Path | None = None,
    close: Callable[[], object] = lambda: None,
) -> Source:
    """An Ibis table. DuckDB is spoken to directly: Ibis 12 cannot stream from DuckDB 2."""
    backend = source.get_backend()
    if backend.name in IN_PROCESS:
        return _open_frame(veiled(source.to_pyarrow, "The table cannot be computed."))
    renamed = zip(_numbered(len(source.columns)), source.columns, strict=True)
    rows = source.select(**{new: source[old] for new, old in renamed})
    engine = backend.con if backend.name == "duckdb" else None
    return Source(tuple(source.columns), rows, engine, identity or {}, path, close)


def _open_frame(source: Any, names: Sequence[str] | None = None) -> Source:
    """Anything that speaks Arrow's C stream interface."""
    complaint = "The frame cannot be read. Every column must have one type; turn mixed columns into text."
    frame = veiled(lambda: pa.table(source), complaint)
    engine = duckdb.connect()
    engine.register("source", frame.rename_columns(_numbered(frame.num_columns)))
    return _embedded(engine, names or frame.column_names, complaint)


def open_file(path: Path, table: str | None, *, database: bool = False) -> Source:
    """A file, by its suffix, or by any name if it is known to be a DuckDB database."""
    identity = {"path": str(path.resolve()), "table": table}
    return replace(_open_file(path, table, database), identity=identity, path=path)


def _open_file(path: Path, table: str | None, database: bool) -> Source:
    if not path.is_file():
        if path.is_dir():
            raise BadData(f"{path} is a folder; give a {READABLE} file.")
        name = shown(str(path))
        hint = f"give a {READABLE} file" + (
            ", or an address such as postgres://user@host/name." if name == HIDDEN else "."
        )
        raise BadData(f"{name} does not exist; {hint}")
    if not os.access(path, os.R_OK):
        raise BadData(f"{path} may not be read by this user; ask for permission or copy it.")
    if table is not None and not database and path.suffix.lower() not in DATABASES:
        raise BadSetting(f"--table names a table of a database, which {path} is not: leave it out.")
    suffix = path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if suffix in DELIMITERS and not database:
        return _open_text(path, DELIMITERS[suffix])
    if path.suffix.lower() == ".parquet" and not database:
        return _open_parquet(path)
    if database or path.suffix.lower() in DATABASES:
        return _open_database(path, table)
    raise BadData(f"{path} has an unknown suffix; give a {READABLE} file.")


def _open_text(path: Path, delimiter: str) -> Source:
    """A text file: every column as text, nothing guessed, so that each row is judged by the schema alone."""
    complaint = f"{path} is not a UTF-8 text file whose rows all have as many cells as its header."
    names = veiled(lambda: _header(path, delimiter), complaint)
    if not names:
        raise BadData(f"{path} is empty; its first line must name the columns.")
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in _numbered(len(names)))
    zipped = "gzip" if path.suffix.lower() == ".gz" else "none"
    call = (
        f"read_csv({_literal(path)}, auto_detect=false, header=true, compression='{zipped}', "
        f"delim='{delimiter}', quote='\"', escape='\"', buffer_size={_BUFFER}, columns={{{columns}}})"
    )
    return _scan(call, names, complaint)


def _header(path: Path, delimiter: str) -> list[str]:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        return [name.strip() for name in next(csv.reader(file, delimiter=delimiter), [])]


def _open_parquet(path: Path) -> Source:
    complaint = f"{path} is not a sound Parquet file."
    names = veiled(lambda: pq.read_schema(path).names, complaint)
    return _scan(f"read_parquet({_literal(path)})", names, complaint)


def _open_database(path: Path, table: str | None) -> Source:
    complaint = f"{path} cannot be opened as a DuckDB file; if another program has it open, close it there."
    engine = duckdb.connect()
    veiled(lambda: engine.execute(f"attach {_quoted(path)} as origin (type duckdb, read_only)"), complaint)
    known = [name for (name,) in engine.execute(_TABLES).fetchall()]
    if table is None and len(known) == 1:
        table = known[0]
    if table is None or table not in known:
        asked = "Say which table to read" if table is None else f"There is no table {table!r}"
        raise BadData(f"{asked}; {path} has: {', '.join(known) or 'none'}.")
    place = f"origin.{_identifier(table)}"
    names = [row[0] for row in engine.execute(f"describe {place}").fetchall()]
    return _scan(place, names, complaint, engine=engine)


_TABLES = """
select table_name from duckdb_tables() where database_name = 'origin' and schema_name = 'main'
union all
select view_name from duckdb_views() where database_name = 'origin' and schema_name = 'main' and not internal
"""


def _scan(
    place: str, names: Sequence[str], complaint: str, *, engine: duckdb.DuckDBPyConnection | None = None
) -> Source:
    """Rows that DuckDB finds at some place, under numbered names."""
    engine = engine or duckdb.connect()
    aliases = ", ".join(_numbered(len(names)))
    veiled(lambda: engine.execute(f"create view source as select * from {place} t({aliases})"), complaint)
    return _embedded(engine, names, complaint)


def _embedded(engine: duckdb.DuckDBPyConnection, names: Sequence[str], complaint: str) -> Source:
    arrow = veiled(lambda: stream(engine, "select * from source limit 0").schema, complaint)
    with suppress(duckdb.Error):
        engine.execute("set TimeZone = 'UTC'")
    return Source(tuple(names), ibis.table(ibis.Schema.from_pyarrow(arrow), name="source"), engine)


@contextmanager
def selects_kept_apart() -> Iterator[None]:
    """Let Ibis keep nested selections: fused into one, they would repeat inner expressions many times."""
    before = ibis.options.sql.fuse_selects
    ibis.options.sql.fuse_selects = False
    try:
        yield
    finally:
        ibis.options.sql.fuse_selects = before


def stream(engine: duckdb.DuckDBPyConnection, query: str) -> pa.RecordBatchReader:
    """The result of a query in batches of some ten megabytes, in a way that old and new versions of DuckDB have."""
    found = engine.sql(query)
    read = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader  # the latter before DuckDB 2
    return read(max(1, _BATCH // len(found.columns)))


def _numbered(length: int) -> list[str]:
    return [f"c{place}" for place in range(length)]


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _literal(path: Path) -> str:
    """A path that the engine must not take for a pattern: `people[1].csv` is one file."""
    return _quoted(Path(re.sub(r"([*?\[])", r"[\1]", str(path))))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
