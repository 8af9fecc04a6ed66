"""One cell read as text, number, truth or day: Ibis expressions that mean the same in every engine.

Engines disagree about what a text may look like to be a number or a date, about rounding, and about how fractions are
written. So the grammar is ours, an engine's own cast sees nothing else, and the arithmetic uses operations which
IEEE 754 and the calendar fix.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import ibis
import ibis.expr.types as ir

from discreet.data.attribute import LARGEST_WHOLE, value_text

NUMERAL = "^[+-]?([0-9]{1,255}[.]?[0-9]{0,255}|[.][0-9]{1,255})([eE][+-]?[0-9]{1,3})?$"
"""Numbers as texts. The words inf, infinity and nan are known as well, in upper or lower case."""

INFINITE_WORDS = ("nan", *(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity")))

DAY = (
    "^(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-([0-9]{1,2})-([0-9]{1,2})"
    "([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$"
)
"""Dates as texts: year-month-day, perhaps followed by a time of day, which is ignored."""

LARGEST, SMALLEST = Decimal("1.7976931348623157e308"), Decimal("1e-300")
"""Beyond these a number written as text is read as infinite, or as zero, by engines whose cast would fail."""


@dataclass(frozen=True)
class Reading:
    """One column, its texts trimmed, read in some way: null where it is no such thing, never an error.

    Attributes:
        column: What is read.
        lenient: Whether the engine has a cast that gives null where it fails.
    """

    column: ir.Column
    lenient: bool = True

    @property
    def is_fraction(self) -> bool:
        """Whether the column holds numbers with a fractional part, which engines write in different ways."""
        kind = self.column.type()
        return bool(kind.is_floating() or kind.is_decimal())

    @cached_property
    def text(self) -> ir.StringColumn:
        """Whole floats without their `.0`; truths as true and false."""
        kind = self.column.type()
        if kind.is_boolean():
            return self.column.ifelse("true", "false")
        if not self.is_fraction:
            return self.column.cast("string")
        small = ibis.ifelse(self.number.abs() <= LARGEST_WHOLE, self.number, ibis.null("float64"))
        whole = ibis.ifelse(small == small.floor(), small, ibis.null("float64")).cast("int64")
        return whole.cast("string").coalesce(self.number.cast("string"))

    @cached_property
    def number(self) -> ir.FloatingColumn:
        """Numbers as floats; false and true, unless written as text, as 0 and 1."""
        kind = self.column.type()
        if kind.is_boolean():
            return self.column.ifelse(1.0, 0.0)
        if kind.is_numeric():
            return self.column.cast("float64")
        if not kind.is_string():
            return self._nothing("float64")
        numeral = ibis.ifelse(self.column.re_search(NUMERAL), self.column, ibis.null("string"))
        finite = numeral.try_cast("float64") if self.lenient else _careful(numeral)
        word = self.column.lower()
        return finite.coalesce(ibis.cases(*((word == key, float(key)) for key in INFINITE_WORDS)))

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
        if kind.is_date():
            return self.column
        if not kind.is_string():
            return self._nothing("date")
        if self.lenient:
            return ibis.ifelse(self.column.re_search(DAY), self.column, ibis.null("string")).try_cast("date")
        return _careful_day(self.column)

    def _nothing(self, kind: str) -> ir.Column:
        return ibis.ifelse(self.column.isnull(), ibis.null(kind), ibis.null(kind))

    @cached_property
    def blank(self) -> ir.BooleanColumn:
        """Whether there is nothing: null, NaN or no text."""
        kind, null = self.column.type(), self.column.isnull()
        if kind.is_string():
            return null | (self.column == "").fill_null(False)
        return null | self.column.isnan().fill_null(False) if kind.is_floating() else null


def canonical_number(text: str) -> float | None:
    """The number that people write as this text, if there is one: "39" stands for 39.0, "39.0" for none."""
    with suppress(ValueError, OverflowError):
        number = float(text)
        return number if value_text(number) == text else None
    return None


def round_half_up(number: Any) -> Any:
    """The nearest whole number, halves away from zero; engines' own functions differ."""
    floor = number.floor().cast("float64")
    rest = number - floor
    return ibis.ifelse((rest > 0.5) | ((rest == 0.5) & (number > 0)), floor + 1, floor)


def ordinal(day: ir.DateColumn) -> ir.IntegerColumn:
    """Days since the beginning of the calendar, as `date.toordinal` counts; engines' own differences vary.

    Years are taken to begin in March, so that the leap day is the last one.
    """
    month = day.month().cast("int64")
    year = day.year().cast("int64") - (month <= 2).ifelse(1, 0)
    shifted = (month + 9) % 12
    leaps = _over(year, 4) - _over(year, 100) + _over(year, 400)
    return year * 365 + leaps + _over(shifted * 153 + 2, 5) + day.day().cast("int64") - 306


def _over(number: ir.IntegerColumn, divisor: int) -> ir.IntegerColumn:
    """The quotient of a whole number that is not negative, rounded down."""
    return (number.cast("float64") / divisor).floor().cast("int64")


def _careful(numeral: ir.StringColumn) -> ir.FloatingColumn:
    """A numeral as a float where a cast fails on what is too large or too small: by way of exact decimals."""
    exact = numeral.cast("decimal")
    size = exact.abs()
    inside = ibis.ifelse(
        (size <= ibis.literal(LARGEST)) & (size >= ibis.literal(SMALLEST)), exact, ibis.null(exact.type())
    )
    beyond = ibis.cases(
        (size < ibis.literal(SMALLEST), 0.0),
        (exact > ibis.literal(LARGEST), float("inf")),
        (exact < ibis.literal(-LARGEST), -float("inf")),
    )
    return inside.cast("float64").coalesce(beyond)


def _careful_day(text: ir.StringColumn) -> ir.DateColumn:
    """A date where a cast fails on days that no month has: by way of its parts."""
    known = ibis.ifelse(text.re_search(DAY), text, ibis.null("string"))
    year, month, day = (known.re_extract(DAY, part).cast("int64") for part in (1, 2, 3))
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    february = ibis.ifelse(leap, 29, 28)
    last = ibis.cases((month == 2, february), (month.isin([4, 6, 9, 11]), 30), else_=31)
    sound = (month >= 1) & (month <= 12) & (day >= 1) & (day <= last)
    parts = (ibis.ifelse(sound, part, ibis.null("int64")) for part in (year, month, day))
    return ibis.date(*parts)
