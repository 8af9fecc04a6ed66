"""Laws that every engine obeys: the same counts to the last digit, and nothing of the rows in what it says.

The rows are written down with the codes they must get, so the counts that are expected come from no engine at all.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet.data.table as table_module
from discreet.data.domain import Domain
from discreet.data.schema import Schema
from discreet.data.sparse import Sparse
from discreet.data.table import Table, read
from discreet.errors import BadData, BadSetting, BadWorkload, UnknownAttribute
from tests.contract.engines import NAMES, Engines, Given, engines
from tests.servers import PASSWORD

OLD_IBIS = pytest.mark.filterwarnings("ignore:fetch_.* is deprecated:DeprecationWarning:ibis")
CANARY = "canary-7f3a"
LONG = [f"städt {number}" for number in range(150)]
DAYS = {"type": "date", "start": "2020-01-30", "end": "2021-02-02"}

# For each attribute: its type, its entry in the schema, and values with the codes that they must get.
CONTENT: dict[str, tuple[pa.DataType, dict[str, Any], list[tuple[Any, int]]]] = {
    "s\u00e9x 'of' \"it\" `;--": (
        pa.string(),
        {"type": "categorical", "values": ["F", "e\u0301", "\u00e9", "o'b\"r\\;--", "\U0001f600"], "outside": "other"},
        [("F", 0), (" F\t", 0), ("f", 5), ("e\u0301", 1), ("\u00e9", 2), ("o'b\"r\\;--", 3), ("\U0001f600", 4)],
    ),
    "age": (
        pa.int64(),
        {"type": "integer", "min": 10, "max": 29, "width": 5, "outside": "clip", "missing": ["-9"]},
        [(10, 0), (14, 0), (15, 1), (29, 3), (9, 0), (2**62, 3), (-9, 4), (None, 4), (-(2**62), 0)],
    ),
    "income": (
        pa.float64(),
        {"type": "numeric", "edges": [0, 10, 20.5, 99], "outside": "other", "missing": ["-1.5"]},
        [(0.0, 0), (np.nextafter(10.0, 0.0), 0), (10.0, 1), (20.5, 2), (99.0, 2), (99.5, 3), (-1e-9, 3), (-1.5, 4),
         (math.nan, 4), (None, 4), (math.inf, 3), (-math.inf, 3), (1e300, 3)],
    ),
    "rounded": (
        pa.float64(),
        {"type": "integer", "min": -3, "max": 3, "outside": "clip"},
        [(0.5, 4), (1.5, 5), (2.5, 6), (-0.5, 2), (-1.5, 1), (0.49999999999999994, 3), (1e300, 6), (-math.inf, 0)],
    ),
    "price": (
        pa.decimal128(9, 2),
        {"type": "categorical", "values": [1, 2.5], "outside": "other", "missing": True},
        [(Decimal("1.00"), 0), (Decimal("2.50"), 1), (Decimal("3.00"), 2), (None, 3)],
    ),
    "written number": (
        pa.float64(),
        {"type": "categorical", "values": ["1", "2.5", "2.50", "x"], "outside": "other", "missing": ["-7", "-0.25"]},
        [(1.0, 0), (2.5, 1), (3.0, 4), (None, 5), (-7.0, 5), (-0.25, 5)],
    ),
    "flag": (pa.bool_(), {"type": "categorical", "values": [False, True], "missing": True}, [
        (True, 1), (False, 0), (None, 2)]),
    "month": (pa.date32(), DAYS | {"period": "month", "outside": "clip"}, [
        (date(2020, 1, 30), 0), (date(2020, 2, 29), 1), (date(2021, 2, 2), 13), (date(2031, 5, 5), 13),
        (date(1582, 10, 15), 0)]),
    "week": (pa.timestamp("us"), DAYS | {"period": "week", "outside": "other", "missing": True}, [
        (datetime(2020, 2, 2, 23, 59, 59, 999999), 0), (datetime(2020, 2, 3), 1), (datetime(2021, 2, 2, 12), 53),
        (datetime(2021, 2, 3), 54), (datetime(2020, 3, 1), 4), (None, 55)]),
    "day": (pa.string(), DAYS | {"period": "day", "outside": "other", "missing": True}, [
        ("2020-01-30", 0), ("2020-3-1", 31), (" 2020-02-29 10:00:00", 30), ("2020-02-30", 370), ("2021-02-29", 370),
        ("2020-02-01T10:00:00.5Z", 2), ("2021-02-02", 369), ("20200201", 370), ("2020/02/01", 370), ("Feb 1 2020", 370),
        ("today", 370), ("infinity", 370), ("0000-01-01", 370), ("2020-13-01", 370), ("2020-00-10", 370), ("", 371)]),
    "quarter": (pa.date32(), DAYS | {"period": "quarter"}, [
        (date(2020, 3, 31), 0), (date(2020, 4, 1), 1), (date(2021, 1, 1), 4)]),
    "number": (pa.string(), {"type": "integer", "min": 0, "max": 9, "outside": "other", "missing": ["NA"]}, [
        ("3", 3), (" 4.0 ", 4), ("+5", 5), ("6.", 6), (".7e1", 7), ("80E-1", 8), ("x", 10), ("1e400", 10),
        ("-1e400", 10),
        ("1e-400", 0), ("0x1", 10), ("1_0", 10), ("1d", 10), ("3f", 10), ("1,0", 10), ("\uff11", 10), ("3.5", 10),
        ("inf", 10), ("-Infinity", 10), ("9" * 400, 10), ("1e99999", 10), ("--1", 10), ("e1", 10), (".", 10),
        ("NaN", 11), ("NA", 11), ("  ", 11)]),
    "fraction": (pa.string(), {"type": "numeric", "edges": [-1, 0, 0.1, 2], "outside": "clip", "missing": True}, [
        ("0.1", 2), ("0.09999999999999999", 1), ("-1e999", 0), ("1e999", 2), ("Infinity", 2), ("-0.0", 1), ("", 3)]),
    "town": (pa.string(), {"type": "categorical", "values": LONG, "outside": "other", "missing": True},
             [(LONG[0], 0), (LONG[149] + " ", 149), ("nowhere", 150), (None, 151), (LONG[77], 77)]),
    "long numbers": (pa.float64(), {"type": "categorical", "values": [n / 4 for n in range(100)], "outside": "other"},
                     [(0.0, 0), (24.75, 99), (0.3, 100), (-0.0, 0), (1e300, 100)]),
    "one": (pa.int64(), {"type": "codes", "size": 1}, [(0, 0)]),
    "truth": (pa.string(), {"type": "categorical", "values": [True, 1, "a"], "outside": "other"},
              [("TRUE", 0), ("1.0", 1), ("a", 2), ("A", 3), ("false", 3)]),
    "big": (pa.int64(), {"type": "codes", "size": 2**40}, [(2**40 - 1, 2**40 - 1), (2**31, 2**31), (40_000, 40_000)]),
}  # fmt: skip
ROWS = 41

SCHEMA = {"attributes": [{"name": name, **entry} for name, (_, entry, _) in CONTENT.items()]}
DOMAIN = Schema.load(SCHEMA).domain


def frame(rows: int = ROWS) -> pa.Table:
    columns = {name: pa.array([pairs[row % len(pairs)][0] for row in range(rows)], kind, from_pandas=False)
               for name, (kind, _, pairs) in CONTENT.items()}  # fmt: skip
    return pa.table(columns)


def expected_codes(rows: int = ROWS) -> np.ndarray[Any, np.dtype[np.int64]]:
    columns = [[pairs[row % len(pairs)][1] for row in range(rows)] for _, _, pairs in CONTENT.values()]
    return np.array(columns, dtype=np.int64).reshape(len(CONTENT), rows).T


def expected_count(names: tuple[str, ...], rows: int = ROWS) -> Sparse:
    domain: Domain = DOMAIN.project(names)
    cells = domain.ravel(expected_codes(rows)[:, [DOMAIN.index(name) for name in names]])
    return Sparse(*np.unique(cells, return_counts=True))


def same(one: Sparse, two: Sparse) -> bool:
    return np.array_equal(one.cells, two.cells) and np.array_equal(one.values, two.values)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    with engines(tmp_path_factory.mktemp("engines")) as started:
        yield started


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "codes on disk":  # as if these few rows were too many to hold
        monkeypatch.setattr(table_module, "BYTES_PER_HELD_ROW", 2**40)
    return str(request.param)


@pytest.fixture
def given(every: Engines, name: str) -> Given:
    return every.give(name, frame())


def opened(given: Given, schema: Any = SCHEMA, **more: Any) -> Table:
    return read(given.source, schema=schema, table=given.table, **more)


@OLD_IBIS
def test_counts_to_the_last_digit_and_rows_as_they_were(given: Given) -> None:
    before = given.state()
    table = opened(given)
    names = tuple(CONTENT)
    sets = [(), *((one,) for one in names), *pairwise(names), names[:4], names[3::-1], names[4:12]]
    for asked, found in zip(sets, table.counts(sets), strict=True):
        assert same(found, expected_count(asked)), asked
        assert found.cells.dtype == found.values.dtype == np.int64
    assert table.rows() == ROWS
    assert sorted(table.codes().tolist()) == sorted(expected_codes().tolist())
    assert given.state() == before
    table.close()


@OLD_IBIS
@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_and_one_row(every: Engines, name: str, rows: int) -> None:
    table = opened(every.give(name, frame(rows)))
    sets = [(), ("age",), ("one", "town")]
    assert table.rows() == rows
    assert table.codes().shape == (rows, len(CONTENT))
    assert all(same(found, expected_count(asked, rows)) for asked, found in zip(sets, table.counts(sets), strict=True))


@OLD_IBIS
def test_a_digest_that_knows_every_code(every: Engines, name: str, given: Given) -> None:
    reference, table, other = read(frame(), schema=SCHEMA), opened(given), read(frame().slice(1), schema=SCHEMA)
    assert table._engine.digest() == reference._engine.digest() != other._engine.digest()


@OLD_IBIS
def test_threads_may_share_a_table(given: Given) -> None:
    table = opened(given)
    sets = list(combinations(list(CONTENT)[:6], 2))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(table.count, sets))
    assert all(same(one, expected_count(names)) for one, names in zip(found, sets, strict=True))


@OLD_IBIS
def test_what_is_refused_before_reading(given: Given) -> None:
    table = opened(given, dict.fromkeys(["big", "one"], 2**40))
    assert repr(table) == f"Table({table.domain!r})"
    assert table.count(["big"]).cells.tolist()[-1] == 2**40 - 1
    with pytest.raises(BadWorkload, match=r"at most 2\^63"):
        table.counts([("one",), ("big", "one")])
    with pytest.raises(UnknownAttribute):
        table.count(["z"])


@OLD_IBIS
def test_rows_outside_the_schema_are_counted_and_never_shown(every: Engines, name: str) -> None:
    rows = pa.table(
        {"sex": [CANARY, "M", "", None, "F"], "age": [CANARY, "77", "99" * 20, " ", "3"], "n": [1, 2, None, 4, 5]}
    )
    schema = {
        "attributes": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"]},
            {"name": "age", "type": "integer", "min": 0, "max": 9},
            {"name": "n", "type": "codes", "size": 5},
        ]
    }
    message = refusal(every.give(name, rows), schema)
    assert "sex: 1 row outside the schema, 2 rows missing" in message
    assert "age: 3 rows outside the schema, 1 row missing" in message
    assert "n: 1 row outside the schema, 1 row missing" in message
    assert "no column 'z'" in refusal(every.give(name, rows), {"sex": 2, "z": 3})


def refusal(given: Given, schema: Any) -> str:
    """The message of a refusal, after checking that no part of the error shows a row or a password."""
    with pytest.raises(BadData) as caught:
        opened(given, schema)
    whole = "".join(traceback.format_exception(caught.value))
    assert CANARY not in whole and PASSWORD not in whole
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    return str(caught.value)


def test_tables_that_other_sessions_saved(every: Engines) -> None:
    """Spark's own catalog, unless an owner sets up another, ends with the session."""
    assert every.spark is not None
    with pytest.raises(BadData, match=r"no table 'people'.* lasting catalog"):
        read("spark://local", schema={"sex": 2}, table="people")


def test_one_process_asks_one_spark(every: Engines) -> None:
    assert every.spark is not None
    with pytest.raises(BadSetting, match="Stop that session"):
        read("spark://127.0.0.1:7077", schema={"sex": 2}, table="people")
