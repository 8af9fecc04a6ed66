"""Raw columns read as codes: Ibis expressions only, so that any engine can run them.

Importing this module imports Ibis, which takes about a second; `encode` does so when it is first called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from discreet.data.attribute import Attribute, Scalar
from discreet.data.cell import Reading, canonical_number, ordinal, round_half_up
from discreet.data.kind import Categorical, Date, Numeric, Whole
from discreet.data.schema import Schema
from discreet.errors import Bug

OUTSIDE = -1
"""Mark of a value which is none of the schema's."""

MISSING = -2
"""Mark of a missing value where the schema has none."""

LONGEST_CASE = 64
"""Longer lists of categories become a join, whose cost per row does not grow with the list."""

KEY_TYPES = {"text": "string", "number": "float64", "truth": "bool"}


def coded(table: ir.Table, schema: Schema, *, lenient: bool = True) -> ir.Table:
    """See `discreet.data.encode.encode`.

    The steps are separate selections, so that an engine that keeps them apart casts each cell once.
    """
    table = trimmed(table.select([one.name for one in schema]))
    for attribute in schema:
        if isinstance(attribute, Categorical):
            table = _join_lookups(table, attribute, lenient)
    readings = {one.name: Reading(table[one.name], lenient) for one in schema}
    values = {_VALUE + one.name: _value(table, readings[one.name], one) for one in schema}
    absent = {_ABSENT + one.name: _absent(readings[one.name], one) for one in schema}
    table = table.select(**values, **absent)
    return table.select(**{one.name: _code(table, one) for one in schema})


_VALUE, _ABSENT = "value of ", "absence of "


def trimmed(table: ir.Table) -> ir.Table:
    """The same table, its texts without surrounding blanks."""
    return table.mutate(**{name: table[name].strip() for name, kind in table.schema().items() if kind.is_string()})


def _value(table: ir.Table, reading: Reading, attribute: Attribute) -> ir.Column:
    """The column as the attribute's kind compares it: category codes, numbers or days."""
    match attribute:
        case Categorical():
            return _category(table, reading, attribute)
        case Whole() | Numeric():
            return reading.number
        case Date():
            return reading.day
    raise Bug(f"There is no encoding for {type(attribute).__name__}.")


def _absent(reading: Reading, attribute: Attribute) -> ir.BooleanColumn:
    """Whether the row lacks a value: blank, or one of the schema's texts for missing."""
    texts: dict[Scalar, int] = dict.fromkeys(attribute.missing or (), 0)
    key, lookup = _compared(reading, "text", texts)
    return reading.blank | key.isin(list(lookup)).fill_null(False) if lookup else reading.blank


def _compared(reading: Reading, kind: str, lookup: Mapping[Scalar, int]) -> tuple[ir.Column, dict[Scalar, int]]:
    """The column and the values in the type in which they are compared.

    Engines write fractions in different ways, so a column of fractions is compared with texts as numbers: with
    those texts which are how people write a number.
    """
    if kind != "text" or not reading.is_fraction:
        return getattr(reading, kind), dict(lookup)
    numbers = {canonical_number(str(text)): code for text, code in lookup.items()}
    return reading.number, {number: code for number, code in numbers.items() if number is not None}


def _code(table: ir.Table, attribute: Attribute) -> ir.IntegerColumn:
    """The code of each row, or a negative mark; never null."""
    value, absent = table[_VALUE + attribute.name], table[_ABSENT + attribute.name]
    match attribute:
        case Whole():
            absent, value = absent | value.isnan().fill_null(False), _whole(value, attribute)
        case Numeric():
            absent, value = absent | value.isnan().fill_null(False), _bin(value, attribute)
        case Date():
            value = _period(value, attribute)
    missing = MISSING if attribute.missing_code is None else attribute.missing_code
    outside = OUTSIDE if attribute.other_code is None else attribute.other_code
    return ibis.ifelse(absent, missing, value.fill_null(outside)).cast("int64")


def _category(table: ir.Table, reading: Reading, attribute: Categorical) -> ir.IntegerColumn:
    """Code of the value: compared as text first, then as number, then as truth."""
    found = []
    for kind in KEY_TYPES:
        key, lookup = _compared(reading, kind, attribute.of_type(kind))
        if len(lookup) > LONGEST_CASE:
            found.append(table[_joined_name(attribute, kind)])
        elif lookup:
            found.append(ibis.cases(*((key == value, code) for value, code in lookup.items())))
    return ibis.coalesce(*found, ibis.null("int64")) if len(found) != 1 else found[0]


def _join_lookups(table: ir.Table, attribute: Categorical, lenient: bool) -> ir.Table:
    """Add the codes of long lists of categories as columns, null where a row has none of them."""
    for kind, usual in KEY_TYPES.items():
        key, lookup = _compared(Reading(table[attribute.name], lenient), kind, attribute.of_type(kind))
        if len(lookup) > LONGEST_CASE:
            name = _joined_name(attribute, kind)
            key_type = "float64" if key.type().is_floating() else usual
            keys = pa.array(lookup.keys(), getattr(pa, key_type)())
            pairs = ibis.memtable(pa.table({f"key of {name}": keys, name: pa.array(lookup.values(), pa.int64())}))
            table = table.left_join(pairs, key == pairs[f"key of {name}"]).drop(f"key of {name}")
    return table


def _joined_name(attribute: Attribute, kind: str) -> str:
    return f"code of {attribute.name} by {kind}"


def _whole(number: ir.FloatingColumn, attribute: Whole) -> ir.IntegerColumn:
    """Bin of an integer; a fraction is outside, or rounded where values are clipped."""
    clip = attribute.outside == "clip"
    kept = _within(number, attribute.least, attribute.largest, clip=clip)
    kept = round_half_up(kept) if clip else _only(kept == kept.floor(), kept)
    return ((kept - attribute.least) / attribute.step).floor().cast("int64")


def _bin(number: ir.FloatingColumn, attribute: Numeric) -> ir.IntegerColumn:
    edges = attribute.edges
    kept = _within(number, edges[0], edges[-1], clip=attribute.outside == "clip")
    return _only(kept.notnull(), _search(kept, edges, 0, attribute.regular))


def _search(number: ir.FloatingColumn, edges: Sequence[float], first: int, stop: int) -> Any:
    """Binary search written as nested cases: which of the bins `first .. stop-1` holds the number."""
    if stop - first == 1:
        return ibis.literal(first, "int64")
    middle = (first + stop) // 2
    lower, upper = _search(number, edges, first, middle), _search(number, edges, middle, stop)
    return ibis.ifelse(number < edges[middle], lower, upper)


def _period(day: ir.DateColumn, attribute: Date) -> ir.IntegerColumn:
    """Number of the period, by the same formulas as `Date`, counted from the first one."""
    kept = _within(day, attribute.start, attribute.end, clip=attribute.outside == "clip")
    match attribute.period:
        case "year":
            position = kept.year()
        case "quarter":
            position = kept.year() * 4 + kept.quarter() - 1
        case "month":
            position = kept.year() * 12 + kept.month() - 1
        case "week":
            position = ((ordinal(kept) - 1) / 7).floor()
        case _:
            position = ordinal(kept)
    return (position - attribute.position_of(attribute.start)).cast("int64")


def _within(value: Any, low: Any, high: Any, *, clip: bool) -> Any:
    """The value moved to the nearest bound, or null beyond the bounds."""
    if not clip:
        return _only((value >= low) & (value <= high), value)
    return ibis.cases((value < low, low), (value > high, high), else_=value)


def _only(condition: Any, value: Any) -> Any:
    """The value where the condition holds, else null."""
    return ibis.ifelse(condition, value, ibis.null(value.type()))
