"""Every experiment on a tiny grid and a small invented table: it runs, draws, and says what its results say."""

from __future__ import annotations

import json
import shutil
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tables import write_excerpts

from discreet.errors import BadData, Bug
from discreet.experiments import apart, claim, record, runner
from discreet.experiments.catalogue import NAMES, find
from discreet.experiments.chart import best
from discreet.experiments.experiment import SIZES, Cell
from discreet.experiments.trial import PUBLISHED
from discreet.mechanisms import machine

DOMAIN = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 2, "f": 3, "g": 12}


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the real one, with forty invented rows: few, so that some marginals are filtered out."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(size, size=40) * (rng.random(40) < 0.6) for size in DOMAIN.values()])
    for name in ("adult", "loans"):
        header = ",".join(DOMAIN)
        (folder / f"{name}.csv").write_text(header + "\n" + "\n".join(",".join(map(str, row)) for row in codes) + "\n")
        (folder / f"{name}-domain.json").write_text(json.dumps(DOMAIN))
    write_excerpts(folder)
    return folder


@pytest.fixture(scope="session")
def finished(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of an experiment; each is run once."""
    root = tmp_path_factory.mktemp("finished")
    return cache(lambda name: runner.run(name, data=data, out=root / name, size="tiny"))


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_finishes_its_grid(name: str, finished: Callable[[str], Path]) -> None:
    entries = record.load(finished(name) / record.RESULTS)
    assert len(entries) == len(find(name).cells("tiny", 1))
    assert {entry["dataset"] for entry in entries} == set(find(name).datasets["tiny"])
    assert sum(entry["figures"] is not None for entry in entries) > len(entries) / 2
    assert {"commit", "versions", "seconds", "cores", "machine"} <= set(entries[0])
    assert entries[0]["versions"]["discreet"]


@pytest.mark.parametrize("name", NAMES)
def test_its_pictures_are_svg_that_the_claim_shows(name: str, finished: Callable[[str], Path]) -> None:
    drawn = sorted(path.stem for path in finished(name).glob("*.svg"))
    assert drawn
    text = (finished(name) / "claim.md").read_text()
    for picture in drawn:
        root = ET.fromstring((finished(name) / f"{picture}.svg").read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "nan" not in (finished(name) / f"{picture}.svg").read_text().lower()
        assert f"({picture}.svg)" in text


@pytest.mark.parametrize("name", NAMES)
def test_the_results_alone_make_pictures_and_claim(name: str, finished: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copy(finished(name) / record.RESULTS, tmp_path)
    runner.report(tmp_path)
    for path in finished(name).iterdir():
        assert (tmp_path / path.name).read_text() == path.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_changes_when_the_results_do(name: str, finished: Callable[[str], Path], tmp_path: Path) -> None:
    def worse(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: worse(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [worse(part, key) for part in value]
        return value * 3 if ("error" in key or key in ("future", "independent")) and value is not None else value

    lines = (finished(name) / record.RESULTS).read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    changed = [
        entry | {"figures": worse(entry["figures"])}
        if entry["setting"]["mechanism"] in ("rap-paper", "gem-pub")
        else entry
        for entry in entries
    ]
    if name in ("rows", "rule", "schedule", "training", "intervals"):  # these compare a mechanism with itself
        changed[0] = entries[0] | {"figures": _other(entries[0]["figures"])}
    (tmp_path / record.RESULTS).write_text("".join(json.dumps(entry) + "\n" for entry in changed))
    runner.report(tmp_path)
    assert (tmp_path / "claim.md").read_text() != (finished(name) / "claim.md").read_text()


def _other(figures: dict[str, Any]) -> dict[str, Any]:
    if "progress" in figures:
        last = figures["progress"][-1]
        return figures | {"progress": [*figures["progress"], last | {"future": last["future"] * 2 + 1}]}
    if "measured" in figures:
        return figures | {"measured": [share / 2 for share in figures["measured"]]}
    return figures | {"max_error": figures["max_error"] * 2 + 0.01}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", SIZES)
def test_every_grid_has_distinct_cells_with_a_mechanism_and_an_epsilon(name: str, size: str) -> None:
    cells = find(name).cells(size, 2)
    assert cells
    assert len({cell.key for cell in cells}) == len(cells)
    assert all({"mechanism", "epsilon"} <= set(cell.setting) for cell in cells)
    compared = {"rule": {"rap"}, "public": {"gem", "gem-pub"}, "intervals": {"auto", "gaussian"}}
    assert compared.get(name, {"rap", "rap-paper"}) <= {cell.setting["mechanism"] for cell in cells}


def test_a_grid_runs_on_other_tables() -> None:
    histories = {cell.setting["history"] for cell in find("drift").cells("quick", 1, ["loans"])}
    assert histories == {16}  # as in Figure 15; ADULT has 4
    assert {cell.dataset for cell in find("present").cells("quick", 2, ["clinic"])} == {"clinic"}


@pytest.mark.parametrize("name", NAMES)
def test_the_full_grid_has_the_published_constants(name: str) -> None:
    for cell in find(name).cells("full", 1):
        if cell.setting["mechanism"] == "rap-paper" and name != "rows":
            assert {key: cell.setting.get(key, PUBLISHED[key]) for key in PUBLISHED} == PUBLISHED


def test_the_published_constants_are_the_mechanism_s() -> None:
    from discreet.mechanisms.rap import PaperSettings

    assert {name: getattr(PaperSettings(), name) for name in PUBLISHED} == PUBLISHED


def test_claims_name_the_constants_that_were_changed(finished: Callable[[str], Path]) -> None:
    text = (finished("present") / "claim.md").read_text()
    assert "`rap-paper` ran with 20 Adam steps at most; the papers have 5000." in text
    assert "not private" in text


def test_a_ratio_and_its_verdict() -> None:
    found = claim.ratio([(1.0, 2.0), (1.1, 2.0), (0.9, 2.0)])
    assert found is not None
    assert found.mean == pytest.approx((1.0 * 1.1 * 0.9) ** (1 / 3) / 2)
    assert found.low < found.mean < found.high < 1
    assert found.verdict(below=1) == claim.CONFIRMED
    assert found.verdict(above=1) == claim.REFUTED
    assert found.verdict(below=0.5) == claim.UNDECIDED
    alone = claim.ratio([(1.0, 2.0)])
    assert alone is not None
    assert alone.verdict(below=1) == claim.UNDECIDED
    assert claim.ratio([(0.0, 1.0)]) is None
    assert claim.judged("p", "w", None, below=1).verdict == claim.UNDECIDED


def test_the_best_schedule_has_the_least_mean() -> None:
    rows = [
        {"rounds": rounds, "per_round": 4, "seed": seed, "max_error": error, "epsilon": 1}
        for rounds, errors in ((4, (0.1, 0.9)), (16, (0.3, 0.3)))
        for seed, error in enumerate(errors)
    ]
    assert [row["rounds"] for row in best(rows, "epsilon")] == [16, 16]


def test_a_cell_of_its_own_has_a_peak_an_end_and_its_refusals(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = find("family")
    cell = Cell("adult", {"epsilon": 1.0, "workload": "all:2", "mechanism": "gaussian"}, 100)
    figures = apart.measured(experiment, cell, data)["figures"]
    assert figures["peak"] > 10**7
    assert 0 < figures["release_seconds"] < figures["whole_seconds"]
    for slowness, minutes in ((0.5, 1e-4), (2.0, 2e-4)):
        monkeypatch.setattr(machine, "slowness", partial(float, slowness))
        assert apart.measured(replace(experiment, minutes=1e-4), cell, data) == {"figures": None, "unfinished": minutes}
    refused = replace(cell, setting={**cell.setting, "mechanism": "pep", "rounds": 10**6})
    told = apart.measured(experiment, refused, data)
    assert told["figures"] is None and "more than the workload" in told["refused"]
    with pytest.raises(Bug, match="A cell failed"):
        apart.measured(experiment, replace(cell, dataset="nowhere"), data)


def test_a_cell_that_is_killed_is_a_result(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tmp_path / "child"
    child.write_text("#!/bin/sh\nkill -9 $$\n")
    child.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(child))
    out = runner.run("family", data=data, out=tmp_path / "out", size="tiny", seeds=1)
    entries = record.load(out / record.RESULTS)
    assert entries and all(entry["figures"] is None for entry in entries)
    late = {**entries[0], "unfinished": 20}
    record.append(out / record.RESULTS, late)
    runner.report(out)
    text = (out / "claim.md").read_text()
    cell = record.cell_of(late)
    assert f"- Unfinished, killed by signal 9: {cell}.\n" in text
    assert f"- Unfinished after 20 minutes: {cell}.\n" in text


def test_cells_that_the_grid_does_not_have_any_more_do_not_count(
    finished: Callable[[str], Path], tmp_path: Path
) -> None:
    entries = record.load(finished("present") / record.RESULTS)
    for entry in entries:
        record.append(tmp_path / record.RESULTS, entry)
    before = claim.render(find("present"), entries, [])
    stray = entries[0] | {"seed": 7, "figures": dict.fromkeys(entries[0]["figures"], 1.0)}
    record.append(tmp_path / record.RESULTS, stray)
    runner.report(tmp_path)
    text = (tmp_path / "claim.md").read_text()
    assert text.endswith("- Left out: 1 results of cells that are not in the grid (any more).\n")
    tables = [line for line in before.splitlines() if line.startswith("| ")]
    assert tables == [line for line in text.splitlines() if line.startswith("| ")]
    (tmp_path / record.RESULTS).unlink()
    record.append(tmp_path / record.RESULTS, stray)
    with pytest.raises(BadData, match="no cell of the tiny grid as it is now"):
        runner.report(tmp_path)


def test_slow_mechanisms_of_the_family_have_fewer_seeds_and_close_ones_more() -> None:
    cells = find("family").cells("full", 5, ["adult-reduced"])
    names = ("auto", "rap", "gaussian", "aim")
    seeds = {name: {cell.seed for cell in cells if cell.setting["mechanism"] == name} for name in names}
    assert [len(seeds[name]) for name in names] == [20, 20, 5, 3]
    assert seeds["aim"] < seeds["gaussian"] < seeds["rap"]
    assert {cell.setting["epsilon"] for cell in cells if cell.setting["mechanism"] == "aim"} == {0.1, 1.0}


def test_the_default_is_judged_on_seeds_that_its_constants_were_not_chosen_on() -> None:
    looked_at = {*range(100, 107), *range(200, 205), *range(300, 330), *range(400, 410)}
    for table, many, since in (("adult", 10, looked_at), ("adult-reduced", 20, looked_at | {*range(500, 710)})):
        cells = find("family").cells("full", 5, [table])
        seeds = {cell.seed for cell in cells if cell.setting["mechanism"] == "auto"}
        assert len(seeds) == many
        assert not seeds & since
