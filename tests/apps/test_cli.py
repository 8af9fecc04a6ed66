"""The command line as people use it: real files, real exit codes, wrong input included."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.readable import SCHEMA, small_rows

from discreet.apps.cli import main
from discreet.data.scratch import LOCK, PREFIX
from discreet.privacy.loss import rho_of
from discreet.publish.store import account_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(small_rows(800), tmp_path / "people.csv")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


RELEASE = ["release", "people.csv", "--schema", "schema.json", "--workload", "all:2", "--epsilon", "2"]
QUICK = ["--seed", "0", "--rows", "50", "--out", "out"]


def test_a_release_from_start_to_finish(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RELEASE, *QUICK, "--ledger", "people.ledger"]) == 0
    said = capsys.readouterr().out
    assert "largest error at most" in said
    assert "the noise was seeded (0)" in said
    files = {path.name for path in (folder / "out").iterdir()}
    assert files == {
        "release.json",
        "synthetic.parquet",
        "codes.parquet",
        "answers.parquet",
        "measurements.parquet",
        "model.parquet",
        "report.html",
    }
    described = json.loads((folder / "out" / "release.json").read_text())
    assert described["guarantee"]["spent_epsilon"] <= 2
    assert described["noise"].startswith("seeded")

    assert main(["answer", "out", "age=20-39, sex=Male", "2 of (age=40-59, sex=Female, income=15)"]) == 0
    said = capsys.readouterr().out
    assert said.count("about") == 2
    assert "Ran auto on the release's own rows" in said
    assert "measured)" in said
    assert "estimated)" in said and "not guaranteed" in said
    (folder / "out" / "bootstrap.json").unlink()
    (folder / "out" / "bootstrap.json.part").mkdir()  # nothing can be written there
    assert main(["answer", "out", "2 of (age=40-59, sex=Female, income=15)"]) == 0
    said = capsys.readouterr().out
    assert "but not kept" in said
    assert "estimated)" in said
    (folder / "out" / "bootstrap.json.part").rmdir()
    assert main(["answer", "out", "--json", 'sex="Male"', "sex=Male"]) == 0
    told = json.loads(capsys.readouterr().out)["sex=Male"]
    assert told["kind"] == "measured"
    assert told["low"] <= told["high"]
    assert main(["answer", "out", "--workload", "all:1+all:3@1", "-o", "answers.parquet"]) == 0
    table = pq.read_table("answers.parquet")
    assert table.column_names[0] == "threshold"
    assert table.column_names[-4:] == ["estimate", "low", "high", "interval"]
    assert table["estimate"].to_numpy().max() <= 1.01

    assert main(["evaluate", "out", "--data", "people.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["private"] is False
    for prefix in ("", "rows_"):
        for name in ("max_error", "mean_error", "rmse", "mean_tvd", "worst"):
            assert prefix + name in found
    assert found["max_error"] == pytest.approx(max(worst["error"] for worst in found["worst"]))
    pyarrow.csv.write_csv(small_rows(799), folder / "fewer.csv")
    assert main(["evaluate", "out", "--data", "fewer.csv"]) == 2
    assert "another number of rows" in capsys.readouterr().err
    assert main(["evaluate", "out", "--data", "people.csv", "--workload", "all:3"]) == 0
    assert "NOT PRIVATE" in capsys.readouterr().out

    (folder / "out" / "report.html").unlink()
    assert main(["report", "out"]) == 0
    assert (folder / "out" / "report.html").is_file()
    capsys.readouterr()
    assert main(["ledger", "out"]) == 0
    assert "certificate" in capsys.readouterr().out
    assert main(["ledger", "people.ledger", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rho"] == pytest.approx(described["guarantee"]["spent_rho"])


def test_budgets_of_several_releases_add_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = ["--ledger", "people.ledger", "--ledger-epsilon", "2.5", "--mechanism", "gaussian"]
    assert main([*RELEASE, *shared, "--out", "one"]) == 0
    assert main([*RELEASE, *shared, "--out", "two"]) == 2
    assert "BudgetExceeded" in capsys.readouterr().err
    assert not (folder / "two").exists()
    assert main(["ledger", "people.ledger"]) == 0
    said = capsys.readouterr().out
    most = rho_of(2.5, 1 / 800**2)
    left = float(most - rho_of(2.0, 1 / 800**2))
    assert f"{left:.6g}  left of the ledger's limit, in rho (rho {float(most):.6g}, epsilon 2.5" in said


def test_residuals_are_released_and_too_many_of_them_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = ["--mechanism", "residual-planner", "--set", "objective=largest", "--seed", "0"]
    assert main([*RELEASE, *planned, "--out", "out"]) == 0
    assert main(["answer", "out", "age=20-39, sex=Male"]) == 0
    assert main(["answer", "out", "age=20-39, sex=Male, income=15"]) == 2
    assert "was not measured" in capsys.readouterr().err
    (folder / "wide.csv").write_text("a,b,c\n0,1,2\n")
    (folder / "wide.json").write_text(json.dumps(dict.fromkeys("abc", 2000)))
    wide = ["release", "wide.csv", "--schema", "wide.json", "--workload", "all:3", "--epsilon", "1", "--delta", "1e-6"]
    assert main([*wide, *planned, "--out", "wide", "--ledger", "wide.ledger"]) == 2
    assert "at most 67,108,864 can be measured whole" in capsys.readouterr().err
    assert not (folder / "wide").exists() and not (folder / "wide.ledger").exists()


def test_schemas_are_drafted_with_a_warning_and_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "draft", "people.csv", "-o", "draft.json"]) == 0
    assert "looked at the values" in capsys.readouterr().out
    assert main(["schema", "check", "people.csv", "--schema", "draft.json"]) == 0
    assert "800 rows" in capsys.readouterr().out
    narrow = {"attributes": [SCHEMA["attributes"][1] | {"values": ["Female"]}]}
    (folder / "narrow.json").write_text(json.dumps(narrow))
    assert main(["schema", "check", "people.csv", "--schema", "narrow.json"]) == 2
    said = capsys.readouterr().err
    assert "sex" in said
    assert "outside the schema" in said
    assert "Male" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["release", "nothing.csv", *RELEASE[2:], "--out", "out"], "nothing.csv"),
        ([*RELEASE[:2], "--schema", "nothing.json", *RELEASE[4:], "--out", "out"], "nothing.json"),
        ([*RELEASE[:5], "all:9", *RELEASE[6:], "--out", "out"], "k must be"),
        ([*RELEASE[:7], "-1", "--out", "out"], "epsilon must be a positive number"),
        ([*RELEASE, "--delta", "0", "--out", "out"], "delta must lie strictly between"),
        ([*RELEASE, "--neighbours", "add-remove", "--out", "out"], "give --delta"),
        ([*RELEASE, "--mechanism", "magic", "--out", "out"], "mechanism must be one of"),
        ([*RELEASE, "--set", "colour=red", "--out", "out"], "has no setting 'colour'"),
        ([*RELEASE, "--set", "colour", "--out", "out"], "key=value"),
        ([*RELEASE, "--mechanism", "rap", "--rounds", "30", "--out", "out"], "30 rounds of 16 queries"),
        (["schema", "draft", "people.csv", "-o", "no/such/schema.json"], "cannot be written"),
        (["schema", "draft", "people.csv", "-o", "schema.json"], "schema.json exists"),
        ([*RELEASE, "--ledger-epsilon", "1", "--out", "out"], "name its file with --ledger"),
        ([*RELEASE, "--ledger", ".", "--out", "out"], "it is a folder"),
        ([*RELEASE[:5], "random:2:3", *RELEASE[6:], "--workload-seed", "-1", "--out", "out"], "workload_seed"),
        ([*RELEASE[:5], "age, " * 100, *RELEASE[6:], "--out", "out"], "not an attribute"),
        ([*RELEASE, "--certificate", "1.5", "--out", "out"], "certificate must be"),
        ([*RELEASE, "--rows-per-person", "0", "--out", "out"], "rows_per_person"),
        ([*RELEASE, "--out", "people.csv"], "not an empty folder"),
        ([*RELEASE, "--out", "."], "not an empty folder"),
        ([*RELEASE, "--ledger", "no/such/ledger", "--out", "out"], "cannot be written"),
        (["answer", "nowhere", "sex=Male"], "is not there, or not a release"),
        (["answer", ".", "sex=Male"], "not a release"),
        (["evaluate", "nowhere", "--data", "people.csv"], "is not there, or not a release"),
        (["ledger", "nowhere"], "nowhere is not there: give a release folder, or a ledger file"),
        (["report", "people.csv"], "is not there, or not a release"),
    ],
)
def test_mistakes_are_explained_and_spend_nothing(
    folder: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert not (folder / "out").exists()


def test_columns_that_a_second_file_lacks_are_said_to_be_lacking_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RELEASE, *QUICK, "--set", "max_steps=8"]) == 0
    (folder / "other.csv").write_text("age,sex\n30,Male\n")
    capsys.readouterr()
    assert main(["evaluate", "out", "--data", "people.csv", "--holdout", "other.csv"]) == 2
    assert "other.csv has no column 'income', 'born', which the schema describes." in capsys.readouterr().err


def test_a_public_table_that_a_release_did_not_start_from_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RELEASE, *QUICK, "--set", "max_steps=8"]) == 0
    pyarrow.csv.write_csv(small_rows(50), folder / "older.csv")
    assert main(["answer", "out", "age=20-39, sex=Male, income=15", "--public", "older.csv"]) == 2
    assert "auto does not start from a public table" in capsys.readouterr().err
    assert main(["answer", "out", "age=20-39, sex=Male, income=15", "--public", "nothing.csv"]) == 2
    assert "nothing.csv does not exist" in capsys.readouterr().err
    assert not (folder / "out" / "bootstrap.json").exists()


@pytest.mark.parametrize(
    ("mechanism", "lacks", "quick"),
    [
        ("gem-pub", ["born"], {"rows": 20, "hidden": 16, "inputs": 4, "steps": 20, "learning": 20}),
        ("pep-pub", [], {}),
        ("pmw-pub", [], {}),
    ],
)
def test_a_release_that_starts_from_a_public_table(
    folder: Path, mechanism: str, lacks: list[str], quick: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    started = [*RELEASE, "--mechanism", mechanism, "--certificate", "0", "--seed", "0", "--out", "out"]
    started += ["--rounds", "2", "--per-round", "4"]
    for name, number in quick.items():
        started += ["--set", f"{name}={number}"]
    assert main(started) == 2
    assert "give one with --public" in capsys.readouterr().err
    pyarrow.csv.write_csv(small_rows(300, seed=1).drop_columns(lacks), folder / "older.csv")
    pyarrow.csv.write_csv(small_rows(300, seed=1).drop_columns(["age"]), folder / "part.csv")
    if not lacks:
        assert main([*started, "--public", "part.csv"]) == 2
        assert "The public table lacks 'age'" in capsys.readouterr().err
    assert not (folder / "out").exists()

    assert main([*started, "--public", "older.csv"]) == 0
    assert "no error bars until `discreet answer` estimates them" in " ".join(capsys.readouterr().out.split())
    spent = json.loads((folder / "out" / "release.json").read_text())["guarantee"]["spent_epsilon"]
    assert 0 < spent <= 2

    assert main(["answer", "out", "age=20-39, born=2001"]) == 0
    said = capsys.readouterr()
    assert "unknown)" in said.out and "--public" in said.err
    assert main(["answer", "out", "age=20-39, born=2001", "--public", "older.csv"]) == 0
    assert "estimated)" in capsys.readouterr().out
    assert main(["evaluate", "out", "--data", "people.csv", "--predict", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["max_error"] < 0.2


def test_an_answer_outside_its_measured_interval_is_explained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = [*RELEASE[:7], "0.05", "--seed", "0", "--mechanism", "rap", "--set", "max_steps=8", "--out", "out"]
    assert main(tiny) == 0
    capsys.readouterr()
    assert main(["answer", "out", "--workload", "all:2", "-o", "answers.parquet"]) == 0
    rows = pq.read_table("answers.parquet").to_pylist()
    inside, outside = (
        next(
            row
            for row in rows
            if row["interval"] == "measured" and (row["low"] <= row["estimate"] <= row["high"]) == kept
        )
        for kept in (True, False)
    )
    for row, told in ((inside, False), (outside, True)):
        capsys.readouterr()
        asked = ", ".join(f'{row[f"attribute_{at}"]}="{row[f"value_{at}"]}"' for at in (1, 2))
        assert main(["answer", "out", asked]) == 0
        assert ("a model moves answers" in capsys.readouterr().out) == told


def test_wrong_queries_name_what_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RELEASE, *QUICK, "--mechanism", "gaussian"]) == 2  # gaussian has no rows to set
    capsys.readouterr()
    assert main([*RELEASE, "--mechanism", "gaussian", "--out", "out"]) == 0
    capsys.readouterr()
    for query, says in (
        ("height=3", "age, sex, income, born"),
        ("sex=Other", "Female"),
        ("age=20-39, sex=Male, income=15", "was not measured"),
    ):
        assert main(["answer", "out", query]) == 2
        assert says in capsys.readouterr().err
    assert main(["answer", "out"]) == 2
    assert main(["answer", "out", "--workload", "all:2"]) == 2


def test_an_interval_that_is_unknown_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RELEASE, "--mechanism", "all-zero", "--out", "out"]) == 0
    assert main(["answer", "out", "2 of (age=40-59, sex=Female, income=15)"]) == 0
    said = capsys.readouterr()
    assert "1.000000, unknown)" in said.out
    assert (
        "neither measured nor certified. Errors cannot be estimated by a bootstrap: all-zero makes no rows" in said.err
    )


def test_an_existing_release_is_never_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RELEASE, "--mechanism", "all-zero", "--out", "out"]) == 0
    before = (folder / "out" / "release.json").read_bytes()
    assert main([*RELEASE, "--mechanism", "all-zero", "--out", "out"]) == 2
    assert (folder / "out" / "release.json").read_bytes() == before


def test_a_mistake_in_what_is_asked_shows_before_the_table_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["release", "nowhere.csv", *RELEASE[2:4], "--epsilon", "1"]
    assert main([*asked, "--workload", "all:99", "--out", "out"]) == 2
    assert "99" in capsys.readouterr().err
    assert main([*asked, "--workload", "all:2", "--out", "."]) == 2
    assert "not an empty folder" in capsys.readouterr().err
    assert main([*asked, "--workload", "all:2", "--out", "out"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
    assert not (folder / "out").exists()


def stop_when(ready: Callable[[], bool], number: signal.Signals, words: list[str], **settings: Any) -> tuple[int, str]:
    """Run a command, send it a signal once it is ready for one; what it returned, and what it said."""
    with subprocess.Popen(
        [sys.executable, "-m", "discreet", *words], stderr=subprocess.PIPE, text=True, **settings
    ) as process:
        try:
            for _ in range(1200):
                if ready() or process.poll() is not None:
                    break
                time.sleep(0.05)
            assert ready()
            os.kill(process.pid, number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, said


def test_ctrl_c_leaves_a_folder_that_says_what_it_spent(folder: Path) -> None:
    slow = ["--mechanism", "rap-paper", "--rounds", "20", "--per-round", "4", "--set", "steps=1000000"]
    ledger = folder / "out" / "ledger.jsonl"
    code, said = stop_when(
        lambda: ledger.is_file() and len(ledger.read_text().splitlines()) >= 3,
        signal.SIGINT,
        [*RELEASE, *slow, "--set", "tolerance=0", "--out", "out"],
        cwd=folder,
    )
    assert code == 130
    assert "out is unfinished" in said
    assert "Traceback" not in said
    charges = account_of(folder / "out").charges
    assert [charge.label for charge in charges[:2]] == ["round 1 of 20: select", "round 1 of 20: measure"]
    assert len(charges) < 40
    assert main(["answer", "out", "sex=Male"]) == 2
    assert main(["ledger", "out"]) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_removes_private_files(folder: Path, number: signal.Signals) -> None:
    """More rows than 64 MB are given for, so codes are on disk while the model is fitted."""
    pq.write_table(small_rows(100_000), folder / "many.parquet")
    temporary = folder / "temporary"
    temporary.mkdir()
    slow = ["--mechanism", "rap-paper", "--rounds", "20", "--set", "steps=1000000", "--set", "tolerance=0"]

    def kept() -> bool:
        """Whether codes are on disk; libraries also try the place with a file that goes away at once."""
        return any(path.name != LOCK for path in temporary.glob(f"{PREFIX}*/*"))

    code, said = stop_when(
        kept,
        number,
        ["release", "many.parquet", *RELEASE[2:], *slow, "--out", "out", "--memory", "64MB"],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert code == 128 + number
    assert "Interrupted" in said
    assert not any(temporary.iterdir())


def test_help_has_examples_and_import_is_quick() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "discreet", "release", "--help"], capture_output=True, text=True, check=True
    )
    assert "examples:" in shown.stdout
    probe = "import time; t = time.perf_counter(); import discreet; print(time.perf_counter() - t)"
    took = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert float(took.stdout) < 1


def test_the_demo_runs_small(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--rows", "300", "--out", "demo", "--seed", "1"]) == 0
    assert "Against the invented truth" in capsys.readouterr().out
    assert (folder / "demo" / "report.html").is_file()
    assert main(["demo", "--rows", "1", "--out", "tiny"]) == 2


def test_answers_are_never_written_over_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RELEASE, "--mechanism", "gaussian", "--out", "out"]) == 0
    before = (folder / "people.csv").read_bytes()
    assert main(["answer", "out", "--workload", "all:2", "-o", "people.csv"]) == 2
    assert "people.csv exists" in capsys.readouterr().err
    assert (folder / "people.csv").read_bytes() == before


def test_too_many_answers_are_refused_before_they_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wide.csv").write_text("a,b,c\n" + "1,2,3\n" * 40)
    (folder / "wide.json").write_text(json.dumps({"a": 10**6, "b": 10**6, "c": 10**6}))
    wide = ["release", "wide.csv", "--schema", "wide.json", "--workload", "a", "--epsilon", "1"]
    assert main([*wide, "--mechanism", "gaussian", "--out", "wide"]) == 0
    assert main(["answer", "wide", "--workload", "a, b, c", "-o", "answers.parquet"]) == 2
    assert "1,000,000,000,000,000,000 answers are too many" in capsys.readouterr().err
    assert not (folder / "answers.parquet").exists()


def test_a_refused_run_leaves_no_ledger_with_its_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--mechanism", "gaussian", "--ledger", "people.ledger", "--out", "out", "--ledger-epsilon"]
    assert main([*RELEASE, *small, "0.5"]) == 2
    assert "BudgetExceeded" in capsys.readouterr().err
    assert not (folder / "people.ledger").exists()
    (folder / "people.ledger").touch()
    assert main([*RELEASE, *small, "0.5"]) == 2
    assert (folder / "people.ledger").read_bytes() == b"", "nor in a file that was there, and empty"
    assert main([*RELEASE, *small, "2.5"]) == 0


def test_made_up_attributes_are_warned_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [*RELEASE[:4], "--workload", "age, sex", "--epsilon", "1"]
    assert main([*asked, *QUICK, "--set", "max_steps=8"]) == 0
    assert "Nothing was asked or measured of income, born" in " ".join(capsys.readouterr().out.split())
    assert main(["answer", "out", "sex=Male, income=15"]) == 0
    said = capsys.readouterr().out
    assert "unknown)" in said and "Nothing was asked or measured of income: answers there are not from" in said
    assert "Ran auto" not in said


def test_ctrl_c_while_modules_load_is_no_crash(folder: Path) -> None:
    loading = "import signal, sys, types; sys.argv = ['discreet', 'answer', 'out', 'a=1']\n"
    loading += "from discreet.apps import cli\n"
    loading += "sys.modules['discreet.apps.commands'] = types.ModuleType('discreet.apps.commands')  # half loaded\n"
    loading += "cli._carry_out = lambda parsed: signal.raise_signal(signal.SIGINT)\ncli.run()"
    ended = subprocess.run([sys.executable, "-c", loading], capture_output=True, text=True, cwd=folder, check=False)
    assert (ended.returncode, ended.stderr) == (130, "\nInterrupted. Nothing was spent.\n")
