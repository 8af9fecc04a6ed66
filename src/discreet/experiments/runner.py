"""Running an experiment cell by cell into a folder that can be resumed, and reporting from its results alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import _check
from discreet.errors import BadData, BadSetting, BadWorkload
from discreet.experiments import acs, apart, claim, record
from discreet.experiments.catalogue import find
from discreet.experiments.experiment import SIZES, Cell, Experiment
from discreet.progress import SILENT, Progress
from discreet.publish.svg import standalone

if TYPE_CHECKING:
    from discreet.data.table import Table


def run(
    name: str,
    *,
    data: str | Path,
    out: str | Path,
    size: str = "default",
    seeds: int | None = None,
    datasets: Sequence[str] = (),
    resume: bool = False,
    progress: Progress = SILENT,
) -> Path:
    """Run every cell that is not finished yet, then report. Returns the folder.

    Args:
        name: Of the experiment.
        data: Folder with adult.csv, adult-domain.json and so on.
        out: Folder for results.jsonl, pictures and claim.md.
        size: tiny, quick, default or full.
        seeds: Independent repetitions; the size's own number by default.
        datasets: The tables to run on, instead of the grid's own.
        resume: Continue an earlier run of the same size; without it a folder that holds results is refused.
        progress: Hears how many cells are done.

    Raises:
        BadData: A file of a dataset is missing.
        BadSetting: The folder holds results and `resume` was not asked for, or they are of another run.
    """
    experiment = find(name)
    _check.one_of("The size of the grid", size, SIZES)
    many = SIZES[size] if seeds is None else seeds
    _check.whole("seeds", many)
    cells = experiment.cells(size, many, datasets)
    _require_data(Path(data), {cell.dataset for cell in cells})
    folder = Path(out)
    earlier = _earlier(folder / record.RESULTS, name, size, resume)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetting(f"{out} cannot be written: {error.strerror or error}.") from None
    common = {"experiment": name, "grid": size, "seeds": many, **record.environment()}
    tables: dict[str, Table] = {}
    done, hopeless = {record.cell_of(entry).key for entry in earlier}, record.hopeless(experiment, earlier)
    left = [cell for cell in cells if cell.key not in done]
    progress.stage(f"{name}, {size} grid", len(cells))
    for number, cell in enumerate(left, start=len(cells) - len(left)):
        if cell.seedless in hopeless:
            continue
        progress.step(number, f"now {cell}")
        if experiment.minutes is not None:
            found = _finished(cell, partial(apart.measured, experiment, cell, Path(data)))
        else:
            if cell.dataset not in tables:
                tables[cell.dataset] = read_dataset(Path(data), cell.dataset)
            found = _finished(cell, partial(_measured, experiment, cell, tables[cell.dataset]))
        hopeless |= record.hopeless(experiment, [found])
        record.append(folder / record.RESULTS, common | found)
    report(folder)
    return folder


def report(folder: str | Path, *, name: str | None = None) -> None:
    """Write the pictures and claim.md anew, from results.jsonl alone.

    Results of cells that the grid does not have any more (other seeds, say, since a mechanism changed) do not count.

    Args:
        folder: That holds it.
        name: Of the experiment it should be of, if that matters.
    """
    path = Path(folder) / record.RESULTS
    if not path.is_file():
        raise BadData(f"{path} is not there; run the experiment first.")
    entries = record.load(path)
    if not entries:
        raise BadData(f"{path} holds no finished cell.")
    experiment = find(entries[-1]["experiment"])
    if name not in (None, experiment.name):
        raise BadSetting(f"{path} holds results of the experiment {experiment.name!r}, not {name!r}.")
    grid = {cell.key for cell in record.planned(experiment, entries)}
    counted = [entry for entry in entries if record.cell_of(entry).key in grid]
    if not counted:
        raise BadData(f"{path} holds no cell of the {entries[-1]['grid']} grid as it is now; run it anew.")
    rows = record.rows(counted)
    pictures = experiment.pictures(rows) if rows else {}
    text = claim.render(experiment, counted, list(pictures), strays=len(entries) - len(counted))
    try:
        for stale in _pictures_of(Path(folder) / "claim.md"):
            (Path(folder) / stale).unlink(missing_ok=True)
        for title, picture in pictures.items():
            (Path(folder) / f"{title}.svg").write_text(standalone(picture), encoding="utf-8")
        (Path(folder) / "claim.md").write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadSetting(
            f"{folder} cannot be written: {error.strerror or error}. Its results are kept: go on with --report-only."
        ) from None


def _pictures_of(path: Path) -> list[str]:
    """Files that an earlier claim.md shows: those were made here, others belong to somebody else."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [name for name in re.findall(r"!\[[^\]]*\]\(([^)]+\.svg)\)", text) if "/" not in name]


def _finished(cell: Cell, work: Callable[[], dict[str, Any]]) -> record.Entry:
    """One cell as a result."""
    began = time.perf_counter()
    entry: record.Entry = {"dataset": cell.dataset, "setting": cell.setting, "seed": cell.seed, **work()}
    return entry | {"seconds": round(time.perf_counter() - began, 3)}


def _measured(experiment: Experiment, cell: Cell, table: Table) -> dict[str, Any]:
    """Its figures; settings that a mechanism refuses are a result too."""
    try:
        return {"figures": experiment.measure(table, cell.setting, cell.seed)}
    except (BadSetting, BadWorkload) as error:
        return {"figures": None, "refused": str(error)}


def _earlier(path: Path, name: str, size: str, resume: bool) -> list[record.Entry]:
    """Cells that are finished."""
    if not path.exists():
        return []
    if not resume:
        raise BadSetting(f"{path} exists: continue it with --resume, or choose another --out.")
    record.mend(path)
    entries = record.load(path)
    for what, wanted in (("experiment", name), ("grid", size)):
        other = next((entry[what] for entry in entries if entry[what] != wanted), None)
        if other is not None:
            raise BadSetting(f"{path} holds results of the {what} {other!r}, not {wanted!r}: choose another --out.")
    return entries


def _files(data: Path, dataset: str) -> tuple[Path, Path]:
    if dataset == acs.DATASET:
        return acs.files(data)
    kind = "parquet" if (data / f"{dataset}.parquet").is_file() else "csv"
    return data / f"{dataset}.{kind}", data / f"{dataset}-domain.json"


def _require_data(data: Path, datasets: Iterable[str]) -> None:
    for dataset in sorted(datasets):
        if Path(dataset).name != dataset:
            raise BadSetting(f"A dataset is a name such as adult, not a path: {dataset!r}; --data takes the folder.")
        for path in _files(data, dataset):
            if not path.is_file():
                raise BadData(f"{path} is not there; --data takes the folder that holds it.")


def read_dataset(data: Path, dataset: str) -> Table:
    """One of the tables that experiments run on."""
    from discreet.data.table import read

    if dataset == acs.DATASET:
        return acs.read_all(data)
    rows, schema = _files(data, dataset)
    return read(rows, schema=schema)
