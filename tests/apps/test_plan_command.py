"""`discreet plan` as people use it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest
from tests.readable import SCHEMA, small_rows

from discreet.apps.cli import main
from discreet.mechanisms.catalogue import catalogue

PLAN = ["plan", "people.csv", "--schema", "schema.json", "--workload", "all:2", "--epsilon", "1"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(small_rows(800), tmp_path / "people.csv")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


def test_a_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(PLAN) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == "82 queries of 6 thresholds at epsilon 1. Nothing is spent."
    assert lines[1].split() == ["mechanism", "cells", "measured", "memory", "time", "largest", "error"]
    (recommended,) = [line for line in lines if line.startswith("  * auto ")]
    assert " GB " in recommended
    assert any(line.split()[0] == "all-zero" and line.endswith("up to 1") for line in lines)
    assert "approximate; time is for one core of this machine" in said
    assert "rules of thumb" in said
    assert "  * the default. " in said
    errors = {line[4:21].strip(): line.split()[-1] for line in lines[2:] if " GB " in line}
    assert next(iter(errors.values())) == min((text for text in errors.values() if text != "1"), key=float)
    refused = said.split("These do not apply:")[1]
    assert "pep-pub starts from a public table of the same schema: give one with --public." in refused
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "schema.json"]


def test_a_plan_in_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "--json"]) == 0
    told = {one["mechanism"]: one for one in json.loads(capsys.readouterr().out)}
    assert set(told) == set(catalogue())
    assert set(told["auto"]) == {"mechanism", "cells", "bytes", "seconds", "largest_error", "refused"}
    assert told["auto"]["refused"] is None
    assert told["pmw-pub"]["seconds"] is None


def test_some_mechanisms_with_a_setting(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "--mechanism", "mwem", "--mechanism", "rap", "--set", "rounds=4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["mechanism"] for one in told} == {"mwem", "rap"}
    pyarrow.csv.write_csv(small_rows(300, seed=1), folder / "older.csv")
    assert main([*PLAN, "--mechanism", "pep-pub", "--public", "older.csv"]) == 0
    said = capsys.readouterr().out
    assert "These do not apply" not in said
    assert "the default" not in said
    assert main([*PLAN, "--public", "people.csv"]) == 2
    assert "--public names the private table" in capsys.readouterr().err


def test_a_private_number_of_rows_must_be_guessed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "people.csv").unlink()  # it is not read
    private = [*PLAN, "--neighbours", "add-remove", "--delta", "1e-6"]
    assert main(private) == 2
    assert "the number of rows is private" in capsys.readouterr().err
    assert main([*private, "--people", "800"]) == 0
    assert "* auto" in capsys.readouterr().out
    assert main(PLAN) == 2
    assert "people.csv" in capsys.readouterr().err


def test_what_a_release_may_be_told_a_plan_may_be_told_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "past.json").write_text('["age=20-39, sex=Male", "sex, income"]')
    learned = [*PLAN[:4], "--history", "past.json", "--augment", "1", "--epsilon", "1", "--json"]
    tight, loose = (
        {one["mechanism"]: one for one in told}
        for conversion in ("tight", "closed-form")
        for told in [(main([*learned, "--conversion", conversion]), json.loads(capsys.readouterr().out))[1]]
    )
    assert tight["gaussian"]["cells"] == loose["gaussian"]["cells"] > 20
    assert tight["gaussian"]["largest_error"] < loose["gaussian"]["largest_error"]
    rounds = ["--mechanism", "rap-paper", "--rounds", "3", "--per-round", "2", "--rows", "40", "--json"]
    assert main([*PLAN, *rounds]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["cells"] == 6
    with pytest.raises(SystemExit):
        main([*PLAN, "--history", "past.json"])
    assert "not allowed with" in capsys.readouterr().err
