from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from discreet.data.domain import Domain
from discreet.data.schema import Schema
from discreet.errors import BadSchema, BadWorkload, UnknownAttribute

EVERY_KIND: dict[str, Any] = {
    "attributes": [
        {"name": "sex", "type": "categorical", "values": ["Female", "Male"], "missing": ["?", "NA"]},
        {"name": "grade", "type": "categorical", "values": [1, 2.5, 3], "outside": "other", "missing": True},
        {"name": "member", "type": "categorical", "values": [True, False]},
        {"name": "age", "type": "integer", "min": 0, "max": 12, "width": 5, "outside": "clip"},
        {"name": "year", "type": "integer", "min": -2, "max": 2},
        {"name": "income", "type": "numeric", "edges": [0, 10, 20.5, 99]},
        {"name": "born", "type": "date", "start": "1999-11-15", "end": "2001-02-03", "period": "month"},
        {"name": "ward", "type": "codes", "size": 12, "missing": True},
    ]
}


def one(**entry: Any) -> Schema:
    return Schema.load({"attributes": [{"name": "x", **entry}]})


def test_every_kind_has_its_labels() -> None:
    schema = Schema.load(EVERY_KIND)
    assert schema["sex"].labels() == ("Female", "Male", "missing")
    assert schema["grade"].labels() == ("1", "2.5", "3", "other", "missing")
    assert schema["member"].labels() == ("true", "false")
    assert schema["age"].labels() == ("0-4", "5-9", "10-12")
    assert schema["year"].labels() == ("-2", "-1", "0", "1", "2")
    assert schema["income"].labels() == ("[0, 10)", "[10, 20.5)", "[20.5, 99]")
    assert schema["born"].labels()[:3] == ("1999-11", "1999-12", "2000-01")
    assert schema["born"].size == 16
    assert schema["ward"].labels()[-2:] == ("11", "missing")
    assert schema.domain.sizes == (3, 5, 2, 3, 5, 3, 16, 13)


def test_bins_with_negative_bounds_stay_readable() -> None:
    assert one(type="integer", min=-10, max=4, width=5)["x"].labels() == ("-10 to -6", "-5 to -1", "0-4")


@pytest.mark.parametrize(
    ("period", "first", "last"),
    [
        ("year", "2020", "2021"),
        ("quarter", "2020-Q4", "2021-Q1"),
        ("month", "2020-12", "2021-01"),
        ("week", "2020-W53", "2021-W01"),
        ("day", "2020-12-31", "2021-01-04"),
    ],
)
def test_dates_are_labelled_by_period(period: str, first: str, last: str) -> None:
    born = one(type="date", start="2020-12-31", end="2021-01-04", period=period)["x"]
    assert (born.labels()[0], born.labels()[-1]) == (first, last)
    assert [born.code_of(label) for label in born.labels()] == list(range(born.size))


def test_the_whole_calendar_is_usable() -> None:
    born = one(type="date", start="0001-01-01", end="9999-12-31", period="year")["x"]
    assert born.size == 9999
    assert born.code_of("9999-12-31") == 9998


def test_every_label_names_its_own_code() -> None:
    for attribute in Schema.load(EVERY_KIND):
        assert [attribute.code_of(label) for label in attribute.labels()] == list(range(attribute.size))


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("sex", " Male ", 1),
        ("sex", "?", 2),
        ("grade", "2.50", 1),
        ("grade", "3.0", 2),
        ("member", "FALSE", 1),
        ("age", "9", 1),
        ("age", "9.0", 1),
        ("income", "10", 1),
        ("income", "99", 2),
        ("income", "15.2", 1),
        ("born", "2000-01-31", 2),
        ("ward", "missing", 12),
    ],
)
def test_values_are_found_as_people_type_them(name: str, text: str, code: int) -> None:
    assert Schema.load(EVERY_KIND)[name].code_of(text) == code


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sex", "male"),
        ("sex", ""),
        ("sex", "other"),
        ("age", "13"),
        ("age", "4.5"),
        ("age", "nan"),
        ("income", "inf"),
        ("born", "1999-11-14"),
        ("born", "yesterday"),
        ("ward", "12"),
        ("member", "missing"),
    ],
)
def test_unknown_values_are_answered_with_labels(name: str, text: str) -> None:
    attribute = Schema.load(EVERY_KIND)[name]
    with pytest.raises(BadWorkload, match="values are") as caught:
        attribute.code_of(text)
    assert attribute.label(0) in str(caught.value)
    assert repr(name) in str(caught.value)


def test_long_lists_are_shortened_in_errors() -> None:
    with pytest.raises(BadWorkload, match=r"0, 1, .*7, \.\.\., 9999\.") as caught:
        one(type="codes", size=10_000)["x"].code_of("z")
    assert len(str(caught.value)) < 200


def test_plain_form_and_domains_are_codes() -> None:
    schema = Schema.load({"age": 85, "attributes": 2})
    assert schema.domain == Domain({"age": 85, "attributes": 2})
    assert Schema.load(schema.domain) == schema
    assert Schema.load(schema) is schema
    assert schema["age"].code_of("84") == 84


def test_unknown_attributes_are_refused() -> None:
    with pytest.raises(UnknownAttribute, match="'z'"):
        Schema.load({"age": 85})["z"]


def test_equal_bins_end_exactly_at_max() -> None:
    edges = one(type="numeric", min=0, max=0.3, bins=3)["x"].to_json()["edges"]
    assert len(edges) == 4
    assert (edges[0], edges[-1]) == (0, 0.3)


def test_json_round_trip(tmp_path: Path) -> None:
    schema = Schema.load({**EVERY_KIND, "drafted_from_data": True, "notes": ["réviser"]})
    schema.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == schema == Schema.load(schema.to_json())
    assert schema.drafted_from_data
    assert schema.notes == ("réviser",)


BAD = [
    ({"type": "fancy"}, "one of categorical"),
    ({}, "one of categorical"),
    ({"type": ["codes"]}, "one of categorical"),
    ({"type": "codes", "size": 2, "colour": 1}, "unknown key 'colour'"),
    ({"type": "codes"}, "lacks the key 'size'"),
    ({"type": "codes", "size": 0}, "whole number from 1"),
    ({"type": "codes", "size": 10**400}, "whole number"),
    ({"type": "categorical", "values": []}, "at least one"),
    ({"type": "categorical", "values": "ab"}, "must be a list"),
    ({"type": "categorical", "values": ["a", "a"]}, "two values"),
    ({"type": "categorical", "values": [1, 1.0]}, "two values"),
    ({"type": "categorical", "values": ["1", 1]}, "two values"),
    ({"type": "categorical", "values": ["true", True]}, "two values"),
    ({"type": "categorical", "values": ["other"], "outside": "other"}, "two values"),
    ({"type": "categorical", "values": ["missing"], "missing": True}, "two values"),
    ({"type": "categorical", "values": ["a", "?"], "missing": ["?"]}, "both a value"),
    ({"type": "categorical", "values": ["a"], "missing": ["other"], "outside": "other"}, "both a value"),
    ({"type": "categorical", "values": [""]}, "blank"),
    ({"type": "categorical", "values": [" a"]}, "blanks around"),
    ({"type": "categorical", "values": [None]}, "not None"),
    ({"type": "categorical", "values": [math.nan]}, "finite"),
    ({"type": "categorical", "values": [2**60]}, "whole number"),
    ({"type": "categorical", "values": ["a"], "outside": "clip"}, '"outside"'),
    ({"type": "integer", "min": 3, "max": 2}, "above"),
    ({"type": "integer", "min": 0, "max": 2, "width": 0}, '"width"'),
    ({"type": "integer", "min": 0.5, "max": 2}, '"min"'),
    ({"type": "integer", "min": 0, "max": 2**60}, '"max"'),
    ({"type": "integer", "min": -9, "max": 2, "missing": ["-9"]}, "both a value"),
    ({"type": "numeric", "edges": [1]}, "at least two"),
    ({"type": "numeric", "edges": [1, 1]}, "increase"),
    ({"type": "numeric", "edges": [2**53, 2**53 + 1]}, "increase"),
    ({"type": "numeric", "edges": [0, math.nan]}, "finite"),
    ({"type": "numeric", "edges": [0, math.inf]}, "finite"),
    ({"type": "numeric", "edges": [0, 10**400]}, "finite"),
    ({"type": "numeric", "edges": [0, "1"]}, "finite"),
    ({"type": "numeric", "edges": [0, 1], "bins": 3}, "unknown key 'bins'"),
    ({"type": "numeric", "min": 0, "max": 1, "bins": 0}, '"bins"'),
    ({"type": "numeric", "min": 1, "max": 1, "bins": 2}, "below"),
    ({"type": "numeric", "min": 0, "max": 5e-324, "bins": 2}, "increase"),
    ({"type": "date", "start": "2020-13-01", "end": "2021-01-01", "period": "day"}, '"start"'),
    ({"type": "date", "start": "2020-01-01", "end": 7, "period": "day"}, '"end"'),
    ({"type": "date", "start": "2022-01-01", "end": "2021-01-01", "period": "day"}, "after"),
    ({"type": "date", "start": "2020-01-01", "end": "2021-01-01", "period": "decade"}, '"period"'),
    ({"type": "codes", "size": 2, "outside": "ignore"}, '"outside"'),
    ({"type": "codes", "size": 2, "missing": "?"}, '"missing"'),
    ({"type": "codes", "size": 2, "missing": []}, '"missing"'),
    ({"type": "codes", "size": 2, "missing": [" "]}, '"missing"'),
    ({"type": "codes", "size": 2, "missing": [3]}, '"missing"'),
]


@pytest.mark.parametrize(("entry", "complaint"), BAD)
def test_mistakes_name_the_attribute_and_the_remedy(entry: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadSchema) as caught:
        one(**entry)
    assert "Attribute 'x'" in str(caught.value)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({}, "at least one"),
        ({"attributes": []}, "at least one"),
        ({"attributes": [3]}, "object"),
        ({"attributes": [{"name": "a", "type": "codes", "size": 2}] * 2}, "'a' stands twice"),
        ({"attributes": [{"type": "codes", "size": 2}]}, "lacks the key 'name'"),
        ({"attributes": [{"name": "", "type": "codes", "size": 2}]}, "name"),
        ({"attributes": [], "colour": 1}, "unknown key 'colour'"),
        ({"attributes": [], "notes": "x"}, '"notes"'),
        ({"attributes": [], "drafted_from_data": 1}, '"drafted_from_data"'),
        ({"age": "85"}, "'age'"),
        ({"age": True}, "'age'"),
    ],
)
def test_mistakes_in_the_whole(content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadSchema, match=complaint):
        Schema.load(content)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"age": 85, "age": 2}', "'age' stands twice"),
        ('{"age": NaN}', "NaN"),
        ('{"age": ', "not JSON"),
        ("", "not JSON"),
        ("[1]", "JSON object"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_mistakes_in_files(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(BadSchema, match=complaint):
        Schema.load(tmp_path / "s.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadSchema, match="No such file"):
        Schema.load(tmp_path / "none.json")
    with pytest.raises(BadSchema, match="directory"):
        Schema.load(str(tmp_path))
    (tmp_path / "s.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadSchema, match="not JSON"):
        Schema.load(tmp_path / "s.json")


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("\ufeff" + json.dumps({"age": 3}), encoding="utf-8")
    assert Schema.load(tmp_path / "s.json").domain.sizes == (3,)
