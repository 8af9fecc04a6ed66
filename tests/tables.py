"""Small tables for tests, without any engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Sparse
from discreet.progress import SILENT, Progress

DOMAIN = Domain({"age": 4, "sex": 2, "race": 3, "one": 1})


@dataclass
class CodedTable:
    """What the Curator needs of a table, and a record of what it read."""

    domain: Domain
    codes: NDArray[np.int64]
    reads: list[tuple[str, ...]] = field(default_factory=list)

    def rows(self) -> int:
        return len(self.codes)

    def counts(self, sets: Sequence[tuple[str, ...]], *, progress: Progress = SILENT) -> list[Sparse]:
        self.reads += sets
        return [self._count(attributes) for attributes in sets]

    def _count(self, attributes: tuple[str, ...]) -> Sparse:
        columns = [self.domain.index(name) for name in attributes]
        cells = self.domain.project(attributes).ravel(self.codes[:, columns])
        found, many = np.unique(cells, return_counts=True)
        return Sparse(found, many)


def random_table(rows: int, *, domain: Domain = DOMAIN, seed: int = 0) -> CodedTable:
    rng = np.random.default_rng(seed)
    return CodedTable(domain, np.stack([rng.integers(size, size=rows) for size in domain.sizes], axis=1))


def brute_force(table: CodedTable, attributes: tuple[str, ...], r: int) -> NDArray[np.int64]:
    """Counts of every query of a threshold, straight from its definition."""
    domain = table.domain.project(attributes)
    rows = table.codes[:, [table.domain.index(name) for name in attributes]]
    targets = domain.unravel(np.arange(domain.size))
    matches = (rows[None, :, :] == targets[:, None, :]).sum(axis=2)
    return np.asarray((matches >= r).sum(axis=1))


def write_excerpts(folder: Path, *, rows: int = 120) -> None:
    """Invented rows in the shape of the ACS excerpts, with a data dictionary."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from discreet.experiments import acs

    rng = np.random.default_rng(0)
    listed = {name: {"values": {"N": "not applicable", "1": "yes", "2": "no"}} for name in acs.COLUMNS}
    ranges = {"AGEP": {"min": 0, "max": 99}, "NOC": {"N": "not applicable", "0": "none", "min": 1, "max": 19}}
    columns = {name: rng.choice(["N", "1", "2"], size=rows) for name in acs.COLUMNS}
    columns["AGEP"] = rng.integers(100, size=rows).astype(str)
    columns["PUMA"] = np.full(rows, "25-00503")  # a column that nobody asks for
    columns[acs.EXCERPT] = rng.choice(acs.EXCERPTS, size=rows)
    path, dictionary = acs.files(folder)
    pq.write_table(pa.table(columns), path)
    dictionary.write_text(json.dumps(listed | {name: {"values": values} for name, values in ranges.items()}))
