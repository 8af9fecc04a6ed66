"""Files that commands write where they are told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import BadSetting


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Say so where a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror or error}.") from None
