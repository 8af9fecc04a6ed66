"""Propose a schema by looking at the rows: a start for the owner to review, not a public fact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from discreet.data.attribute import LARGEST_WHOLE, Attribute
from discreet.data.kind import Categorical, Date, Integer, Numeric
from discreet.data.schema import Schema
from discreet.errors import BadData

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from discreet.data.source import Source

FEW_VALUES = 20
"""Up to here, numbers and texts are listed as categories."""

MANY_VALUES = 500
"""Above this, texts are left out: such lists are names or remarks more often than categories."""

SMALL_RANGE = 150
"""Integers in a range up to this long keep a code each."""

BINS = 20
"""Roughly how many bins wide numbers get."""

MARKS = ("na", "n/a", "null", "none", "nan", "?", "-")
"""What stands for a missing number or date in many files, in small or capital letters."""

MONTHLY_YEARS = 10
"""Dates over more years than this are kept by year, others by month."""

WARNING = "Drafted from the rows: review every value and bound, or use it for a public table only."


@dataclass(frozen=True)
class Glance:
    """What was seen in one column."""

    name: str
    rows: int
    present: int
    marked: int
    distinct: int
    numbers: int
    wholes: int
    truths: int
    days: int
    low: float | None
    high: float | None
    first: date | None
    last: date | None

    @property
    def unmarked(self) -> int:
        """Values that are not marks of missing ones."""
        return self.present - self.marked


def draft(source: Any, *, table: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """Propose a schema for a table: the content of a schema file, and the remarks in it.

    Privacy:
        The draft looks at the values, so it is as private as the rows until its owner has reviewed it. The
        file says so in `"drafted_from_data": true`.

    Args:
        source: As for `read`.
        table: Which table of a database.

    Raises:
        BadData: The source cannot be read, or no column can be described.
    """
    from discreet.data.source import open_source, veiled  # slow to import

    origin = open_source(source, table=table)
    try:
        schema = veiled(lambda: _draft(origin), "The rows cannot be read to the end.")
    finally:
        origin.close()
    return schema.to_json(), list(schema.notes)


def _draft(origin: Source) -> Schema:
    notes, attributes = [WARNING], []
    for place, glance in enumerate(_look(origin)):
        reason = _unfit(glance)
        if reason:
            notes.append(f"{glance.name or f'column {place + 1}'}: left out, {reason}.")
        else:
            attributes.append(_propose(glance, origin, place))
    if not attributes:
        raise BadData("No column can be described: all are empty or hold too many different texts.")
    return Schema(tuple(attributes), drafted_from_data=True, notes=tuple(notes))


def _look(origin: Source) -> list[Glance]:
    """Summarise every column in one pass over the rows."""
    from discreet.data.reading import trimmed  # slow to import

    rows = trimmed(origin.rows)
    summary = {"rows": rows.count()}
    for place in range(len(origin.columns)):
        summary |= {f"{key} {place}": value for key, value in _summary(rows[f"c{place}"]).items()}
    (found,) = origin.run(rows.aggregate(**summary)).read_all().to_pylist()
    return [
        Glance(name=name, rows=found["rows"], **{key: found[f"{key} {place}"] for key in _KEYS})
        for place, name in enumerate(origin.columns)
    ]


_KEYS = ("present", "marked", "distinct", "numbers", "wholes", "truths", "days", "low", "high", "first", "last")


def _summary(column: ir.Column) -> dict[str, Any]:
    from discreet.data.cell import Reading  # slow to import

    reading = Reading(column)
    number = reading.number.nullif(math.inf).nullif(-math.inf)
    finite = ~reading.blank & number.notnull() & ~number.isnan().fill_null(False)
    small = finite & (number.abs() <= LARGEST_WHOLE)
    dated = reading.day.between(date.min, date.max).fill_null(False)
    return {
        "present": column.count(where=~reading.blank),
        "marked": column.count(where=~reading.blank & reading.text.lower().isin(MARKS)),
        "distinct": reading.text.nunique(where=~reading.blank),
        "numbers": column.count(where=finite),
        "wholes": column.count(where=small & (number.clip(-LARGEST_WHOLE, LARGEST_WHOLE) % 1 == 0)),
        "truths": column.count(where=~reading.blank & reading.truth.notnull()),
        "days": column.count(where=dated),
        "low": number.min(where=finite),
        "high": number.max(where=finite),
        "first": reading.day.min(where=dated),
        "last": reading.day.max(where=dated),
    }


def _unfit(glance: Glance) -> str | None:
    """Why a column cannot be described, if so."""
    if not glance.name or not glance.present:
        return "it has no values" if glance.name else "it has no name"
    if glance.unmarked in (glance.numbers, glance.days) or glance.distinct <= FEW_VALUES:
        return None
    if glance.distinct > 0.9 * glance.present:
        return "almost every row has its own text, as in a name or an identifier"
    if glance.distinct > MANY_VALUES:
        return f"it has more than {MANY_VALUES} different texts; list those that matter and use an outside value"
    return None


def _propose(glance: Glance, origin: Source, place: int) -> Attribute:
    common: dict[str, Any] = {"name": glance.name, "missing": () if glance.present < glance.rows else None}
    dates, numbers = (many == glance.unmarked > 0 for many in (glance.days, glance.numbers))
    if not dates and (not numbers or glance.distinct <= FEW_VALUES):
        return _categorical(glance, _texts(origin, place), common)
    if glance.marked:
        common |= {"missing": tuple(text for text in _texts(origin, place) if text.lower() in MARKS)}
    if dates:
        return _dates(glance, common)
    low, high = float(glance.low or 0), float(glance.high or 0)
    if glance.wholes == glance.unmarked and high - low < SMALL_RANGE:
        return Integer(low=int(low), high=int(high), **common)
    return Numeric(edges=_round_edges(low, high), **common)


def _categorical(glance: Glance, texts: list[str], common: dict[str, Any]) -> Categorical:
    """The values found, in order: as numbers or truths if all of them are."""
    if glance.numbers == glance.present:
        return Categorical(values=tuple(sorted({_number(text) for text in texts})), **common)
    if glance.truths == glance.present:
        return Categorical(values=tuple(sorted({text.lower() == "true" for text in texts})), **common)
    if common["missing"] is not None and "missing" in texts:
        common = common | {"missing": ("missing",)}
        texts = [text for text in texts if text != "missing"]
    return Categorical(values=tuple(texts), **common)


def _texts(origin: Source, place: int) -> list[str]:
    """The different texts of a column, in order."""
    from discreet.data.cell import Reading  # slow to import
    from discreet.data.reading import trimmed

    reading = Reading(trimmed(origin.rows)[f"c{place}"])
    present = reading.column.as_table().filter(~reading.blank)
    found = origin.run(present.select(text=Reading(present[f"c{place}"]).text).distinct())
    return sorted(found.read_all()["text"].to_pylist())


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= LARGEST_WHOLE else value


def _dates(glance: Glance, common: dict[str, Any]) -> Date:
    """Whole years or months around the dates seen."""
    first, last = glance.first or date.min, glance.last or date.max
    if last.year - first.year >= MONTHLY_YEARS:
        return Date(start=date(first.year, 1, 1), end=date(last.year, 12, 31), period="year", **common)
    month = Date(start=first.replace(day=1), end=last, period="month", **common)
    return Date(start=month.start, end=month.last_of(month.position_of(last)), period="month", **common)


def _round_edges(low: float, high: float) -> tuple[float, ...]:
    """Edges at round numbers, equally spaced, about `BINS` bins around the range."""
    rough = high / BINS - low / BINS
    power = math.floor(math.log10(rough))
    factor = next(factor for factor in (1, 2, 2.5, 5, 10) if factor * 10.0**power >= rough * 0.999)
    step = factor * 10.0**power
    start, stop = math.floor(low / step), math.ceil(high / step)
    return tuple(round(place * step, 1 - power) for place in range(start, stop + 1))
