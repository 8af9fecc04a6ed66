"""The release folder: Parquet, JSON and one HTML page, readable without this library.

    release.json          what was done, what is promised, what was paid
    synthetic.parquet     synthetic rows in the original schema
    codes.parquet         the same rows as codes 0, 1, ... of each attribute's values
    answers.parquet       every answer in words (up to MOST_ANSWERS queries)
    measurements.parquet  noisy counts, or residuals: entry of "measurements" in release.json, cell, count
    model.parquet         the fitted model: per attribute, shares of 2^14 of each relaxed row; or the weight of each row
                          (unless answers come from the synthetic rows)
    bootstrap.json        how far answers outside the workload may be off, once that was estimated
    report.html           for people

While a run goes on the folder holds `unfinished.json` and `ledger.jsonl` instead.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.data.encode import decode
from discreet.data.schema import Schema
from discreet.errors import BadLedger, BadRelease
from discreet.privacy.ledger import Charge, Ledger, Limit, read_file, total_of
from discreet.privacy.neighbours import Neighbours
from discreet.progress import SILENT, Progress
from discreet.publish import files
from discreet.publish.certificate import Certificate
from discreet.publish.release import Guarantee, Release, total_variance
from discreet.publish.spread import Spread
from discreet.publish.tables import MOST_ANSWERS
from discreet.queries import parse
from discreet.queries.outlook import Outlook

FORMAT = 1
_VERSIONS = ("discreet", "numpy", "jax", "duckdb", "ibis-framework", "pyarrow")


@dataclass(frozen=True)
class Folder:
    """A folder that a run has claimed."""

    path: Path

    @staticmethod
    def require_free(path: Path) -> None:
        """Refuse a place that holds anything."""
        if (path / "unfinished.json").is_file():
            raise BadRelease(
                f"{path} is the record of a run that has not finished, and of what it spent; choose another folder."
            )
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BadRelease(f"{path} exists and is not an empty folder; choose another.")

    @staticmethod
    def claim(path: Path, mechanism: str, guarantee: Guarantee) -> Folder:
        """Create the folder, or refuse it, before any budget is spent."""
        Folder.require_free(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            promised = {"mechanism": mechanism, "epsilon": guarantee.epsilon, "delta": guarantee.delta}
            text = "This run has not finished. What it spent so far is in ledger.jsonl."
            _write_json(path / "unfinished.json", {"unfinished": text, **promised})
        except OSError as error:
            with suppress(OSError):
                Folder(path).discard()
            raise BadRelease(f"{path} cannot be written: {error.strerror}. Nothing was spent.") from None
        return Folder(path)

    @property
    def ledger(self) -> Path:
        """Where the run's charges go while it runs."""
        return self.path / "ledger.jsonl"

    def open_ledger(self, neighbours: Neighbours) -> Ledger:
        """Start the run's own ledger; where there is no room for one, nothing was spent, and the folder goes."""
        try:
            return Ledger(neighbours, path=self.ledger)
        except BadLedger:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove the folder of a run that has spent nothing."""
        for file in self.path.iterdir():
            file.unlink()
        self.path.rmdir()

    def finish(self, release: Release, progress: Progress = SILENT) -> None:
        """Write everything, then take the marks of an unfinished run away.

        Raises:
            BadRelease: There is no room. What was paid for is written to the system's temporary folder instead.
        """
        try:
            write(release, self.path, progress)
        except OSError as error:
            raise _rescued(release, self.path, error) from None
        (self.path / "unfinished.json").unlink()
        self.ledger.unlink(missing_ok=True)


def save(release: Release, path: Path) -> None:
    """Write a release that was made in memory."""
    Folder.claim(path, release.mechanism, release.guarantee).finish(release)


def _rescued(release: Release, path: Path, error: OSError) -> BadRelease:
    """Write a release somewhere else, and say where."""
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    place = None
    try:
        place = Path(tempfile.mkdtemp(prefix="discreet-release-"))
        write(release, place)
    except OSError:
        shutil.rmtree(place or "", ignore_errors=True)
        return BadRelease(
            f"{path} cannot be written ({reason}), nor can the system's temporary folder, so the release is lost. What "
            f"was charged stays charged: see `discreet ledger {path}`."
        )
    return BadRelease(
        f"{path} cannot be written ({reason}). The finished release is in {place} instead: move it where there is "
        "room. It was charged once, and needs not be made again."
    )


def write(release: Release, path: Path, progress: Progress = SILENT) -> None:
    """All files of a release folder."""
    from discreet.publish.report import render

    progress.stage("writing the release")
    if release.codes is not None:
        rows = decode(release.codes, release.schema, generator=np.random.default_rng(len(release.codes)))
        pq.write_table(rows, path / "synthetic.parquet", compression="zstd")
        files.write_codes(release.codes, release.domain, path / "codes.parquet")
    if release.measurements:
        files.write_measurements(release.measurements, path / "measurements.parquet")
    files.write_model(release.answers, path / "model.parquet")
    if release.workload.size <= MOST_ANSWERS:
        files.write_answers(release, path / "answers.parquet")
    _write_json(path / "release.json", to_json(release))
    save_spread(release, path)
    (path / "report.html").write_text(render(release), encoding="utf-8")


def save_spread(release: Release, path: Path) -> None:
    """Keep what a bootstrap found in the folder of its release: all of it, or nothing where it is interrupted."""
    if release.spread is not None:
        part = path / "bootstrap.json.part"
        _write_json(part, release.spread.to_json())
        part.replace(path / "bootstrap.json")


def to_json(release: Release) -> dict[str, Any]:
    """The content of release.json."""
    guarantee = release.guarantee
    omitted = {}
    if release.workload.size > MOST_ANSWERS:
        omitted["answers.parquet"] = f"more than {MOST_ANSWERS:,} queries; ask with `discreet answer`"
    if release.codes is None:
        omitted["synthetic.parquet"] = f"{release.mechanism} makes no rows"
    return {
        "format": FORMAT,
        "mechanism": release.mechanism,
        "settings": release.settings,
        "guarantee": {
            "in_words": guarantee.in_words(release.charges),
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "rho": str(guarantee.rho),
            "conversion": guarantee.conversion,
            "neighbours": guarantee.neighbours.to_json(),
            "spent_rho": float(total_of(release.charges)),
            "spent_epsilon": guarantee.reached(release.charges),
        },
        "certificate": None if release.certificate is None else release.certificate.to_json(),
        "noise": "operating system entropy" if release.noise_seed is None else "seeded: for tests only",
        "noise_seed": release.noise_seed,
        "queries": release.workload.size,
        "total": release.answers.total,
        "answers_from": files.KINDS[type(release.answers)],
        "synthetic_rows": 0 if release.codes is None else len(release.codes),
        "omitted": omitted,
        "schema": release.schema.to_json(),
        "workload": release.workload.to_json(),
        "history": None if release.outlook is None else release.outlook.to_json(),
        "measurements": [files.describe(found) for found in release.measurements],
        "ledger": [charge.to_json() for charge in release.charges],
        "notes": release.notes,
        "versions": _versions(),
    }


def load(path: Path) -> Release:
    """Read a release folder back."""
    described = _read_json(path)
    try:
        schema = Schema.load(described["schema"])
        guarantee = described["guarantee"]
        neighbours = Neighbours(**guarantee["neighbours"])
        measurements = files.read_measurements(described["measurements"], path / "measurements.parquet")
        certificate = described["certificate"]
        codes = files.read_codes(schema.domain, path / "codes.parquet")
        charges = tuple(Charge.from_json(entry) for entry in described["ledger"])
        answers = files.read_answers(
            described,
            schema.domain,
            measurements,
            codes,
            path,
            total_variance=total_variance(neighbours, charges),
        )
        return Release(
            mechanism=described["mechanism"],
            settings=described["settings"],
            schema=schema,
            workload=parse.workload(described["workload"], schema.domain),
            guarantee=Guarantee(
                guarantee["epsilon"],
                guarantee["delta"],
                Fraction(guarantee["rho"]),
                guarantee["conversion"],
                neighbours,
            ),
            charges=charges,
            answers=answers,
            measurements=measurements,
            codes=codes,
            certificate=None if certificate is None else Certificate(**certificate),
            noise_seed=described["noise_seed"],
            notes=described["notes"],
            outlook=Outlook.from_json(described["history"]) if described.get("history") else None,
            spread=_read_spread(path / "bootstrap.json"),
        )
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        raise BadRelease(f"{path} is damaged: {type(error).__name__}: {error}.") from None


def _read_spread(path: Path) -> Spread | None:
    return Spread.from_json(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


@dataclass(frozen=True)
class Account:
    """What was charged by a run or in a shared ledger, and the limits that are known."""

    charges: list[Charge]
    delta: float | None = None
    limit: Limit | None = None


def account_of(path: Path) -> Account:
    """Charges of a release folder, finished or not, or of a ledger file."""
    if path.is_file():
        book = read_file(path)
        return Account(book.charges, book.limit.delta if book.limit else None, book.limit)
    if (path / "unfinished.json").is_file():
        ledger, delta = path / "ledger.jsonl", None
        with suppress(ValueError, TypeError, KeyError):  # cut off: what was charged is shown all the same
            delta = json.loads((path / "unfinished.json").read_text(encoding="utf-8"))["delta"]
        begun = ledger.is_file() and ledger.stat().st_size
        return Account(read_file(ledger).charges if begun else [], delta)
    if not path.exists():
        raise BadRelease(f"{path} is not there: give a release folder, or a ledger file that `--ledger` wrote.")
    described = _read_json(path)
    return Account([Charge.from_json(entry) for entry in described["ledger"]], described["guarantee"]["delta"])


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise BadRelease(f"{path} is not there, or not a release: that is a folder written by `discreet release`.")
    if (path / "unfinished.json").is_file():
        spent = float(total_of(account_of(path).charges))
        raise BadRelease(
            f"{path} is unfinished: its run was interrupted after spending rho = {spent:.4g}. "
            f"See `discreet ledger {path}`; what was charged stays charged."
        )
    try:
        described = json.loads((path / "release.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise BadRelease(f"{path} holds no readable release.json, so it is not a release.") from None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise BadRelease(f"{path} is not a release of format {FORMAT}.")
    return described


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
