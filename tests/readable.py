"""A small real table, read through the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from discreet.data.table import Table, read

SCHEMA: dict[str, Any] = {
    "attributes": [
        {"name": "age", "type": "integer", "min": 0, "max": 99, "width": 20, "outside": "clip"},
        {"name": "sex", "type": "categorical", "values": ["Female", "Male"]},
        {"name": "income", "type": "numeric", "edges": [0, 10, 20.5, 100], "missing": True},
        {"name": "born", "type": "date", "start": "2000-01-01", "end": "2003-12-31", "period": "year"},
    ]
}


def small_rows(rows: int, *, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    sex = np.where(rng.random(rows) < 0.3 + 0.4 * (age > 50), "Female", "Male")
    income = np.where(age < 20, 5.0, rng.gamma(2.0, 10.0, rows).clip(0, 99))
    missing = rng.random(rows) < 0.1
    born = np.datetime64("2000-01-01") + rng.integers(0, 1461, rows)
    return pa.table(
        {
            "age": age,
            "sex": sex,
            "income": pa.array(income, mask=missing),
            "born": pa.array(born.astype("datetime64[D]")),
        }
    )


def small_table(rows: int, *, seed: int = 0) -> Table:
    return read(small_rows(rows, seed=seed), schema=SCHEMA)
