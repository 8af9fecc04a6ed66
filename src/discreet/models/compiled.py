"""Compiled code: kept while it is used again, and let go of before there is too much of it.

Every fit with new shapes compiles anew, and what was compiled stays mapped into memory. A process may hold some 65,000
maps; a fit takes hundreds, and past the limit the compiler crashes the whole process.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import jax

_FITS = 32
"""Fits after which everything compiled so far is dropped."""

_fits = count(1)
_clear: Callable[[], None] = jax.clear_caches


def trim() -> None:
    """Called at the start of each fit."""
    if next(_fits) % _FITS == 0:
        _clear()
