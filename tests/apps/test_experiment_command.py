"""`discreet experiment` as people use it, mistakes included."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from discreet.apps import commands
from discreet.apps.cli import main
from discreet.experiments import record
from discreet.experiments.catalogue import NAMES, find


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished drift experiment, as results alone."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "drift"
    folder.mkdir()
    lines = []
    settings = [cell.setting for cell in find("drift").cells("quick", 1)]
    ours = next(setting for setting in settings if setting["mechanism"] == "rap")
    for seed in (100, 101, 102):
        drifted = [
            {
                "gamma": gamma,
                "variation": gamma * 0.8,
                "future_error": 0.1 + 0.2 * (gamma > 0.5),
                "features": [0.5, 0.5],
            }
            for gamma in (0.0, 0.1, 1.0)
        ]
        lines.append(
            {
                "experiment": "drift",
                "grid": "quick",
                "seeds": 3,
                "commit": "abc",
                "versions": {"discreet": "0"},
                "cores": 2,
                "machine": "m",
                "dataset": "adult",
                "setting": ours,
                "seed": seed,
                "figures": {"drifted": drifted},
                "seconds": 1.0,
            }
        )
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_every_experiment_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said and summary in said for name, summary in NAMES.items())


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["experiment", "--help"])
    said = capsys.readouterr().out
    for text in (
        "examples:",
        "discreet experiment present --data data --quick",
        "--resume",
        "--report-only",
        "NOT priv",
    ):
        assert text in said


def test_a_report_is_made_from_results_alone(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "drift", "--out", "drift", "--report-only"]) == 0
    said = capsys.readouterr().out
    assert "## Finding 4, adult: confirmed" in said
    assert "over no drift: 3 (3 to 3, 3 pairs)" in said
    assert "- **The paper:** " in said
    assert "NOT private" in said
    assert {path.name for path in results.glob("*.svg")} == {
        "adult-error.svg",
        "adult-features.svg",
        "adult-variation.svg",
    }


def test_every_table_that_is_printed_has_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"max_error": 0.1, "mean_error": 0.01, "rmse": 0.02, "mean_tvd": 0.2, "release_seconds": 1.0, "peak": 1e9}
    common = {"experiment": "family", "grid": "quick", "seeds": 1, "commit": "abc", "versions": {}, "cores": 2}
    lines = [
        common
        | {"machine": "m", "dataset": dataset, "seed": seed, "figures": figures, "seconds": 1.0}
        | {"setting": {"epsilon": 1.0, "workload": "all:3", "mechanism": mechanism}}
        for dataset in ("adult-reduced", "nltcs")
        for seed, mechanism in ((800, "auto"), (100, "rap"))
    ]
    (tmp_path / record.RESULTS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["experiment", "family", "--out", str(tmp_path), "--report-only"]) == 0
    said = capsys.readouterr().out
    names = ["## `auto` over the best other", "## adult-reduced, all:3", "## nltcs, all:3", "## Finding 1"]
    assert [said.index(name) for name in names] == sorted(said.index(name) for name in names)
    assert "Why numbers differ" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--list"),
        (["nothing"], "must be one of present"),
        (["present"], "--data is missing"),
        (["present", "--data", "nowhere"], "nowhere/adult.csv is not there"),
        (["present", "--out", "nowhere", "--report-only"], "results.jsonl is not there"),
        (["present", "--out", "drift", "--report-only"], "of the experiment 'drift', not 'present'"),
        (["present", "--data", "nowhere", "--seeds", "0"], "seeds must be"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], said: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_quick_and_full_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["experiment", "present", "--quick", "--full"])
    assert "not allowed with" in capsys.readouterr().err


def test_after_ctrl_c_people_hear_how_to_go_on() -> None:
    text = commands.interrupted(Namespace(command="experiment", out="drift"))
    assert "drift keeps every finished cell: run the same again with --resume" in text


def test_ctrl_c_leaves_a_folder_that_can_be_resumed_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    codes = np.random.default_rng(0).integers(0, 3, (60, 6))
    lines = ["a,b,c,d,e,f", *(",".join(map(str, row)) for row in codes)]
    Path("adult.csv").write_text("\n".join(lines) + "\n")
    Path("adult-domain.json").write_text(json.dumps(dict.fromkeys("abcdef", 3)))
    words = ["experiment", "drift", "--data", ".", "--quick", "--out", "out"]
    with subprocess.Popen([sys.executable, "-m", "discreet", *words], stderr=subprocess.PIPE) as process:
        results, until = tmp_path / "out" / record.RESULTS, time.monotonic() + 120
        while not (results.exists() and results.read_text().count("\n")) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"out keeps every finished cell: run the same again with --resume" in said
    assert len(record.load(results)) >= 1
    assert main(words) == 2
    assert "continue it with --resume" in capsys.readouterr().err
    assert main(["experiment", "drift", "--out", "out", "--report-only"]) == 0
    assert "Skipped so far" in (tmp_path / "out" / "claim.md").read_text()
