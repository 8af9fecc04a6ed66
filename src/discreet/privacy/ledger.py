"""Ledger: the append-only record of what was charged, in memory or in a file shared by all releases of one table.

The file is JSON lines: a header that says whose data is protected and the common limit, then one line per charge. A
charge is on disk before the table is read, so a run that dies has still paid.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

from discreet.errors import BadLedger, BudgetExceeded
from discreet.privacy import event as events
from discreet.privacy.event import Event
from discreet.privacy.loss import epsilon_of, rho_of
from discreet.privacy.neighbours import Neighbours

_VERSION = 1


@dataclass(frozen=True)
class Charge:
    """One private step: what was done, for what, by which run."""

    label: str
    event: Event
    run: str = ""
    time: str = ""

    @property
    def rho(self) -> Fraction:
        """Cost in zCDP."""
        return self.event.rho

    def to_json(self) -> dict[str, Any]:
        """One line of a ledger, or of a release."""
        known = {"run": self.run, "time": self.time, "label": self.label}
        words = {key: value for key, value in known.items() if value}
        return {**words, **events.to_json(self.event), "rho": float(self.rho)}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Charge:
        """Read a line back; its cost is computed again from the event."""
        event = events.from_json(entry)
        return Charge(str(entry.get("label", "")), event, str(entry.get("run", "")), str(entry.get("time", "")))


def total_of(charges: Iterable[Charge]) -> Fraction:
    """Sum of charges: zCDP losses add up."""
    return sum((charge.rho for charge in charges), Fraction(0))


@dataclass(frozen=True)
class Limit:
    """What all charges of a ledger together may reach."""

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g} at delta {self.delta:.3g}"

    @property
    def rho(self) -> Fraction:
        """The same in zCDP."""
        return rho_of(self.epsilon, self.delta)


class Ledger:
    """Charges in the order they were made.

    Args:
        neighbours: Whose data is protected: losses of different kinds do not add up, so all runs must agree.
        path: File to keep it in; it is created, or continued. The owner sees to it that it is one table's file: its
            releases may have different schemas.
        limit: What all charges together may reach; None for no common limit. It is fixed when the file is created.
        run: A word that tells this run's charges from other runs'.
    """

    def __init__(
        self, neighbours: Neighbours, *, path: Path | None = None, limit: Limit | None = None, run: str = ""
    ) -> None:
        self._neighbours = neighbours
        self._path = path
        self._run = run
        self.limit = limit
        self._charges: list[Charge] = []
        if path is not None:
            self._open(path)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Everything charged so far, by any run."""
        return tuple(self._charges)

    @property
    def total(self) -> Fraction:
        """What all charges cost together."""
        return total_of(self._charges)

    def record(self, event: Event, label: str) -> Charge:
        """Append one charge, or refuse it; on return it is safely on disk."""
        charge = Charge(label, event, self._run, datetime.now(UTC).isoformat(timespec="seconds"))
        if self._path is None:
            self.require_room(charge.rho, label)
            self._charges.append(charge)
            return charge
        with _locked(self._path) as file:
            self._read(file)  # other runs may have charged since
            self.require_room(charge.rho, label)
            _append(file, charge.to_json())
        self._charges.append(charge)
        return charge

    def take_back(self, charge: Charge) -> None:
        """Forget a charge for which nothing was read, if it is still the last one; else it stays charged."""
        if self._path is not None and not _removed(self._path, charge.to_json()):
            return
        self._charges = [known for known in self._charges if known is not charge]

    def require_room(self, rho: Fraction, label: str) -> None:
        """Refuse what would go beyond the common limit."""
        if self.limit is None or self.total + rho <= self.limit.rho:
            return
        left = max(Fraction(0), self.limit.rho - self.total)
        raise BudgetExceeded(
            f"{label!r} needs rho {float(rho):.4g}, but the shared ledger has {float(left):.4g} of "
            f"{float(self.limit.rho):.4g} left (its limit is {self.limit}) "
            f"after {len(self._charges)} charges.\n  Nothing was read. Next: ask for at most "
            f"epsilon {epsilon_of(left, self.limit.delta):.3g}, or see `discreet ledger` for the record."
        )

    def _open(self, path: Path) -> None:
        try:
            path.touch(exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
        except OSError as error:
            raise BadLedger(f"The ledger {path} cannot be written: {error.strerror}.") from None
        with _locked(path) as file:
            if os.fstat(file.fileno()).st_size == 0:
                limit = None if self.limit is None else asdict(self.limit)
                _append(file, {"ledger": _VERSION, "neighbours": self._neighbours.to_json(), "limit": limit})
            asked = self.limit
            self._read(file)
        if asked is not None and not self._keeps(asked):
            fixed = "no limit" if self.limit is None else f"a limit of {self.limit}"
            raise BadLedger(
                f"{path} was created with {fixed}, which stays; this run asked for {asked}. Leave --ledger-epsilon out "
                "to go by the ledger's own, or start a new ledger."
            )

    def _keeps(self, asked: Limit) -> bool:
        """Whether the limit is the one asked for; its delta may be smaller, which promises more."""
        return self.limit is not None and asked.epsilon == self.limit.epsilon and asked.delta >= self.limit.delta

    def _read(self, file: IO[str]) -> None:
        """Everything in the file, checked."""
        file.seek(0)
        book = _parse(file, self._path)
        if book.neighbours != self._neighbours.to_json():
            raise BadLedger(
                f"{self._path} was kept for other neighbours or rows per person ({book.neighbours}), so losses would "
                "not add up. Ask for the same ones, or start a new ledger."
            )
        self.limit = book.limit
        self._charges = book.charges


@dataclass(frozen=True)
class Book:
    """What a ledger file holds."""

    neighbours: dict[str, Any]
    limit: Limit | None
    charges: list[Charge]


def read_file(path: Path) -> Book:
    """A ledger file, for display."""
    try:
        with path.open(encoding="utf-8") as file:
            return _parse(file, path)
    except OSError as error:
        raise BadLedger(f"{path} cannot be read: {error.strerror}.") from None


def _parse(file: IO[str], path: Path | None) -> Book:
    try:
        text = file.read()
        if text and not text.endswith("\n"):
            raise BadLedger(
                f"{path} ends in the middle of a line: a run was cut off while charging. Complete or remove that line "
                "by hand (removing it forgets a charge whose result was never released)."
            )
        header, *lines = [json.loads(line) for line in text.splitlines()]
        if header["ledger"] != _VERSION:
            raise BadLedger(f"{path} is a ledger of version {header['ledger']}; this program knows {_VERSION}.")
        limit = None if header["limit"] is None else Limit(**header["limit"])
        return Book(header["neighbours"], limit, [Charge.from_json(line) for line in lines])
    except (ValueError, KeyError, TypeError):
        raise BadLedger(f"{path} is not a ledger of discreet.") from None


@contextmanager
def _locked(path: Path) -> Iterator[IO[str]]:
    try:
        opened = path.open("r+", encoding="utf-8")
    except OSError as error:
        raise BadLedger(f"The ledger {path} cannot be written: {error.strerror}.") from None
    with opened as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _removed(path: Path, entry: dict[str, Any]) -> bool:
    """Cut off the last line if it is this entry, and say whether it was."""
    line = json.dumps(entry).encode() + b"\n"
    with _locked(path) as file, suppress(OSError):
        start = os.fstat(file.fileno()).st_size - len(line)
        if start >= 0 and os.pread(file.fileno(), len(line), start) == line:
            os.ftruncate(file.fileno(), start)
            os.fsync(file.fileno())
            return True
    return False


def _append(file: IO[str], entry: dict[str, Any]) -> None:
    """Add one line, and have it on disk: the whole line, or nothing of it."""
    line, end = json.dumps(entry).encode() + b"\n", os.fstat(file.fileno()).st_size
    try:
        if os.pwrite(file.fileno(), line, end) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(file.fileno(), end)
        raise BadLedger(
            f"The ledger {file.name} cannot be written: {error.strerror}. What it would have paid for was not read. "
            "Free some of the disk, or choose another place, and run again."
        ) from None
