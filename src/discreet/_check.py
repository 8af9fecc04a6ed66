"""Argument checks that share one message grammar: `name must be ..., not value.`"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from fractions import Fraction

from discreet.errors import BadSetting

LEAST_MEMORY = 64 * 2**20


def positive(name: str, value: float | Fraction) -> None:
    """Refuse anything but a finite number above zero."""
    if not _is_number(value) or not value > 0:
        raise BadSetting(f"{name} must be a positive number, not {value!r}.")


def fraction(name: str, value: float) -> None:
    """Refuse anything but a number in [0, 1)."""
    if not _is_number(value) or not 0 <= value < 1:
        raise BadSetting(f"{name} must be at least 0 and below 1, not {value!r}.")


def whole(name: str, value: int, *, least: int = 1) -> None:
    """Refuse anything but an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadSetting(f"{name} must be a whole number of at least {least}, not {value!r}.")


def one_of(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a word that is not in the list."""
    known = list(choices)
    if value not in known:
        raise BadSetting(f"{name} must be one of {', '.join(known)}, not {value!r}.")


def size(name: str, value: str | int) -> int:
    """An amount of memory in bytes, from a text such as `2GB` or `512 MB`, or a number; at least 64 MB."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?\s*", str(value), re.IGNORECASE)
    found = 0 if match is None else int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
    if isinstance(value, bool) or found < LEAST_MEMORY:
        raise BadSetting(f"{name} must be a size of at least 64MB, such as 2GB, not {value!r}.")
    return found


def _is_number(value: object) -> bool:
    if isinstance(value, Fraction):
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
