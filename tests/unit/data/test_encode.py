from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

from discreet.data.encode import decode, encode
from discreet.data.schema import Schema
from discreet.data.source import open_source
from discreet.errors import BadSetting

OUTSIDE, MISSING = -1, -2
DOUBTFUL = [
    "",
    "  ",
    None,
    "abc",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 30,
    "0x1",
    "１",
    "1,0",
    "\u00a01",
    "é",
    "e\u0301",
]
SEX = {"type": "categorical", "values": ["Female", "Male"]}
AGE = {"type": "integer", "min": 10, "max": 29, "width": 5}
INCOME = {"type": "numeric", "edges": [0, 10, 20.5, 99]}
BORN = {"type": "date", "start": "2020-01-30", "end": "2021-02-02", "period": "month"}


def schema_of(entry: dict[str, Any]) -> Schema:
    return Schema.load({"attributes": [{"name": "c0", **entry}]})


def marks(values: list[Any] | pa.Array, entry: dict[str, Any], **more: Any) -> list[int]:
    origin = open_source(pa.table({"x": values}))
    coded = origin.run(encode(origin.pick(["x"]), schema_of(entry | more)))
    found: list[int] = coded.read_all()["c0"].to_pylist()
    return found


def test_text_categories_ignore_surrounding_blanks_only() -> None:
    assert marks(["Male", " Female\t", "male", "Fe male"], SEX) == [1, 0, OUTSIDE, OUTSIDE]


def test_composed_and_decomposed_letters_are_two_values() -> None:
    entry = {"type": "categorical", "values": ["\u00e9", "e\u0301", "\U0001f600", "o'b\"r;--"]}
    assert marks(["e\u0301", "\u00e9", "\U0001f600", "o'b\"r;--", "e"], entry) == [1, 0, 2, 3, OUTSIDE]


def test_number_categories_compare_as_numbers() -> None:
    entry = {"type": "categorical", "values": [1, 2.5, 1e300]}
    assert marks(["1", "1.0", "01", "2.50", "1e300", "2"], entry) == [0, 0, 0, 1, 2, OUTSIDE]
    assert marks([1.0, 2.5, math.nan, math.inf], entry) == [0, 1, MISSING, OUTSIDE]
    assert marks([1, 3], entry) == [0, OUTSIDE]


def test_truth_categories() -> None:
    entry = {"type": "categorical", "values": [False, True]}
    assert marks(["True", "FALSE", "1", "t"], entry) == [1, 0, OUTSIDE, OUTSIDE]
    assert marks([True, False, None], entry) == [1, 0, MISSING]
    assert marks([True, False], {"type": "codes", "size": 2}) == [1, 0]


def test_text_categories_of_typed_columns() -> None:
    entry = {"type": "categorical", "values": ["1", "2.5", "true", "2020-01-30"]}
    assert marks([1, 2], entry) == [0, OUTSIDE]
    assert marks([1.0, 2.5, 1e300, math.inf], entry) == [0, 1, OUTSIDE, OUTSIDE]
    assert marks([Decimal("1.00"), Decimal("2.50")], entry) == [0, 1]
    assert marks([True, False], entry) == [2, OUTSIDE]
    assert marks([date(2020, 1, 30)], entry) == [3]
    assert marks(pa.array(["1", "true"]).dictionary_encode(), entry) == [0, 2]


def test_mixed_categories() -> None:
    assert marks(["a", "1.0", "TRUE", "x"], {"type": "categorical", "values": [True, 1, "a"]}) == [
        2,
        1,
        0,
        OUTSIDE,
    ]


@pytest.mark.parametrize("kind", [str, int, float])
def test_long_lists_of_categories_are_joined(kind: type) -> None:
    values = [kind(n) for n in range(300)]
    entry = {"type": "categorical", "values": values, "missing": True, "outside": "other"}
    assert sorted(marks([*map(str, values), "x", None, ""], entry)) == [*range(301), 301, 301]


def test_integers_in_bins() -> None:
    assert marks(["10", "14", "15", "29", "9", "30", "12.5"], AGE) == [0, 0, 1, 3, OUTSIDE, OUTSIDE, OUTSIDE]
    assert marks(["39.0", " 39 ", "+39", "3.9e1"], AGE, max=40) == [5, 5, 5, 5]
    assert marks(pa.array([2**64 - 1, 12], pa.uint64()), AGE) == [OUTSIDE, 0]
    assert marks([10.0, 10.5, math.nan, math.inf, -math.inf, 1e300], AGE) == [0, -1, MISSING, -1, -1, -1]
    assert marks([Decimal(10**30), Decimal(29)], AGE) == [OUTSIDE, 3]


def test_large_integers_are_exact() -> None:
    entry = {"type": "integer", "min": -(2**52), "max": 2**52}
    assert marks([-(2**52), 2**52, 2**52 + 1, 2**53 + 1], entry) == [0, 2**53, OUTSIDE, OUTSIDE]
    assert marks([str(2**52 - 1)], entry, width=3) == [(2**53 - 1) // 3]


def test_clipping_goes_to_the_nearest_bin() -> None:
    assert marks(["-5", "1e400", "-inf", "14.6", "abc"], AGE, outside="clip") == [0, 3, 0, 1, OUTSIDE]
    assert marks([math.inf, math.nan, 1e300], AGE, outside="clip", missing=True) == [3, 4, 3]
    assert marks(["-1", "100", "x"], INCOME, outside="clip") == [0, 2, OUTSIDE]
    assert marks(["1066-10-14", "9999-12-31", "infinity", "x"], BORN, outside="clip") == [0, 13, OUTSIDE, OUTSIDE]


def test_other_takes_in_everything_else() -> None:
    for entry, size in ((SEX, 2), (AGE, 4), (INCOME, 3), (BORN, 14)):
        assert set(marks(["abc", "-inf", "9" * 30], entry, outside="other")) == {size}


def test_numeric_bins_are_half_open_and_the_last_closed() -> None:
    assert marks(["0", "9.999", "10", "20.5", "99", "99.01", "-1e-9"], INCOME) == [0, 0, 1, 2, 2, -1, -1]
    assert marks([0.0, np.nextafter(10.0, 0.0), 99.0, math.nan], INCOME) == [0, 0, 2, MISSING]


def test_one_bin_and_many_bins() -> None:
    assert marks(["0", "1", "2"], {"type": "numeric", "edges": [0, 1]}) == [0, 0, OUTSIDE]
    entry = {"type": "numeric", "min": 0, "max": 100, "bins": 100}
    assert marks([n + 0.5 for n in range(100)], entry) == list(range(100))


@pytest.mark.parametrize("period", ["year", "quarter", "month", "week", "day"])
def test_dates_agree_with_the_schema_in_every_period(period: str) -> None:
    entry = BORN | {"period": period}
    attribute = schema_of(entry)["c0"]
    days = np.arange("2020-01-30", "2021-02-03", dtype="datetime64[D]").astype(object).tolist()
    expected = [attribute.code_of(day.isoformat()) for day in days]
    assert marks(days, entry) == expected
    assert marks([day.isoformat() for day in days], entry) == expected
    assert sorted(set(expected)) == list(range(attribute.size))


def test_times_count_by_their_date() -> None:
    assert marks([datetime(2020, 1, 31, 23, 59)], BORN) == [0]
    assert marks(pa.array([datetime(2020, 1, 31, 23, 59)], pa.timestamp("us", "UTC")), BORN) == [0]
    assert marks(["2020-02-01 10:00:00", "2020-02-01T10:00:00", "01/02/2020", "2020-02-30"], BORN) == [
        1,
        1,
        -1,
        -1,
    ]
    assert marks([3, 4], BORN) == [OUTSIDE, OUTSIDE]


@pytest.mark.parametrize("entry", [SEX, AGE, INCOME, BORN, {"type": "codes", "size": 2}])
def test_doubtful_content_never_stops_the_engine(entry: dict[str, Any]) -> None:
    found = marks(DOUBTFUL, entry)
    assert found[:3] == [MISSING] * 3
    assert set(found[3:]) <= {OUTSIDE, MISSING}
    assert marks(pa.nulls(2), entry) == [MISSING, MISSING]
    assert marks(pa.array([None], pa.float64()), entry) == [MISSING]


def test_texts_for_missing() -> None:
    assert marks(["?", " NA ", "Male", ""], SEX, missing=["?", "NA"]) == [2, 2, 1, 2]
    assert marks([-9, 12], AGE, missing=["-9"]) == [4, 0]
    assert marks([-9.0, 12.0], AGE, missing=["-9"]) == [4, 0]


def test_encode_ignores_other_columns_and_keeps_names() -> None:
    table = ibis.table({"a b": "string", "extra": "string"}, name="t")
    assert encode(table, Schema.load({"a b": 3})).columns == ("a b",)


def column(codes: list[int], entry: dict[str, Any], **more: Any) -> pa.Array:
    rows = np.array(codes, dtype=np.int64).reshape(-1, 1)
    decoded = decode(rows, schema_of(entry), generator=np.random.default_rng(0), **more)
    assert decoded.column_names == ["c0"]
    return decoded["c0"].combine_chunks()


def test_categories_decode_to_their_own_type() -> None:
    assert column([1, 0, 2], SEX | {"missing": True}).to_pylist() == ["Male", "Female", None]
    assert column([1, 0], {"type": "categorical", "values": [7, 8]}).type == pa.int64()
    assert column([1, 0], {"type": "categorical", "values": [7, 8.5]}).to_pylist() == [8.5, 7.0]
    assert column([1, 0], {"type": "categorical", "values": [True, False]}).to_pylist() == [False, True]
    mixed = {"type": "categorical", "values": [7, "a", True]}
    assert column([0, 1, 2], mixed).to_pylist() == ["7", "a", "true"]
    other = {"type": "categorical", "values": [7], "outside": "other", "missing": True}
    assert column([0, 1, 2], other).to_pylist() == ["7", "other", None]


def test_other_decodes_to_null_outside_categories() -> None:
    assert column([4, 5], AGE | {"outside": "other", "missing": True}).to_pylist() == [None, None]


def test_numbers_and_dates_are_drawn_inside_their_bin() -> None:
    ages = column([1] * 1000, AGE).to_pylist()
    assert set(ages) == {15, 16, 17, 18, 19}
    incomes = column([1] * 1000, INCOME).to_pylist()
    assert (10 <= min(incomes) < 11) and (20 < max(incomes) < 20.5)
    assert set(column([0] * 100, BORN).to_pylist()) == {date(2020, 1, 30), date(2020, 1, 31)}
    assert set(column([13] * 100, BORN).to_pylist()) == {date(2021, 2, 1), date(2021, 2, 2)}


def test_neighbouring_and_extreme_edges() -> None:
    low = 1.0
    narrow = {"type": "numeric", "edges": [low, float(np.nextafter(low, 2)), 2]}
    assert set(column([0] * 100, narrow).to_pylist()) == {low}
    wide = column([0] * 100, {"type": "numeric", "edges": [-1.7e308, 1.7e308]}).to_numpy()
    assert np.isfinite(wide).all()
    assert (wide < 0).any() and (wide > 0).any()


def test_labels_instead_of_values() -> None:
    assert column([3, 0, 4], AGE | {"missing": True}, labels=True).to_pylist() == [
        "25-29",
        "10-14",
        "missing",
    ]


def test_no_rows_decode_to_an_empty_table() -> None:
    for entry in (SEX, AGE, INCOME, BORN):
        assert len(column([], entry)) == len(column([], entry, labels=True)) == 0


@pytest.mark.parametrize("codes", [[[0, 0]], [0], [[2]], [[-1]]])
def test_codes_that_do_not_fit_are_refused(codes: Any) -> None:
    with pytest.raises(BadSetting, match="codes"):
        decode(np.array(codes), schema_of(SEX), generator=np.random.default_rng(0))
