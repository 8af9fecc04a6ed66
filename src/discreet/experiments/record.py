"""results.jsonl: one line for each finished cell, with where, when and with what it was measured."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from discreet.errors import BadData, BadSetting
from discreet.experiments.experiment import Cell, Experiment, Row
from discreet.mechanisms import machine

RESULTS = "results.jsonl"
_ROOT = Path(__file__).parents[3]

Entry = dict[str, Any]
_NEEDED = {"experiment", "grid", "seeds", "dataset", "setting", "seed", "figures", "seconds"}


def environment() -> dict[str, Any]:
    """Commit (None outside a checkout), versions, hardware, and how slow it is beside the one of forecasts."""
    commit = None
    if (_ROOT / ".git").exists():
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "src")
        commit = _git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")
    return {
        "commit": commit or None,
        "versions": {name: version(name) for name in ("discreet", "numpy", "jax", "duckdb")},
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "slowness": round(machine.slowness(), 3),
    }


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=False).stdout.strip()


def load(path: Path) -> list[Entry]:
    """All finished cells. A last line that an interruption cut short is left out."""
    entries: list[Entry] = []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline is unfinished
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            entry = None
        if not isinstance(entry, dict) or not set(entry) >= _NEEDED:
            raise BadData(f"{path}, line {number}, is not a result; remove the line, and run again with --resume.")
        entries.append(entry)
    return entries


def mend(path: Path) -> None:
    """Cut off a last line without an end, so that the next one starts afresh."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        path.write_bytes(whole)


def append(path: Path, entry: Entry) -> None:
    """Add one line, and have it on disk."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror or error}. Run again with --resume.") from None


def cell_of(entry: Entry) -> Cell:
    """The cell that an entry is the result of."""
    return Cell(entry["dataset"], entry["setting"], entry["seed"])


def planned(experiment: Experiment, entries: Sequence[Entry]) -> list[Cell]:
    """All cells of the grid that these are of, on the tables that it or any of them has."""
    size, seeds = entries[-1]["grid"], max(entry["seeds"] for entry in entries)
    cells = experiment.cells(size, seeds)
    further = {entry["dataset"] for entry in entries} - {cell.dataset for cell in cells}
    return cells + (experiment.cells(size, seeds, sorted(further)) if further else [])


def hopeless(experiment: Experiment, entries: Sequence[Entry]) -> set[str]:
    """Cells, without their seeds, that ended in a way which no other seed would change."""
    return {cell_of(entry).seedless for entry in entries if any(entry.get(end) for end in experiment.hopeless)}


ENDS = ("refused", "unfinished")
"""How a cell may end that has no figures."""


def rows(entries: Sequence[Entry]) -> list[Row]:
    """Finished cells as flat dictionaries; those refused or unfinished are left out."""
    return [_flat(entry) | entry["figures"] for entry in entries if entry.get("figures") is not None]


def ended(entries: Sequence[Entry]) -> list[Row]:
    """Those, with how they `ended`."""
    return [_flat(entry) | {"ended": end} for entry in entries for end in ENDS if entry.get(end)]


def _flat(entry: Entry) -> Row:
    return {"dataset": entry["dataset"], "seed": entry["seed"], "seconds": entry["seconds"], **entry["setting"]}
