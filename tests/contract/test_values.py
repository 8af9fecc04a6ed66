"""Values on their way through every mechanism: what comes back has the schema's types, bounds and missing cells."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from discreet.data.table import Table, read
from discreet.errors import BadRelease
from discreet.mechanisms.catalogue import catalogue
from discreet.publish.make import release
from discreet.publish.release import Release
from tests.contract.test_mechanisms import EVERY, FAST

SCHEMA: dict[str, Any] = {
    "attributes": [
        {"name": "age", "type": "integer", "min": 18, "max": 65, "width": 20},
        {"name": "children", "type": "integer", "min": 0, "max": 2, "missing": ["?"]},
        {"name": "income", "type": "numeric", "edges": [-1.5, 0, 10, 20.25], "missing": True},
        {"name": "town", "type": "categorical", "values": ["Ulm", "Bonn"], "outside": "other", "missing": True},
        {"name": "seen", "type": "date", "start": "2020-02-15", "end": "2020-08-20", "period": "quarter"},
    ]
}
KINDS: dict[str, tuple[pa.DataType, Callable[[Any], bool]]] = {
    "age": (pa.int64(), lambda x: 18 <= x <= 65),
    "children": (pa.int64(), lambda x: 0 <= x <= 2),
    "income": (pa.float64(), lambda x: -1.5 <= x <= 20.25),
    "town": (pa.string(), lambda x: x in ("Ulm", "Bonn", "other")),
    "seen": (pa.date32(), lambda x: date(2020, 2, 15) <= x <= date(2020, 8, 20)),
}
LACKING = {"children": 0.2, "income": 0.3, "town": 0.2}
"""Columns with missing values, and how many of their cells are."""

WORKLOAD = "age, income; children, town; income, town; town, seen"
FEWER: dict[str, dict[str, Any]] = {name: {"rounds": 2, "per_round": 1} for name in ("gem", "gem-pub")}


def rich_table(rows: int, *, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 66, rows)
    values: dict[str, Any] = {
        "age": age,
        "children": rng.integers(0, 3, rows),
        "income": np.where(age < 30, -1.5, rng.uniform(0, 20.25, rows)),
        "town": rng.choice(["Ulm", "Bonn", "Rome", "Oslo"], rows),
        "seen": np.datetime64("2020-02-15") + rng.integers(0, 188, rows),
    }
    gone = {name: rng.random(rows) < LACKING.get(name, 0) for name in values}
    return read(pa.table({name: pa.array(values[name], mask=gone[name]) for name in values}), schema=SCHEMA)


@pytest.fixture(scope="module")
def table() -> Table:
    return rich_table(1000, seed=0)


@pytest.fixture(scope="module")
def public() -> Table:
    return rich_table(300, seed=9)


def make(which: str, table: Table, public: Table, out: Path) -> Release:
    name, settings = EVERY[which]
    more = {"public": public} if catalogue()[name].public != "no" else {}
    return release(
        table, WORKLOAD, mechanism=name, epsilon=20.0, seed=1, out=out, **{**settings, **FEWER.get(name, {}), **more}
    )


@pytest.mark.parametrize("which", [*FAST, "rap rounded"])
def test_values_come_back_as_the_schema_has_them(which: str, table: Table, public: Table, tmp_path: Path) -> None:
    made = make(which, table, public, tmp_path / "out")
    if made.codes is None:
        require_answers(made, table)
    else:
        require_rows(made, made.codes, tmp_path)


def require_rows(made: Release, codes: NDArray[np.int64], folder: Path) -> None:
    written, shown = pq.read_table(folder / "out" / "synthetic.parquet"), made.rows(seed=2)
    for rows in (written, shown, made.rows(70, seed=3)):
        require_fit(rows)
    for rows in (written, shown):
        for attribute, column in zip(made.schema, codes.T, strict=True):
            missing = [cell is None for cell in rows[attribute.name].to_pylist()]
            assert missing == [code == attribute.missing_code for code in column]
    pa.csv.write_csv(written, folder / "rows.csv")
    for source in (shown, folder / "out" / "synthetic.parquet", folder / "rows.csv"):
        assert sorted(read(source, schema=SCHEMA).codes().tolist()) == sorted(codes.tolist())
    for name in LACKING:
        share = written[name].null_count / len(written)
        assert 0 < share < 1
        assert made.answer(f"{name}=missing") == pytest.approx(share, abs=0.08)


def require_fit(rows: pa.Table) -> None:
    assert rows.column_names == list(KINDS)
    for name, (kind, allowed) in KINDS.items():
        assert rows[name].type == kind, name
        assert rows[name].null_count == 0 or name in LACKING, name
        assert all(allowed(value) for value in rows[name].to_pylist() if value is not None), name


def require_answers(made: Release, table: Table) -> None:
    with pytest.raises(BadRelease, match="publishes answers only"):
        made.rows()
    for name in LACKING:
        missing = table.codes()[:, made.domain.index(name)] == made.schema[name].missing_code
        truth = 0 if made.mechanism == "all-zero" else missing.mean()
        assert made.answer(f"{name}=missing") == pytest.approx(truth, abs=0.03)
