"""Scratch: private folders for what does not fit in memory. They hold codes and exact counts, never for publication.

A folder is readable by its owner only and locked while it is in use. It is removed when its table is dropped, at the
end of the program, and by `clean_up`, which signal handlers call; one that a killed program left behind is removed by
the next program that makes one beside it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from discreet.errors import BadData, BadSetting

PREFIX = "discreet-scratch-"
LOCK = "lock"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_OPEN: dict[Path, Scratch] = {}
"""Folders in use by this process."""


@dataclass
class Scratch:
    """A private folder, in use until it is closed.

    Attributes:
        path: The folder.
        keep: Whether closing leaves it there, for a later run to go on with.
    """

    path: Path
    _lock: int
    keep: bool = False
    _process: int = field(default_factory=os.getpid)

    def close(self) -> None:
        """Remove the folder, unless it is to be kept, and let go of it. A forked child's copy does nothing."""
        if _OPEN.get(self.path) is not self or self._process != os.getpid():
            return
        del _OPEN[self.path]
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self._lock)


def make(parent: Path | None = None) -> Scratch:
    """A new private folder, under the system's folder for temporary files or another.

    Raises:
        BadSetting: Nothing can be written there.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    with _refused(place):
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))  # mode 0700
        return _enter(path)


def resume(path: Path) -> Scratch:
    """A private folder of that name, as an earlier run left it or new.

    Raises:
        BadSetting: Nothing can be written there, or another program is using it, or others might read it.
    """
    with _refused(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise BadSetting(f"{path} must be a folder that is yours and that nobody else may read; remove it.")
        return _enter(path)


def clean_up() -> None:
    """Close every folder of this process; for the end of the program and for signal handlers."""
    for scratch in list(_OPEN.values()):
        scratch.close()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the file system complains about into an error of ours.

    Raises:
        BadData: The disk is full, or cannot be written.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in FULL
        state = "is full" if full else f"cannot be written ({error.strerror or type(error).__name__})"
    else:
        return
    raise BadData(
        f"The disk that holds {path} {state}, so counting stopped. Free some of it, or choose another place with "
        "--scratch DIR (scratch=DIR in Python), and run again. What was charged before stays charged."
    )


def _enter(path: Path) -> Scratch:
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise BadSetting(
            f"{path} is in use: the same table is being counted there. Wait, or choose another --scratch DIR."
        ) from None
    scratch = Scratch(path, lock)
    _OPEN[path] = scratch
    return scratch


def _sweep(place: Path) -> None:
    """Remove folders whose program is gone: nobody holds their lock."""
    for path in place.glob(PREFIX + "*"):
        with suppress(OSError):
            if path.lstat().st_uid != os.geteuid() or not stat.S_ISDIR(path.lstat().st_mode):
                continue
            lock = os.open(path / LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


@contextmanager
def _refused(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
    else:
        return
    raise BadSetting(f"Nothing can be written at {place} ({reason}); choose another place with --scratch DIR.")
