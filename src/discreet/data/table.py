"""Table: coded rows over a Domain; the only private type."""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.data import scratch as scratches
from discreet.data.domain import Domain
from discreet.data.encode import encode
from discreet.data.engine import Engine, Marginal
from discreet.data.held import Held
from discreet.data.schema import Schema
from discreet.data.schema import Source as SchemaSource
from discreet.data.shelf import BYTES_PER_CELL, Shelf
from discreet.data.sparse import Sparse
from discreet.data.stored import Stored
from discreet.errors import BadData
from discreet.progress import SILENT, Progress

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from discreet.data.source import Source

MARGINALS_PER_PASS = 26
"""Several group-bys in one statement share an engine's threads; more than this gains nothing, and long statements
break parsers."""

MEMORY = "2GB"
"""What reading and counting may use, unless told otherwise."""

BYTES_PER_HELD_ROW = 1024
"""Tables up to `memory` / this many rows are held as arrays; above, sorting them is slower than a database."""

BYTES_PER_HELD_CODE = 16
"""The same for tables of many attributes: codes arrive in wider types than they are held in."""

BYTES_PER_THREAD = 2**27
"""Memory that each thread of a reader may need: one group of rows of a Parquet file, or parts of a text."""


@dataclass(frozen=True, repr=False, eq=False)
class Table:
    """Private rows, held as codes by an engine: arrays, a file of our own, or the database they came from.

    Only the Curator, which charges for it, and evaluation on the owner's side may call `rows`, `count`,
    `counts` and `codes`: their results are exact. `schema` and `domain` are public, and so is the text of a
    table. What reading and counting put on disk is removed when the table is dropped or closed.
    """

    schema: Schema
    _engine: Engine = field(repr=False)
    _shelf: Shelf = field(repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, _close, self._engine, self._shelf)  # also runs when the program ends

    def __repr__(self) -> str:
        return f"Table({self.domain!r})"

    @property
    def domain(self) -> Domain:
        """Attribute names and sizes. Public."""
        return self.schema.domain

    def rows(self) -> int:
        """Exact number of rows. Private under add/remove neighbours."""
        return self._engine.rows()

    def count(self, attributes: Sequence[str]) -> Sparse:
        """Exact counts of one marginal; no attributes give the total as the only cell."""
        return self.counts([tuple(attributes)])[0]

    def counts(self, sets: Sequence[tuple[str, ...]], *, progress: Progress = SILENT) -> list[Sparse]:
        """Exact counts of many marginals, in the order asked for.

        They are counted in passes that bound memory. What exceeds a quarter of the memory given to `read` is kept in
        private files, and the arrays then are views of those.

        Args:
            sets: The attributes of each marginal; cells are addressed in their order, see `Domain.ravel`.
            progress: Hears how many marginals are done.

        Raises:
            UnknownAttribute: A name is not in the domain.
            BadWorkload: A marginal has more than 2^63 cells.
            BadData: The database went away, the table changed, or the disk is full.
        """
        marginals = {names: self._marginal(names) for names in map(tuple, sets)}
        counted = {names: found for names in marginals if (found := self._shelf.get(names)) is not None}
        progress.stage("counting marginals", len(marginals))
        if counted:
            progress.step(len(counted))
        rest = [names for names in marginals if names not in counted]
        rows = self.rows() if rest else 0
        with self._shelf.counting():
            for batch, cells in self._passes(rest, rows):
                stretches = self._engine.count([marginals[names] for names in batch])
                counted.update(zip(batch, self._shelf.add(batch, stretches, rows=rows, cells=cells), strict=True))
                progress.step(len(counted))
        return [counted[tuple(names)] for names in sets]

    def codes(self) -> NDArray[np.int64]:
        """All rows as codes, rows x attributes, in no particular order."""
        return self._engine.codes()

    def close(self) -> None:
        """Let go of the engine and remove what is on disk; counts that were handed out stay readable."""
        _close(self._engine, self._shelf)

    def _marginal(self, names: Sequence[str]) -> Marginal:
        marginal = self.domain.project(names)
        marginal.require_addressable()
        return tuple((self.domain.index(name), size) for name, size in zip(names, marginal.sizes, strict=True))

    def _passes(self, sets: Sequence[tuple[str, ...]], rows: int) -> Iterator[tuple[list[tuple[str, ...]], int]]:
        """Marginals that are counted together, and how many cells they can have: no more than fit in memory."""
        batch: list[tuple[str, ...]] = []
        cells = 0
        for names in sets:
            most = min(rows, self.domain.project(names).size)
            if batch and (len(batch) == MARGINALS_PER_PASS or (cells + most) * BYTES_PER_CELL > self._shelf.limit):
                yield batch, cells
                batch, cells = [], 0
            batch.append(names)
            cells += most
        if batch:
            yield batch, cells


def read(
    source: Any,
    *,
    schema: SchemaSource | Schema,
    table: str | None = None,
    memory: str | int = MEMORY,
    scratch: str | os.PathLike[str] | None = None,
    part: bool = False,
) -> Table:
    """Read private rows and code them by a public schema.

    Args:
        source: Path of a .csv, .tsv (also .gz), .parquet or DuckDB file; a `duckdb://`, `postgres://` or `spark://`
            address; a pandas, polars or Arrow table; or any Ibis table, whose own engine then does the coding.
            Sources are never modified. Databases count for themselves; other rows are copied, as codes.
        schema: Public, see `Schema.load`. Columns it does not name are ignored.
        table: Which table of a database; not needed if it has only one.
        memory: How much reading and counting may use, such as "2GB", or a number of bytes. Larger tables and larger
            counts go to private files.
        scratch: Folder for those files, and for counts that a later run can go on with if this one is interrupted;
            the system's temporary folder, and no such counts, by default.
        part: Leave out attributes of the schema that the source lacks, at least one remaining: for public tables.

    Raises:
        BadSchema: The schema is not understood.
        BadSetting: `memory` is no size, or nothing can be written at `scratch`.
        BadData: The source cannot be read, lacks a column, or has rows outside the schema. The text counts
            such rows and never shows one.
    """
    from discreet.data.source import open_source  # slow to import, with Ibis and Arrow behind it

    known = Schema.load(schema)
    limit = _check.size("memory", memory)
    place = None if scratch is None else Path(scratch)
    origin = open_source(source, table=table)
    before = _state(origin.path)
    try:
        if part and any(name in origin.columns for name in known.domain):
            known = known.only(origin.columns)
        engine = _engine(origin, known, memory=limit, place=place)
    except BaseException:
        origin.close()
        raise
    try:
        if _state(origin.path) != before:
            raise BadData(f"{origin.path} changed while it was read; read it when nobody writes to it, or copy it.")
        shelf = _shelf(origin, known, engine, limit=limit // 4, place=place)
    except BaseException:
        engine.close()
        raise
    return Table(known, engine, shelf)


def _engine(origin: Source, known: Schema, *, memory: int, place: Path | None) -> Engine:
    """The codes of the rows, where they are best counted."""
    from discreet.data.reading import MISSING, OUTSIDE
    from discreet.data.source import veiled

    numbered = Schema(tuple(replace(one, name=f"c{place}") for place, one in enumerate(known)))
    coded = encode(origin.pick(known.domain.attributes), numbered, lenient=origin.is_lenient)
    if origin.is_database:
        from discreet.data.pushed import Pushed

        pushed = Pushed(origin, coded, known.domain.sizes)
        try:
            _refuse_marked(known, pushed.marked((OUTSIDE, MISSING)))
        except BaseException:
            pushed.close()
            raise
        return pushed
    tally = np.zeros((2, len(known)), dtype=np.int64)
    engine = veiled(
        lambda: _copy(origin, coded, known.domain, tally, memory, place),
        "The rows cannot be read. In a text file every row needs as many cells as the header, and all lines must end "
        "alike; or the engine lacks a function that this needs.",
    )
    try:
        _refuse_marked(known, tally)
    except BaseException:
        engine.close()
        raise
    return engine


def _copy(
    origin: Source, coded: ir.Table, domain: Domain, tally: NDArray[np.int64], memory: int, place: Path | None
) -> Engine:
    """Codes as arrays, or in a file of our own if there are many."""

    if origin.engine is not None and origin.path is not None:  # a connection of ours, which spills nothing anywhere
        threads = max(1, min(os.cpu_count() or 1, memory // 2 // BYTES_PER_THREAD))
        limits = f"memory_limit = '{memory // 2 >> 10}KiB'", f"threads = {threads}"
        for setting in (*limits, "preserve_insertion_order = false", "temp_directory = ''"):
            origin.engine.execute(f"set {setting}")
    layout, batches = _compact(origin.run(coded), domain, tally)
    taken, rows = [], 0
    for batch in batches:
        taken.append(batch)
        rows += len(batch)
        if rows > memory // max(BYTES_PER_HELD_ROW, BYTES_PER_HELD_CODE * len(domain)):
            return _store(chain(taken, batches), layout, memory // 2, place)
    return Held.of(taken, layout)


def _store(batches: Iterator[pa.RecordBatch], layout: pa.Schema, memory: int, place: Path | None) -> Stored:
    """Codes in a file of our own; an error of their source is told apart from one of the file."""
    import pyarrow as pa

    errors = []

    def passed() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            errors.append(type(error))
            raise

    folder = scratches.make(place)
    try:
        return Stored(pa.RecordBatchReader.from_batches(layout, passed()), folder=folder, memory=memory)
    except BaseException:
        folder.close()
        if errors:
            raise errors[0] from None
        raise


def _compact(
    batches: pa.RecordBatchReader, domain: Domain, tally: NDArray[np.int64]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
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

    return layout, passed()


def _shelf(origin: Source, known: Schema, engine: Engine, *, limit: int, place: Path | None) -> Shelf:
    """Where counts go: to go on with those of an earlier run, the table must be the same."""
    if place is None:
        return Shelf(limit)
    rows, digest = engine.rows(), engine.digest()
    identity = {"source": dict(origin.identity) or [rows, digest], "schema": known.to_json()["attributes"]}
    name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    return Shelf.lasting_at(scratches.resume(place / f"discreet-counts-{name}"), limit=limit, rows=rows, digest=digest)


def _state(path: Path | None) -> tuple[int, int] | None:
    """What changes when a file is written to."""
    found = None if path is None else path.stat()
    return None if found is None else (found.st_size, found.st_mtime_ns)


def _close(engine: Engine, shelf: Shelf) -> None:
    engine.close()
    shelf.close()


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
