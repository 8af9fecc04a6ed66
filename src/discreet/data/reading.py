"""Raw columns read as codes: Ibis expressions only, so that any engine can run them.

Importing this module imports Ibis, which takes about a second; `encode` does so when it is first called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from discreet.data.attribute import LARGEST_WHOLE, Attribute
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


def coded(table: ir.Table, schema: Schema) -> ir.Table:
    """See `discreet.data.encode.encode`.

    The steps are separate selections, so that an engine that keeps them apart casts each cell once.
    """
    table = trimmed(table.select([one.name for one in schema]))
    for attribute in schema:
        if isinstance(attribute, Categorical):
            table = _join_lookups(table, attribute)
    values = {_VALUE + one.name: _value(table, one) for one in schema}
    absent = {_ABSENT + one.name: _absent(table, one) for one in schema}
    table = table.select(**values, **absent)
    return table.select(**{one.name: _code(table, one) for one in schema})


_VALUE, _ABSENT = "value of ", "absence of "


def trimmed(table: ir.Table) -> ir.Table:
    """The same table, its texts without surrounding blanks."""
    return table.mutate(**{name: table[name].strip() for name, kind in table.schema().items() if kind.is_string()})


@dataclass(frozen=True)
class Reading:
    """One column, its texts trimmed, read in some way: null where it is no such thing, never an error."""

    column: ir.Column

    @cached_property
    def text(self) -> ir.StringColumn:
        """Whole floats without their `.0`; truths as true and false."""
        kind = self.column.type()
        if kind.is_boolean():
            return self.column.ifelse("true", "false")
        if not (kind.is_floating() or kind.is_decimal()):
            return self.column.cast("string")
        small = ibis.ifelse(self.number.abs() <= LARGEST_WHOLE, self.number, ibis.null("float64"))
        whole = ibis.ifelse(small == small.floor(), small, ibis.null("float64")).cast("int64")
        return whole.cast("string").coalesce(self.number.cast("string"))

    @cached_property
    def number(self) -> ir.FloatingColumn:
        """Numbers as floats; false and true, unless written as text, as 0 and 1."""
        kind = self.column.type()
        if kind.is_boolean():
            return self.column.cast("int64").cast("float64")
        return self.column.cast("float64") if kind.is_numeric() else self.text.try_cast("float64")

    @cached_property
    def truth(self) -> ir.BooleanColumn:
        """True and false, in upper or lower case if written as text."""
        word = self.text.lower()
        return ibis.cases((word == "true", True), (word == "false", False), else_=ibis.null("boolean"))

    @cached_property
    def day(self) -> ir.DateColumn:
        """The calendar day; of a time stamp, its date part."""
        kind = self.column.type()
        if kind.is_timestamp():
            return self.column.cast("timestamp").date()
        return self.column if kind.is_date() else self.text.try_cast("date")

    @cached_property
    def blank(self) -> ir.BooleanColumn:
        """Whether there is nothing: null, NaN or no text."""
        kind, null = self.column.type(), self.column.isnull()
        if kind.is_string():
            return null | (self.column == "").fill_null(False)
        return null | self.column.isnan().fill_null(False) if kind.is_floating() else null


def _value(table: ir.Table, attribute: Attribute) -> ir.Column:
    """The column as the attribute's kind compares it: category codes, numbers or days."""
    reading = Reading(table[attribute.name])
    match attribute:
        case Categorical():
            return _category(table, attribute)
        case Whole() | Numeric():
            return reading.number
        case Date():
            return reading.day
    raise Bug(f"There is no encoding for {type(attribute).__name__}.")


def _absent(table: ir.Table, attribute: Attribute) -> ir.BooleanColumn:
    """Whether the row lacks a value: blank, or one of the schema's texts for missing."""
    reading = Reading(table[attribute.name])
    if not attribute.missing:
        return reading.blank
    return reading.blank | reading.text.isin(attribute.missing).fill_null(False)


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


def _category(table: ir.Table, attribute: Categorical) -> ir.IntegerColumn:
    """Code of the value: compared as text first, then as number, then as truth."""
    reading, found = Reading(table[attribute.name]), []
    for kind in KEY_TYPES:
        lookup = attribute.of_type(kind)
        if len(lookup) > LONGEST_CASE:
            found.append(table[_joined_name(attribute, kind)])
        elif lookup:
            key = getattr(reading, kind)
            found.append(ibis.cases(*((key == value, code) for value, code in lookup.items())))
    return ibis.coalesce(*found) if len(found) > 1 else found[0]


def _join_lookups(table: ir.Table, attribute: Categorical) -> ir.Table:
    """Add the codes of long lists of categories as columns, null where a row has none of them."""
    for kind, key_type in KEY_TYPES.items():
        lookup = attribute.of_type(kind)
        if len(lookup) > LONGEST_CASE:
            name = _joined_name(attribute, kind)
            keys = pa.array(lookup.keys(), getattr(pa, key_type)())
            pairs = ibis.memtable(pa.table({f"key of {name}": keys, name: pa.array(lookup.values(), pa.int64())}))
            key = getattr(Reading(table[attribute.name]), kind)
            table = table.left_join(pairs, key == pairs[f"key of {name}"]).drop(f"key of {name}")
    return table


def _joined_name(attribute: Attribute, kind: str) -> str:
    return f"code of {attribute.name} by {kind}"


def _whole(number: ir.FloatingColumn, attribute: Whole) -> ir.IntegerColumn:
    """Bin of an integer; a fraction is outside, or rounded where values are clipped."""
    clip = attribute.outside == "clip"
    kept = _within(number, attribute.least, attribute.largest, clip=clip)
    kept = kept.round(0) if clip else _only(kept == kept.floor(), kept)
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
            monday = attribute.first_of(attribute.position_of(attribute.start))
            return (kept.delta(monday, unit="day") / 7).floor().cast("int64")
        case _:
            return kept.delta(attribute.start, unit="day").cast("int64")
    return (position - attribute.position_of(attribute.start)).cast("int64")


def _within(value: Any, low: Any, high: Any, *, clip: bool) -> Any:
    """The value moved to the nearest bound, or null beyond the bounds."""
    if not clip:
        return _only((value >= low) & (value <= high), value)
    return ibis.cases((value < low, low), (value > high, high), else_=value)


def _only(condition: Any, value: Any) -> Any:
    """The value where the condition holds, else null."""
    return ibis.ifelse(condition, value, ibis.null(value.type()))
