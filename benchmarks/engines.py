"""Counting on every engine: time and memory by rows on DuckDB within 2 GB, and the engines beside each other.

Rows are drawn into Parquet files by DuckDB. Each measurement runs in a process of its own, so that its memory is
its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from benchmarks.record import Context, timed

MEMORY = "2GB"
SIDE_BY_SIDE = 10**5

_LEVELS = ["none", "primary", "secondary", "vocational", "bachelor", "master"]
SCHEMA: dict[str, Any] = {
    "attributes": [
        {"name": "region", "type": "categorical", "values": [f"region {number}" for number in range(20)]},
        {"name": "age", "type": "integer", "min": 18, "max": 99, "width": 5},
        {"name": "sex", "type": "categorical", "values": ["female", "male"]},
        {"name": "education", "type": "categorical", "values": _LEVELS},
        {"name": "occupation", "type": "codes", "size": 12},
        {"name": "income", "type": "numeric", "min": 0, "max": 15000, "bins": 20},
        {"name": "hours", "type": "numeric", "edges": [0, 1, 16, 25, 35, 40, 45, 55, 80]},
        {"name": "registered", "type": "date", "start": "2020-01-01", "end": "2024-12-31", "period": "quarter"},
        {"name": "tenure", "type": "codes", "size": 5},
        {"name": "condition", "type": "codes", "size": 9},
    ]
}
_ROWS = """
select 'region ' || (hash(i, 1) % 20)::varchar as region, (18 + hash(i, 2) % 82)::smallint as age,
  ['female', 'male'][1 + (hash(i, 3) % 2)::int] as sex,
  ['none', 'primary', 'secondary', 'vocational', 'bachelor', 'master'][1 + (hash(i, 4) % 6)::int] as education,
  (hash(i, 5) % 12)::smallint as occupation, ((hash(i, 6) % 100000) / 7.0)::double as income,
  (hash(i, 7) % 80)::smallint as hours, date '2020-01-01' + (hash(i, 8) % 1800)::int as registered,
  (hash(i, 9) % 5)::smallint as tenure, (hash(i, 10) % 9)::smallint as condition from range({rows}) t(i)
"""


def run(context: Context) -> None:
    with TemporaryDirectory() as folder:
        by_rows(context, Path(folder))
        side_by_side(context, Path(folder))


def by_rows(context: Context, folder: Path) -> None:
    """All 45 two-way marginals: read, count, memory, and the growth from one size to the next."""
    before = None
    for power in range(5, 9 if context.full else 8):
        path = generate(folder, 10**power)
        found = measured(path, ways=2)
        seconds = found["read"] + found["count"]
        growth = "" if before is None else f", {seconds / before:.1f} times as long as a tenth of the rows"
        print(
            f"10^{power} rows: read {found['read']:.1f} s, count {found['count']:.1f} s, {found['engine']}, "
            f"largest memory {found['peak'] / 1e9:.2f} GB, file {path.stat().st_size / 2**20:,.0f} MB{growth}",
            flush=True,
        )
        context.record("engines by rows", rows=10**power, memory=MEMORY, ways=2, **found)
        before = seconds
        if power > 5:
            path.unlink()


def side_by_side(context: Context, folder: Path) -> None:
    """All 120 three-way marginals of one table on every engine, beside arrays in memory."""
    path = generate(folder, SIDE_BY_SIDE)
    results = {"arrays": measured(path, ways=3), "DuckDB file": measured(path, ways=3, disk=True)}
    from tests.servers import postgres

    with postgres() as server:
        load(server, path)
        results["PostgreSQL"] = measured(server.url, ways=3, table="people")
    results["Spark, local"] = measured(f"spark://local{path}", ways=3)
    for name, found in results.items():
        ratio = found["count"] / results["arrays"]["count"]
        times = f"read {found['read']:6.2f} s  count {found['count']:6.2f} s"
        print(f"{name:14} {times}  {ratio:6.1f} times arrays", flush=True)
        context.record("engines", engine_name=name, rows=SIDE_BY_SIDE, ways=3, **found)
    assert len({found["digest"] for found in results.values()}) == 1, "engines disagree"


def generate(folder: Path, rows: int) -> Path:
    """A Parquet file of that many rows."""
    path = folder / f"rows-{rows}.parquet"
    if not path.is_file():
        with duckdb.connect(config={"memory_limit": MEMORY, "preserve_insertion_order": "false"}) as database:
            database.execute(f"copy ({_ROWS.format(rows=rows)}) to '{path}' (format parquet, compression zstd)")
    return path


def load(server: Any, path: Path) -> None:
    types = ["text", "int", "text", "text", "int", "float8", "int", "date", "int", "int"]
    names = [entry["name"] for entry in SCHEMA["attributes"]]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
    with duckdb.connect() as database:
        rows = database.execute(f"select * from '{path}'").fetchall()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"create table people ({columns})")
        with cursor.copy("copy people from stdin") as copy:
            for row in rows:
                copy.write_row(row)


def measured(source: Path | str, *, ways: int, table: str = "", disk: bool = False) -> dict[str, Any]:
    """One measurement, in a process of its own; the address goes by the environment, which others cannot read."""
    environment = os.environ | {"BENCHMARK_SOURCE": str(source), "BENCHMARK_DISK": "1" if disk else ""}
    command = [sys.executable, "-m", "benchmarks.engines", str(ways), table]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def measure(source: str, *, ways: int, table: str | None) -> dict[str, Any]:
    import discreet.data.connect  # noqa: F401  libraries load before the clock starts
    import discreet.data.table as module

    if os.environ.get("BENCHMARK_DISK"):
        module.BYTES_PER_HELD_ROW = 2**40
    with timed() as reading:
        opened = module.read(source, schema=SCHEMA, table=table, memory=MEMORY)
        opened.rows()
    sets = list(combinations(opened.domain.attributes, ways))
    with timed() as counting:
        counts = opened.counts(sets)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    digest = sha256(b"".join(one.cells.tobytes() + one.values.tobytes() for one in counts)).hexdigest()
    cells = sum(len(one.cells) for one in counts)
    return {"read": reading.seconds, "count": counting.seconds, "peak": peak, "cells": cells, "digest": digest,
            "engine": type(opened._engine).__name__}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(os.environ["BENCHMARK_SOURCE"], ways=int(sys.argv[1]), table=sys.argv[2] or None)))
