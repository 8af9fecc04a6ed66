"""Files that commands write where they are told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import BadSetting


def require_free(path: str) -> None:
    """Refuse to write over a file."""
    if Path(path).is_file():
        raise BadSetting(f"{path} exists and may be needed; remove it, or choose another name.")


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Say so where a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror or error}.") from None
