"""Attribute: one column as a finite list of values; what all kinds have in common. Public."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.errors import BadSchema, BadWorkload

BLANKS = " \t\n\r\v\f"
"""Characters which may surround a text in a file without being part of it."""

LARGEST_WHOLE = 2**52
"""Integers up to here, and the differences of any two of them, are exact as 64-bit floats in every engine."""

OUTSIDE = ("refuse", "clip", "other")

Scalar = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Attribute(ABC):
    """One column of the table as a finite list of values.

    Codes run over the regular values, then "other" (if `outside` is "other"), then "missing" (if allowed).

    Attributes:
        name: Column name.
        missing: None if every row must have a value; else the texts that mean missing, besides null, NaN and
            blank text, which always do.
        outside: What happens to a value which is none of the regular ones: "refuse" the table, "clip" it to
            the nearest bin, or count it as "other".
    """

    name: str
    missing: tuple[str, ...] | None = None
    outside: str = "refuse"

    kind: ClassVar[str]
    outside_choices: ClassVar[tuple[str, ...]] = OUTSIDE

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise BadSchema(f"An attribute needs a name, a non-empty text, not {self.name!r}.")
        if self.outside not in self.outside_choices:
            choices = ", ".join(map(repr, self.outside_choices))
            raise self.bad(f'"outside" must be one of {choices}, not {self.outside!r}')
        if any(not isinstance(text, str) or text != text.strip(BLANKS) or not text for text in self.missing or ()):
            raise self.bad('"missing" must be true or a list of texts without blanks around them')
        self._check()
        for text in self.missing or ():
            if self._find(text) is not None or (text == "other" and self.outside == "other"):
                raise self.bad(f"{text!r} is both a value and a text for missing; keep one of the two")

    def bad(self, complaint: str) -> BadSchema:
        """An error about this attribute, to be raised."""
        return bad(self.name, complaint)

    @property
    @abstractmethod
    def regular(self) -> int:
        """Number of values besides "other" and "missing"."""

    @abstractmethod
    def _check(self) -> None:
        """Refuse contradictory settings."""

    @abstractmethod
    def _label(self, code: int) -> str:
        """Text of a regular code."""

    @abstractmethod
    def _find(self, text: str) -> int | None:
        """Regular code of a value written as text, if there is one."""

    @abstractmethod
    def _details(self) -> dict[str, Any]:
        """The keys of the schema file that only this kind has."""

    @property
    def other_code(self) -> int | None:
        """Code of values outside the regular ones, if they have one."""
        return self.regular if self.outside == "other" else None

    @property
    def missing_code(self) -> int | None:
        """Code of missing values, if they are allowed."""
        return None if self.missing is None else self.regular + (self.outside == "other")

    @property
    def size(self) -> int:
        """Number of codes."""
        return self.regular + (self.outside == "other") + (self.missing is not None)

    def label(self, code: int) -> str:
        """Text of one code."""
        if code == self.missing_code:
            return "missing"
        return "other" if code == self.other_code else self._label(code)

    def labels(self) -> tuple[str, ...]:
        """One text per code, in the order of codes."""
        return tuple(self.label(code) for code in range(self.size))

    def code_of(self, text: str) -> int:
        """Code of a value or a label as someone would type it.

        Raises:
            BadWorkload: No code stands for the text. Values outside the schema are refused here even where
                rows would be clipped, because in a query they are more likely a slip.
        """
        wanted = text.strip(BLANKS)
        if self.missing_code is not None and wanted in ("missing", *(self.missing or ())):
            return self.missing_code
        found = self._find(wanted)
        if found is None:
            found = next((code for code in range(self.size) if self.label(code) == wanted), None)
        if found is None:
            raise BadWorkload(f"{self.name!r} has no value {wanted!r}. Its values are: {self._sample()}.")
        return found

    def to_json(self) -> dict[str, Any]:
        """The entry of a schema file."""
        entry: dict[str, Any] = {"name": self.name, "type": self.kind, **self._details()}
        if self.missing is not None:
            entry["missing"] = list(self.missing) or True
        if self.outside != "refuse":
            entry["outside"] = self.outside
        return entry

    def _sample(self) -> str:
        shown = [self.label(code) for code in range(min(self.size, 8))]
        if self.size > 9:
            shown.append("...")
        if self.size > 8:
            shown.append(self.label(self.size - 1))
        return ", ".join(shown)


def value_type(value: Scalar) -> str:
    """How a category value is compared with a column: as "text", "number" or "truth"."""
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"


def value_text(value: Scalar) -> str:
    """A value as people write it: 39 rather than 39.0, true rather than True."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_WHOLE:
        return str(int(value))
    return str(value)


def bad(name: object, complaint: str) -> BadSchema:
    """An error about the attribute of that name, to be raised."""
    return BadSchema(f"Attribute {name!r}: {complaint}.")


def finite(name: object, key: str, value: object) -> float:
    """The number as a float; anything but a finite number is refused."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
            if math.isfinite(number):
                return number
    raise bad(name, f'"{key}" must be a finite number, not {value!r}')


def whole(name: object, key: str, value: object, *, least: int) -> int:
    """The number itself; anything but an integer that every engine holds exactly is refused."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST_WHOLE:
        return value
    raise bad(name, f'"{key}" must be a whole number from {least} to {LARGEST_WHOLE}, not {value!r}')
