"""Codes survive the way out and back, and counting agrees with counting by hand."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.domain import Domain
from discreet.data.encode import decode
from discreet.data.schema import Schema
from discreet.data.table import read

finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).map(str.strip)
words = texts.filter(lambda text: text and text.lower() not in ("other", "missing"))
names = st.text(st.sampled_from("aA b'\"/>-é\U0001f600"), min_size=1, max_size=4)
numbers = st.integers(-(2**52), 2**52)


def entries(values: st.SearchStrategy[dict[str, Any]], *outsides: str) -> st.SearchStrategy[dict[str, Any]]:
    """Any kind with any rule for missing values and values outside."""
    extra = st.fixed_dictionaries({"outside": st.sampled_from(["refuse", *outsides]), "missing": st.booleans()})
    return st.builds(lambda entry, more: entry | more, values, extra)


categorical = st.builds(
    lambda values: {"type": "categorical", "values": values},
    st.one_of(
        st.lists(words, min_size=1, max_size=90, unique=True),
        st.lists(numbers, min_size=1, max_size=90, unique=True),
        st.lists(finite, min_size=1, max_size=20, unique=True).filter(lambda v: len({x + 0.0 for x in v}) == len(v)),
        st.just([True, False]),
    ),
)
integer = st.builds(
    lambda low, length, width: {"type": "integer", "min": low, "max": low + length, "width": width},
    st.integers(-(2**51), 2**51),
    st.integers(0, 2**40),
    st.integers(1, 2**41),
)
numeric = st.builds(
    lambda edges: {"type": "numeric", "edges": sorted(edges)},
    st.lists(finite, min_size=2, max_size=80, unique_by=lambda x: x + 0.0),
)
dates = st.builds(
    lambda days, period: {"type": "date", "start": min(days), "end": max(days), "period": period},
    st.tuples(st.dates(), st.dates()).map(lambda pair: [day.isoformat() for day in pair]),
    st.sampled_from(["year", "quarter", "month", "week", "day"]),
)
attributes = st.one_of(entries(categorical, "other"), entries(st.one_of(integer, numeric, dates), "clip", "other"))


@st.composite
def coded_rows(draw: st.DrawFn) -> tuple[Schema, np.ndarray[Any, Any]]:
    described = draw(st.lists(attributes, min_size=1, max_size=3))
    number = draw(st.integers(0, 8))
    rows = {"name": "row", "type": "codes", "size": 8}
    named = [{"name": f"x{place}", **entry} for place, entry in enumerate(described)]
    schema = Schema.load({"attributes": [rows, *named]})
    columns = [list(range(number))]
    for one in schema.attributes[1:]:
        usable = [st.integers(0, one.regular - 1)]
        if one.kind == "categorical" and one.other_code is not None:
            usable.append(st.just(one.other_code))
        if one.missing_code is not None:
            usable.append(st.just(one.missing_code))
        columns.append(draw(st.lists(st.one_of(usable), min_size=number, max_size=number)))
    return schema, np.array(columns, dtype=np.int64).T


def sorted_codes(rows: pa.Table, schema: Schema) -> list[list[int]]:
    return sorted(read(rows, schema=schema).codes().tolist())


@settings(max_examples=25, deadline=None)
@given(coded_rows(), st.integers(0, 2**32))
def test_decoded_values_encode_to_the_same_codes(case: tuple[Schema, Any], seed: int) -> None:
    schema, codes = case
    decoded = decode(codes, schema, generator=np.random.default_rng(seed))
    assert sorted_codes(decoded, schema) == codes.tolist()


@settings(max_examples=10, deadline=None)
@given(coded_rows())
def test_so_do_decoded_values_written_as_text(case: tuple[Schema, Any]) -> None:
    schema, codes = case
    decoded = decode(codes, schema, generator=np.random.default_rng(0))
    texts = {name: [None if x is None else str(x) for x in decoded[name].to_pylist()] for name in decoded.column_names}
    assert sorted_codes(pa.table({name: pa.array(column, pa.string()) for name, column in texts.items()}), schema) == (
        codes.tolist()
    )


@given(coded_rows())
def test_labels_name_their_codes(case: tuple[Schema, Any]) -> None:
    schema, codes = case
    labels = decode(codes, schema, generator=np.random.default_rng(0), labels=True)
    for position, attribute in enumerate(schema):
        for code, label in zip(codes[:, position], labels[attribute.name].to_pylist(), strict=True):
            assert attribute.label(int(code)) == label


@given(st.lists(st.integers(1, 2**20), min_size=1, max_size=3), st.data())
def test_ravel_and_unravel_are_inverse(sizes: list[int], data: st.DataObject) -> None:
    domain = Domain([(f"x{place}", size) for place, size in enumerate(sizes)])
    cells = data.draw(st.lists(st.integers(0, domain.size - 1), max_size=20))
    assert domain.ravel(domain.unravel(cells)).tolist() == cells


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(names, st.integers(1, 300)), min_size=1, max_size=4, unique_by=lambda p: p[0]),
    st.data(),
)
def test_sparse_counts_equal_brute_force(pairs: list[tuple[str, int]], data: st.DataObject) -> None:
    domain = Domain(pairs)
    row = st.tuples(*(st.integers(0, size - 1) for size in domain.sizes))
    codes = np.array(data.draw(st.lists(row, max_size=30)), dtype=np.int64).reshape(-1, len(domain))
    frame = pa.table({name: codes[:, place] for place, name in enumerate(domain.attributes)})
    sets = [names for length in range(1, len(domain) + 1) for names in combinations(domain.attributes, length)]
    for names_, counted in zip(sets, read(frame, schema=domain).counts(sets), strict=True):
        columns = [domain.index(name) for name in names_]
        cells, values = np.unique(domain.project(names_).ravel(codes[:, columns]), return_counts=True)
        assert counted.cells.tolist() == cells.tolist()
        assert counted.values.tolist() == values.tolist()
