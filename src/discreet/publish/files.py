"""The Parquet files of a release folder: answers, measurements, model and rows as codes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.data.domain import Domain
from discreet.errors import BadRelease
from discreet.models.noisy import NoisyCounts
from discreet.models.relaxed import PRECISION, RelaxedRows
from discreet.models.residuals import ResidualCounts
from discreet.models.rounded import Codes, RoundedRows
from discreet.models.support import Support
from discreet.models.weighted import WHOLE, WeightedRows
from discreet.privacy.measurement import Measurement
from discreet.publish.release import Release
from discreet.publish.tables import answer_batches
from discreet.queries.answers import Answers, Zeros
from discreet.queries.threshold import Threshold

_FLUSH = 2**20

KINDS = {
    RelaxedRows: "relaxed-rows",
    WeightedRows: "weighted-rows",
    RoundedRows: "rounded-rows",
    NoisyCounts: "noisy-counts",
    ResidualCounts: "residuals",
    Zeros: "zeros",
}
"""What release.json calls the source of answers."""


def write_answers(release: Release, path: Path) -> None:
    """Every answer in words."""
    writer: pq.ParquetWriter | None = None
    held: list[pa.Table] = []
    try:
        for batch in answer_batches(release, release.workload):
            held.append(batch)
            if sum(len(table) for table in held) >= _FLUSH:
                writer = _flush(writer, held, path)
        writer = _flush(writer, held, path)
    finally:
        if writer is not None:
            writer.close()


def _flush(writer: pq.ParquetWriter | None, held: list[pa.Table], path: Path) -> pq.ParquetWriter | None:
    if held:
        table = pa.concat_tables(held).unify_dictionaries()
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
        held.clear()
    return writer


def describe(found: Measurement) -> dict[str, Any]:
    """What release.json says of a measurement; its counts are in the file."""
    return {
        "attributes": list(found.threshold.attributes),
        "r": found.threshold.r,
        "queries": len(found.counts),
        "whole": found.cells is None,
        "least": found.least,
        "residual": found.residual,
        "sigma_squared": str(found.sigma_squared),
    }


def write_measurements(measurements: list[Measurement], path: Path) -> None:
    """Noisy counts, one measurement after the other."""
    schema = pa.schema([("measurement", pa.int32()), ("cell", pa.int64()), ("count", pa.int64())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for number, found in enumerate(measurements):
            cells = np.arange(len(found.counts)) if found.cells is None else found.cells
            columns = [
                pa.array(np.full(len(cells), number, dtype=np.int32)),
                pa.array(cells),
                pa.array(found.counts),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def read_measurements(described: list[dict[str, Any]], path: Path) -> list[Measurement]:
    """Measurements from what release.json says of them and the file."""
    if not described:
        return []
    table = pq.read_table(path)
    cells, counts = table["cell"].to_numpy(), table["count"].to_numpy()
    found, start = [], 0
    for entry in described:
        stop = start + entry["queries"]
        found.append(
            Measurement(
                Threshold(entry["attributes"], entry["r"]),
                None if entry["whole"] else cells[start:stop],
                counts[start:stop],
                Fraction(entry["sigma_squared"]),
                entry.get("least"),
                entry.get("residual", False),
            )
        )
        start = stop
    return found


def write_model(model: Answers, path: Path) -> None:
    """The fitted model, where answers come from one."""
    if isinstance(model, RelaxedRows):
        _write_relaxed(model, path)
    elif isinstance(model, WeightedRows):
        _write_weights(model, path)


def _write_relaxed(model: RelaxedRows, path: Path) -> None:
    columns = {}
    for name, size in zip(model.domain.attributes, model.domain.sizes, strict=True):
        flat = pa.array(np.ascontiguousarray(model.block(name).T).reshape(-1))
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, size)
    table = pa.table(columns).replace_schema_metadata({"shares_of": str(1 << PRECISION)})
    pq.write_table(table, path, compression="zstd")


def read_answers(
    described: dict[str, Any],
    domain: Domain,
    measurements: list[Measurement],
    codes: Codes | None,
    path: Path,
    *,
    total_variance: Fraction,
) -> Answers:
    """What answers are read off, from the files of a folder."""
    total, kind = described["total"], described["answers_from"]
    if kind == "zeros":
        return Zeros(domain, total)
    if kind == "noisy-counts":
        return NoisyCounts(domain, total, measurements)
    if kind == "residuals":
        return ResidualCounts(domain, total, measurements, total_variance=float(total_variance))
    if kind == "rounded-rows":
        if codes is None:
            raise BadRelease(f"{path} is damaged: codes.parquet, which holds its answers, is missing.")
        return RoundedRows(domain, total, codes)
    if kind == "weighted-rows":
        return _read_weights(domain, total, path / "model.parquet")
    table = pq.read_table(path / "model.parquet")
    blocks = [
        table[name].combine_chunks().flatten().to_numpy().reshape(-1, size).T
        for name, size in zip(domain.attributes, domain.sizes, strict=True)
    ]
    return RelaxedRows(domain, total, np.concatenate(blocks))


def _write_weights(model: WeightedRows, path: Path) -> None:
    """Rows with a weight: their codes, and as the last column their shares of a whole."""
    kept = np.flatnonzero(model.shares)
    codes = model.domain.unravel(kept) if model.support.codes is None else model.support.codes[kept]
    name = "weight"
    while name in model.domain:
        name += "_"
    table = pa.table({**_columns(codes, model.domain), name: model.shares[kept]})
    pq.write_table(table.replace_schema_metadata({"shares_of": str(WHOLE)}), path, compression="zstd")


def _read_weights(domain: Domain, total: int, path: Path) -> WeightedRows:
    table = pq.read_table(path)
    return WeightedRows(total, Support(domain, _codes_in(table, domain)), table.columns[-1].to_numpy())


def write_codes(codes: Codes, domain: Domain, path: Path) -> None:
    """Rows as codes of their values."""
    pq.write_table(pa.table(_columns(codes, domain)), path, compression="zstd")


def _columns(codes: Codes, domain: Domain) -> dict[str, Any]:
    return {
        name: codes[:, at].astype(np.min_scalar_type(size - 1))
        for at, (name, size) in enumerate(zip(domain.attributes, domain.sizes, strict=True))
    }


def read_codes(domain: Domain, path: Path) -> Codes | None:
    """The same rows, if there are any."""
    return _codes_in(pq.read_table(path), domain) if path.is_file() else None


def _codes_in(table: pa.Table, domain: Domain) -> Codes:
    return np.stack([table[name].to_numpy().astype(np.int64) for name in domain], axis=1)
