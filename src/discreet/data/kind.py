"""The kinds of attribute a schema can have: what each code stands for. Public."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from discreet.data.attribute import (
    BLANKS,
    LARGEST_WHOLE,
    Attribute,
    Scalar,
    finite,
    value_text,
    value_type,
    whole,
)

PERIODS = ("year", "quarter", "month", "week", "day")


@dataclass(frozen=True, kw_only=True)
class Categorical(Attribute):
    """A list of values: texts, numbers or booleans."""

    values: tuple[Scalar, ...]

    kind = "categorical"
    outside_choices = ("refuse", "other")

    def _check(self) -> None:
        if not self.values:
            raise self.bad('"values" must list at least one value')
        for value in self.values:
            self._check_value(value)
        twice = [label for label, times in Counter(self.labels()).items() if times > 1]
        if twice:
            raise self.bad(f"{twice[0]!r} stands for two values; every value needs its own text")

    def _check_value(self, value: object) -> None:
        match value:
            case bool():
                return
            case int():
                whole(self.name, "values", value, least=-LARGEST_WHOLE)
            case float():
                finite(self.name, "values", value)
            case str():
                self._check_text(value)
            case _:
                raise self.bad(f'"values" may hold texts, numbers and booleans, not {value!r}')

    def _check_text(self, value: str) -> None:
        if not value or value != value.strip(BLANKS):
            raise self.bad(
                f"the value {value!r} is blank or has blanks around it, which reading removes; "
                'write it without them, and use "missing": true for blank cells'
            )

    @property
    def regular(self) -> int:
        """One code per listed value."""
        return len(self.values)

    def _label(self, code: int) -> str:
        return value_text(self.values[code])

    def _find(self, text: str) -> int | None:
        if text in self.of_type("text"):
            return self.of_type("text")[text]
        with suppress(ValueError):
            return self.of_type("number").get(float(text))
        return self.of_type("truth").get(text.lower() == "true") if text.lower() in ("true", "false") else None

    def of_type(self, wanted: str) -> dict[Scalar, int]:
        """Codes by value, for the values of one type: "text", "number" or "truth"."""
        return {value: code for code, value in enumerate(self.values) if value_type(value) == wanted}

    def _details(self) -> dict[str, Any]:
        return {"values": list(self.values)}


class Whole(Attribute):
    """Kinds whose values are the integers `least .. largest`, `step` of them to a code."""

    @property
    @abstractmethod
    def least(self) -> int:
        """Smallest integer."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """Largest integer."""

    @property
    def step(self) -> int:
        """Integers per code."""
        return 1

    @property
    def regular(self) -> int:
        """One code per bin, the last one possibly narrower."""
        return (self.largest - self.least) // self.step + 1

    def bounds(self, code: int) -> tuple[int, int]:
        """First and last integer of a code."""
        low = self.least + code * self.step
        return low, min(low + self.step - 1, self.largest)

    def _label(self, code: int) -> str:
        low, high = self.bounds(code)
        if low == high:
            return str(low)
        return f"{low}-{high}" if low >= 0 else f"{low} to {high}"

    def _find(self, text: str) -> int | None:
        with suppress(ValueError):
            value = float(text)
            if value.is_integer() and self.least <= value <= self.largest:
                return (int(value) - self.least) // self.step
        return None


@dataclass(frozen=True, kw_only=True)
class Codes(Whole):
    """Integers `0 .. count-1` whose meaning is kept elsewhere."""

    count: int

    kind = "codes"

    def _check(self) -> None:
        whole(self.name, "size", self.count, least=1)

    @property
    def least(self) -> int:
        """Codes start at 0."""
        return 0

    @property
    def largest(self) -> int:
        """The last code."""
        return self.count - 1

    def _details(self) -> dict[str, Any]:
        return {"size": self.count}


@dataclass(frozen=True, kw_only=True)
class Integer(Whole):
    """Integers between two bounds, both included, in bins of `width`."""

    low: int
    high: int
    width: int = 1

    kind = "integer"

    def _check(self) -> None:
        whole(self.name, "min", self.low, least=-LARGEST_WHOLE)
        whole(self.name, "max", self.high, least=-LARGEST_WHOLE)
        whole(self.name, "width", self.width, least=1)
        if self.low > self.high:
            raise self.bad(f'"min" {self.low} is above "max" {self.high}')

    @property
    def least(self) -> int:
        """The lower bound."""
        return self.low

    @property
    def largest(self) -> int:
        """The upper bound."""
        return self.high

    @property
    def step(self) -> int:
        """Width of a bin."""
        return self.width

    def _details(self) -> dict[str, Any]:
        return {"min": self.low, "max": self.high} | ({"width": self.width} if self.width > 1 else {})


@dataclass(frozen=True, kw_only=True)
class Numeric(Attribute):
    """Numbers in bins `[edge, next edge)`; the last bin includes its upper edge."""

    edges: tuple[float, ...]

    kind = "numeric"

    def _check(self) -> None:
        if len(self.edges) < 2:
            raise self.bad('"edges" must list at least two numbers')
        object.__setattr__(self, "edges", tuple(finite(self.name, "edges", edge) for edge in self.edges))
        if any(low >= high for low, high in pairwise(self.edges)):
            raise self.bad('"edges" must increase from each to the next')

    @property
    def regular(self) -> int:
        """One code per bin."""
        return len(self.edges) - 1

    def _label(self, code: int) -> str:
        low, high = (value_text(edge) for edge in self.edges[code : code + 2])
        return f"[{low}, {high}{']' if code == self.regular - 1 else ')'}"

    def _find(self, text: str) -> int | None:
        with suppress(ValueError):
            value = float(text)
            if self.edges[0] <= value <= self.edges[-1]:
                return min(bisect_right(self.edges, value), self.regular) - 1
        return None

    def _details(self) -> dict[str, Any]:
        return {"edges": [int(edge) if abs(edge) < 1e15 and edge.is_integer() else edge for edge in self.edges]}


@dataclass(frozen=True, kw_only=True)
class Date(Attribute):
    """Days between two dates, both included, by calendar period (weeks start on Monday)."""

    start: date
    end: date
    period: str

    kind = "date"

    def _check(self) -> None:
        if self.period not in PERIODS:
            raise self.bad(f'"period" must be one of {", ".join(PERIODS)}, not {self.period!r}')
        if self.start > self.end:
            raise self.bad(f'"start" {self.start} is after "end" {self.end}')

    @property
    def regular(self) -> int:
        """One code per period that start..end touches."""
        return self.position_of(self.end) - self.position_of(self.start) + 1

    def bounds(self, code: int) -> tuple[date, date]:
        """First and last day of a code, within start and end."""
        position = self.position_of(self.start) + code
        first, last = self.first_of(position), self.last_of(position)
        return max(first, self.start), min(last, self.end)

    def position_of(self, day: date) -> int:
        """Number of the period that holds a day, counted from the beginning of the calendar."""
        match self.period:
            case "year":
                return day.year
            case "quarter":
                return day.year * 4 + (day.month - 1) // 3
            case "month":
                return day.year * 12 + day.month - 1
            case "week":
                return (day.toordinal() - 1) // 7
        return day.toordinal()

    def first_of(self, position: int) -> date:
        """First day of a period, given its number."""
        match self.period:
            case "year":
                return date(position, 1, 1)
            case "quarter":
                return date(position // 4, position % 4 * 3 + 1, 1)
            case "month":
                return date(position // 12, position % 12 + 1, 1)
            case "week":
                return date.fromordinal(position * 7 + 1)
        return date.fromordinal(position)

    def last_of(self, position: int) -> date:
        """The day before the next period, or the end of the calendar."""
        with suppress(ValueError):
            return self.first_of(position + 1) - timedelta(days=1)
        return date.max

    def _label(self, code: int) -> str:
        day = self.first_of(self.position_of(self.start) + code)
        match self.period:
            case "year":
                return f"{day.year:04}"
            case "quarter":
                return f"{day.year:04}-Q{(day.month + 2) // 3}"
            case "month":
                return f"{day.year:04}-{day.month:02}"
            case "week":
                year, week, _ = day.isocalendar()
                return f"{year:04}-W{week:02}"
        return day.isoformat()

    def _find(self, text: str) -> int | None:
        with suppress(ValueError):
            day = date.fromisoformat(text)
            if self.start <= day <= self.end:
                return self.position_of(day) - self.position_of(self.start)
        return None

    def _details(self) -> dict[str, Any]:
        return {"start": self.start.isoformat(), "end": self.end.isoformat(), "period": self.period}
