from __future__ import annotations

import traceback
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.data.draft import draft
from discreet.data.schema import Schema
from discreet.data.table import read
from discreet.errors import BadData

ROWS = 400
DAYS = [date(2020, 3, 5) + timedelta(days=n) for n in range(ROWS)]
COLUMNS: dict[str, list[Any]] = {
    "sex": ["Female", " Male "] * (ROWS // 2),
    "stage": [1, 2, 4, 7] * (ROWS // 4),
    "member": ["True", "false"] * (ROWS // 2),
    "age": [n % 90 for n in range(ROWS)],
    "pay": [1000.25 + 7.5 * n for n in range(ROWS)],
    "born": DAYS,
    "founded": [f"{1900 + n % 100}-01-02" for n in range(ROWS)],
    "reply": ["yes", "no", "", None] * (ROWS // 4),
    "note": ["missing", "a", None, "b"] * (ROWS // 4),
    "person": [f"person {n}" for n in range(ROWS)],
    "income": ["NA" if n % 7 == 0 else "?" if n % 11 == 0 else str(1000 + 30 * n) for n in range(ROWS)],
    "seen": [None if n % 5 == 0 else "NULL" if n % 7 == 0 else str(day) for n, day in enumerate(DAYS)],
    "empty": [None] * ROWS,
    "": [1] * ROWS,
}


@pytest.fixture(scope="module")
def drafted() -> tuple[dict[str, Any], list[str]]:
    return draft(pa.table(COLUMNS))


def entry(drafted: tuple[dict[str, Any], list[str]], name: str) -> dict[str, Any]:
    (found,) = (one for one in drafted[0]["attributes"] if one["name"] == name)
    return {key: value for key, value in found.items() if key != "name"}


EXPECTED = {
    "sex": {"type": "categorical", "values": ["Female", "Male"]},
    "stage": {"type": "categorical", "values": [1, 2, 4, 7]},
    "member": {"type": "categorical", "values": [False, True]},
    "age": {"type": "integer", "min": 0, "max": 89},
    "pay": {"type": "numeric", "edges": list(range(1000, 4001, 200))},
    "born": {"type": "date", "start": "2020-03-01", "end": "2021-04-30", "period": "month"},
    "founded": {"type": "date", "start": "1900-01-01", "end": "1999-12-31", "period": "year"},
    "reply": {"type": "categorical", "values": ["no", "yes"], "missing": True},
    "note": {"type": "categorical", "values": ["a", "b"], "missing": ["missing"]},
    "income": {"type": "numeric", "edges": list(range(1000, 13001, 1000)), "missing": ["?", "NA"]},
    "seen": {"type": "date", "start": "2020-03-01", "end": "2021-04-30", "period": "month", "missing": ["NULL"]},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_kinds_are_proposed_by_content(drafted: tuple[dict[str, Any], list[str]], name: str) -> None:
    assert entry(drafted, name) == EXPECTED[name]


def test_what_is_left_out_is_said(drafted: tuple[dict[str, Any], list[str]]) -> None:
    content, notes = drafted
    assert {one["name"] for one in content["attributes"]} == EXPECTED.keys()
    left_out = [note.split(":")[0] for note in notes if "left out" in note]
    assert left_out == ["person", "empty", "column 14"]


def test_the_draft_says_that_it_saw_the_rows(drafted: tuple[dict[str, Any], list[str]], tmp_path: Path) -> None:
    content, notes = drafted
    assert content["drafted_from_data"] is True
    assert content["notes"] == notes
    Schema.load(content).save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json").to_json() == content


def test_the_table_fits_its_own_draft(drafted: tuple[dict[str, Any], list[str]]) -> None:
    assert read(pa.table(COLUMNS), schema=drafted[0]).rows() == ROWS


@pytest.mark.parametrize("scale", [1e-6, 0.1, 3.0, 1e9, 1e200])
def test_wide_numbers_get_some_twenty_bins_at_most(scale: float, tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).normal(size=200) * scale
    content, _ = draft(pa.table({"x": numbers}))
    assert 8 <= len(content["attributes"][0]["edges"]) - 1 <= 22
    assert read(pa.table({"x": numbers}), schema=content).rows() == 200


def test_files_are_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n,x\n")
    content, _ = draft(tmp_path / "t.csv")
    assert content["attributes"] == [
        {"name": "a", "type": "categorical", "values": [1, 2], "missing": True},
        {"name": "b", "type": "categorical", "values": ["x", "y"]},
    ]


def test_marks_of_missing_numbers_may_be_in_capital_letters() -> None:
    texts = [*map(str, range(40)), "NAN", "Null", "none", "?"]
    content, _ = draft(pa.table({"x": texts}))
    assert content["attributes"] == [
        {"name": "x", "type": "integer", "min": 0, "max": 39, "missing": ["?", "NAN", "Null", "none"]}
    ]
    assert read(pa.table({"x": texts}), schema=content).rows() == 44


def test_infinite_numbers_and_too_many_texts() -> None:
    texts = [f"t{n % 600}" for n in range(1200)]
    content, notes = draft(pa.table({"x": [float("inf"), 1.0] * 600, "t": texts}))
    assert content["attributes"] == [{"name": "x", "type": "categorical", "values": ["1", "inf"]}]
    assert "more than 500" in notes[1]


def test_nothing_to_describe(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(BadData, match="No column can be described"):
        draft(tmp_path / "t.csv")


def test_malformed_rows_are_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\ncanary,1,2\n")
    with pytest.raises(BadData) as caught:
        draft(tmp_path / "t.csv")
    assert "canary" not in "".join(traceback.format_exception(caught.value))
