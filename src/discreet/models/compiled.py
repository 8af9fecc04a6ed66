"""Compiled code: kept while it may be used again, and let go of before there is too much of it.

Every fit with new shapes compiles anew, and what was compiled stays mapped into memory. On Linux a process may hold
some 65,000 maps; a fit takes up to hundreds, and past the limit the compiler crashes the whole process.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import jax

_MAPS = Path("/proc/self/maps")
_MOST_MAPS = 2**14
_FITS = 8
"""Fits from one look at the maps to the next."""

_fits = count(1)
_clear: Callable[[], None] = jax.clear_caches


def trim() -> None:
    """Called at the start of each fit: drops everything compiled so far if there is much of it."""
    if next(_fits) % _FITS == 0 and _MAPS.is_file():
        with _MAPS.open("rb") as maps:
            many = sum(1 for _ in maps)
        if many > _MOST_MAPS:
            _clear()
