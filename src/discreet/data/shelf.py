"""Shelf: exact counts that were asked for, in memory while they are few and in private files beyond.

A pass is some marginals counted together. Its counts go to two files, and then a line about it to a list, so that a
count which is interrupted can go on with the passes that were finished.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from discreet.data import scratch
from discreet.data.engine import Portion
from discreet.data.scratch import Scratch
from discreet.data.sparse import Sparse
from discreet.errors import BadData

Attributes = tuple[str, ...]

BYTES_PER_CELL = 16
"""A cell and its count, 64 bits each: sums and products of counts must not overflow."""

LIST, TABLE = "passes.jsonl", "table.json"


@dataclass
class Shelf:
    """Where counts are kept.

    Attributes:
        limit: Bytes of counts held in memory.
        parent: Where private files go; None for the system's temporary folder.
        folder: The private folder, once there is one.
        lasting: Whether a later run may go on with the files.
    """

    limit: int
    parent: Path | None = None
    folder: Scratch | None = None
    lasting: bool = False
    _held: int = 0
    _passes: int = 0
    _found: dict[Attributes, Sparse] = field(default_factory=dict)

    @staticmethod
    def lasting_at(folder: Scratch, *, limit: int, rows: int, digest: int) -> Shelf:
        """A shelf that goes on with what an earlier run counted, if it was the same table.

        Raises:
            BadData: The table has changed in between.
        """
        shelf = Shelf(limit, folder.path.parent, folder, lasting=True)
        table = json.dumps({"rows": rows, "digest": digest}).encode()
        try:
            with scratch.writing(folder.path):
                found = (folder.path / TABLE).read_bytes() if (folder.path / TABLE).is_file() else b""
                folder.keep = found.endswith(b"}")
                if not folder.keep:  # new, or cut off before anything was counted
                    (folder.path / LIST).unlink(missing_ok=True)
                    _write_private(folder.path / TABLE, table)
                elif found != table:
                    raise _changed(folder.path)
                else:
                    shelf._reopen()
        except BaseException:
            folder.close()
            raise
        return shelf

    @contextmanager
    def counting(self) -> Iterator[None]:
        """While this goes on, the files of a lasting shelf survive whatever happens."""
        if self.folder is not None:
            self.folder.keep = self.lasting
        yield
        if self.folder is not None:
            self.folder.keep = False

    def get(self, attributes: Attributes) -> Sparse | None:
        """Counts that an earlier call has left on the shelf, or an earlier run if it is a lasting one."""
        return self._found.get(attributes)

    def fits(self, cells: int) -> bool:
        """Whether so many further cells may be held in memory."""
        return not self.lasting and self._held + cells * BYTES_PER_CELL <= self.limit

    def add(self, sets: Sequence[Attributes], stretches: Iterable[Portion], *, rows: int, cells: int) -> list[Sparse]:
        """Take in a pass.

        Args:
            sets: The marginals.
            stretches: Their counts.
            rows: Of the table: every marginal must add up to it.
            cells: At most so many will come.

        Raises:
            BadData: A marginal does not add up, so the table has changed; or the disk is full.
        """
        kept = self._hold(len(sets), stretches, rows) if self.fits(cells) else self._put(sets, stretches, rows)
        self._found.update(zip(sets, kept, strict=True))
        return kept

    def close(self) -> None:
        """Remove the files, unless a count was interrupted and may go on."""
        if self.folder is not None:
            self.folder.close()

    def _hold(self, number: int, stretches: Iterable[Portion], rows: int) -> list[Sparse]:
        parts: list[list[Portion]] = [[] for _ in range(number)]
        for stretch in stretches:
            parts[stretch[0]].append(stretch)
        kept = [_joined(part) for part in parts]
        for found in kept:
            _require_sum(int(found.values.sum()), rows)
            self._held += len(found.cells) * BYTES_PER_CELL
        return kept

    def _put(self, sets: Sequence[Attributes], stretches: Iterable[Portion], rows: int) -> list[Sparse]:
        if self.folder is None:
            self.folder = scratch.make(self.parent)
        name = self._passes
        self._passes += 1
        with scratch.writing(self.folder.path):
            lengths = self._write(name, len(sets), stretches, rows)
            kept = self._map(name, lengths)
            if self.lasting:
                self._note(name, sets, lengths)
        return kept

    def _write(self, name: int, number: int, stretches: Iterable[Portion], rows: int) -> list[int]:
        lengths, sums = [0] * number, [0] * number
        with _private_file(self._path(name, "cells")) as cells, _private_file(self._path(name, "values")) as values:
            for marginal, some_cells, some_values in stretches:
                cells.write(np.ascontiguousarray(some_cells, dtype=np.int64).data)
                values.write(np.ascontiguousarray(some_values, dtype=np.int64).data)
                lengths[marginal] += len(some_cells)
                sums[marginal] += int(some_values.sum())
            for file in (cells, values):
                file.flush()
                if self.lasting:
                    os.fsync(file.fileno())
        for found in sums:
            _require_sum(found, rows)
        return lengths

    def _map(self, name: int, lengths: Sequence[int]) -> list[Sparse]:
        """The counts of a pass as arrays that the system reads from the files when they are used."""
        if not sum(lengths):
            empty = np.zeros(0, dtype=np.int64)
            return [Sparse(empty, empty) for _ in lengths]
        cells, values = (np.memmap(self._path(name, kind), dtype=np.int64, mode="r") for kind in ("cells", "values"))
        ends = np.cumsum(lengths)
        parts = [slice(stop - size, stop) for size, stop in zip(lengths, ends, strict=True)]
        return [Sparse(cells[part], values[part]) for part in parts]

    def _note(self, name: int, sets: Sequence[Attributes], lengths: Sequence[int]) -> None:
        line = json.dumps({"pass": name, "sets": sets, "lengths": lengths})
        with _private_file(self._path(LIST), mode="ab") as file:
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _reopen(self) -> None:
        """Find the finished passes of an earlier run; a line or a file that was cut off ends the list."""
        if not self._path(LIST).is_file():
            return
        whole = 0
        for line in self._path(LIST).read_bytes().splitlines(keepends=True):
            try:
                entry = json.loads(line)
                kept = self._map(entry["pass"], entry["lengths"])
                sound = line.endswith(b"\n") and all(len(found.cells) == len(found.values) for found in kept)
                sound = sound and [len(found.cells) for found in kept] == entry["lengths"]
            except (ValueError, KeyError, TypeError, OSError):
                break
            if not sound:
                break
            whole += len(line)
            self._found.update(zip(map(tuple, entry["sets"]), kept, strict=True))
            self._passes = entry["pass"] + 1
        os.truncate(self._path(LIST), whole)

    def _path(self, *parts: object) -> Path:
        if self.folder is None:
            raise FileNotFoundError
        return self.folder.path / "-".join(map(str, parts))


def _joined(parts: Sequence[Portion]) -> Sparse:
    if len(parts) == 1:
        return Sparse(parts[0][1], parts[0][2])
    empty = np.zeros(0, dtype=np.int64)
    return Sparse(
        np.concatenate([empty, *(part[1] for part in parts)]), np.concatenate([empty, *(p[2] for p in parts)])
    )


def _require_sum(found: int, rows: int) -> None:
    if found != rows:
        raise BadData(
            "The table changed while it was counted: marginals do not add up to its number of rows. Run again when "
            "nobody writes to it, or on a copy. What was charged before stays charged."
        )


def _changed(folder: Path) -> BadData:
    return BadData(
        f"The table has changed since the count that was begun in {folder}: it has other rows now, and counts of two "
        "states of a table must not be mixed. Restore it to go on with that count; or remove that folder, or choose "
        "another --scratch DIR, to count the table as it is now. What was charged before stays charged."
    )


def _private_file(path: Path, mode: str = "wb") -> BinaryIO:
    opener: Callable[[str, int], int] = lambda name, flags: os.open(name, flags, 0o600)  # noqa: E731
    return open(path, mode, opener=opener)  # type: ignore[return-value]


def _write_private(path: Path, content: bytes) -> None:
    with _private_file(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
