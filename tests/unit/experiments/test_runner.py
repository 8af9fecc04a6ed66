"""The runner: resuming, refusing, and what an interruption leaves behind. A stand-in experiment takes no time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.data.table import Table
from discreet.errors import BadData, BadSetting, BadWorkload
from discreet.experiments import catalogue, record, runner
from discreet.experiments.claim import Finding
from discreet.experiments.experiment import Experiment, Figures, Setting
from discreet.progress import Progress

measured: list[tuple[int, int]] = []


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    for dataset in datasets:
        for number in range(3 if size == "tiny" else 5):
            yield dataset, {"mechanism": "all-zero", "epsilon": 1, "number": number}


def _measure(table: Table, setting: Setting, seed: int) -> Figures:
    if setting["number"] == 4:
        raise BadWorkload("Four is too many.")
    measured.append((setting["number"], seed))
    return {"max_error": setting["number"] / 10, "rows_seen": table.rows()}


EXPERIMENT = Experiment(
    name="present",
    title="A stand-in",
    source="nowhere",
    grid=_grid,
    measure=_measure,
    pictures=lambda rows: {"some": f'<svg class="plot"><title>{len(rows)}</title></svg>'},
    findings=lambda rows: [Finding("It adds up.", f"{sum(row['max_error'] for row in rows):.1f}", "confirmed", "So.")],
)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    measured.clear()
    monkeypatch.setattr(runner, "find", lambda name: catalogue.find(name) and EXPERIMENT)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "adult.csv").write_text("a,b\n0,1\n1,0\n")
    (folder / "adult-domain.json").write_text('{"a": 2, "b": 2}')
    return folder


def test_every_cell_has_a_line_and_the_claim_has_the_numbers(data: Path, tmp_path: Path) -> None:
    out = runner.run("present", data=data, out=tmp_path / "out", size="tiny", seeds=2)
    entries = record.load(out / record.RESULTS)
    assert [(entry["setting"]["number"], entry["seed"]) for entry in entries] == [
        (number, seed) for seed in (100, 101) for number in range(3)
    ]
    assert all(entry["figures"]["rows_seen"] == 2 and entry["seconds"] >= 0 for entry in entries)
    text = (out / "claim.md").read_text()
    assert "**Here:** 0.6" in text
    assert "6 of 6 cells" in text
    assert (out / "some.svg").read_text().startswith("<svg xmlns=")


def test_one_seed_decides_nothing(data: Path, tmp_path: Path) -> None:
    out = runner.run("present", data=data, out=tmp_path / "out", size="tiny", seeds=1)
    assert "## Finding 1, adult: undecided" in (out / "claim.md").read_text()
    assert "Only one seed" in (out / "claim.md").read_text()
    runner.run("present", data=data, out=out, size="tiny", seeds=2, resume=True)
    assert "## Finding 1, adult: confirmed" in (out / "claim.md").read_text()


def test_tables_are_judged_apart(data: Path, tmp_path: Path) -> None:
    for suffix in (".csv", "-domain.json"):
        (data / f"loans{suffix}").write_bytes((data / f"adult{suffix}").read_bytes())
    out = runner.run("present", data=data, out=tmp_path / "out", size="tiny", datasets=("adult", "loans"))
    text = (out / "claim.md").read_text()
    assert text.index("## Finding 1, adult:") < text.index("## Finding 2, loans:")
    with pytest.raises(BadSetting, match="not a path"):
        runner.run("present", data=data, out=tmp_path / "other", size="tiny", datasets=("../data/adult",))


def test_pictures_that_were_not_made_here_stay(data: Path, tmp_path: Path) -> None:
    out = runner.run("present", data=data, out=tmp_path / "out", size="tiny")
    (out / "mine.svg").write_text("mine")
    (out / "claim.md").write_text((out / "claim.md").read_text() + "![old](old.svg)\n")
    (out / "old.svg").write_text("no longer made")
    runner.report(out)
    assert sorted(path.name for path in out.glob("*.svg")) == ["mine.svg", "some.svg"]


def test_results_are_never_mixed_without_being_asked(data: Path, tmp_path: Path) -> None:
    runner.run("present", data=data, out=tmp_path / "out", size="tiny")
    before = (tmp_path / "out" / record.RESULTS).read_bytes()
    with pytest.raises(BadSetting, match=r"results\.jsonl exists: continue it with --resume"):
        runner.run("present", data=data, out=tmp_path / "out", size="tiny")
    with pytest.raises(BadSetting, match="of the grid 'tiny', not 'quick'"):
        runner.run("present", data=data, out=tmp_path / "out", size="quick", resume=True)
    with pytest.raises(BadSetting, match="of the experiment 'present', not 'drift'"):
        runner.run("drift", data=data, out=tmp_path / "out", size="tiny", resume=True)
    with pytest.raises(BadSetting, match="of the experiment 'present', not 'drift'"):
        runner.report(tmp_path / "out", name="drift")
    assert (tmp_path / "out" / record.RESULTS).read_bytes() == before


def test_an_interrupted_run_goes_on_where_it_was(data: Path, tmp_path: Path) -> None:
    class Stop(Progress):
        def step(self, done: int, note: str = "") -> None:
            if done == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run("present", data=data, out=tmp_path / "out", size="tiny", progress=Stop())
    path = tmp_path / "out" / record.RESULTS
    with path.open("a") as file:
        file.write('{"experiment": "present", "gri')  # cut short while it was written
    assert len(record.load(path)) == 2
    runner.report(tmp_path / "out")
    assert "2 of 3 cells" in (tmp_path / "out" / "claim.md").read_text()
    assert "Skipped so far, 1 cells: adult: mechanism all-zero" in (tmp_path / "out" / "claim.md").read_text()
    runner.run("present", data=data, out=tmp_path / "out", size="tiny", resume=True)
    assert measured == [(0, 100), (1, 100), (2, 100)]
    assert [json.loads(line)["setting"]["number"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_more_seeds_add_to_a_finished_run(data: Path, tmp_path: Path) -> None:
    runner.run("present", data=data, out=tmp_path / "out", size="tiny", seeds=1)
    runner.run("present", data=data, out=tmp_path / "out", size="tiny", seeds=2, resume=True)
    assert measured == [(number, seed) for seed in (100, 101) for number in range(3)]


def test_another_table_adds_to_a_finished_run(data: Path, tmp_path: Path) -> None:
    for suffix in (".csv", "-domain.json"):
        shutil.copy(data / f"adult{suffix}", data / f"clinic{suffix}")
    out = runner.run("present", data=data, out=tmp_path / "out", size="tiny")
    runner.run("present", data=data, out=out, size="tiny", datasets=["clinic"], resume=True)
    assert [entry["dataset"] for entry in record.load(out / record.RESULTS)] == ["adult"] * 3 + ["clinic"] * 3
    assert "6 of 6 cells" in (out / "claim.md").read_text()
    with pytest.raises(BadData, match=r"nowhere\.csv is not there"):
        runner.run("present", data=data, out=out, size="tiny", datasets=["nowhere"], resume=True)


def test_a_damaged_line_is_named(data: Path, tmp_path: Path) -> None:
    out = runner.run("present", data=data, out=tmp_path / "out", size="tiny")
    path = out / record.RESULTS
    first, *rest = path.read_bytes().splitlines(keepends=True)
    for damaged in (b"not a result\n", b"\xff\xfe\n", first.replace(b'"seeds"', b'"seed s"')):
        path.write_bytes(first + damaged + b"".join(rest))
        with pytest.raises(BadData, match=r"results\.jsonl, line 2, is not a result"):
            runner.report(out)


def test_a_report_that_cannot_be_written_costs_no_results(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "claim.md").mkdir(parents=True)
    with pytest.raises(BadSetting, match="go on with --report-only"):
        runner.run("present", data=data, out=tmp_path / "out", size="tiny")
    (tmp_path / "out" / "claim.md").rmdir()
    runner.report(tmp_path / "out")
    assert "3 of 3 cells" in (tmp_path / "out" / "claim.md").read_text()


@pytest.mark.parametrize("missing", ["adult.csv", "adult-domain.json"])
def test_missing_data_is_named_before_anything_is_written(data: Path, tmp_path: Path, missing: str) -> None:
    (data / missing).unlink()
    with pytest.raises(BadData, match=missing):
        runner.run("present", data=data, out=tmp_path / "out", size="tiny")
    assert not (tmp_path / "out").exists()


def test_settings_that_are_refused_are_results_too(data: Path, tmp_path: Path) -> None:
    out = runner.run("present", data=data, out=tmp_path / "out", size="quick", seeds=1)
    assert record.load(out / record.RESULTS)[-1]["refused"] == "Four is too many."
    assert "Refused in 1 cells: Four is too many." in (out / "claim.md").read_text()
    again = len(measured)
    runner.run("present", data=data, out=out, size="quick", seeds=1, resume=True)
    assert len(measured) == again


@pytest.mark.parametrize(("hopeless", "tries"), [(("unfinished",), 2), (("unfinished", "refused"), 1)])
def test_what_no_seed_would_change_is_tried_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hopeless: tuple[str, ...], tries: int
) -> None:
    monkeypatch.setattr(runner, "find", lambda _: replace(EXPERIMENT, hopeless=hopeless))
    out = runner.run("present", data=data, out=tmp_path / "out", size="quick", seeds=2)
    runner.run("present", data=data, out=out, size="quick", seeds=2, resume=True)
    assert sum(bool(entry.get("refused")) for entry in record.load(out / record.RESULTS)) == tries
    assert f"{8 + tries} of {8 + tries} cells" in (out / "claim.md").read_text()


def test_what_cannot_be_run_or_reported_is_said(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="must be one of present, schedule"):
        runner.run("nothing", data=data, out=tmp_path / "out")
    with pytest.raises(BadSetting, match="seeds must be a whole number"):
        runner.run("present", data=data, out=tmp_path / "out", seeds=0)
    with pytest.raises(BadData, match=r"results\.jsonl is not there"):
        runner.report(tmp_path)
    (tmp_path / record.RESULTS).write_text('{"cut')
    with pytest.raises(BadData, match="holds no finished cell"):
        runner.report(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSetting, match="cannot be written"):
        runner.run("present", data=data, out=tmp_path / "file" / "out", size="tiny")
