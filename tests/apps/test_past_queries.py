"""Past and future queries on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest
from tests.readable import SCHEMA, small_rows

from discreet.apps.cli import main

PAST = ["age=20-39, sex=Male", {"attributes": ["age", "sex"], "count": 6}, "income, born", "sex, income", "age, born"]
LATER = [{"query": "age=20-39, sex=Male", "count": 5}, "sex, born", {"attributes": ["age", "income"], "count": 2}]
RELEASE = ["release", "people.csv", "--schema", "schema.json", "--epsilon", "2"]
OUT = ["--ledger", "people.ledger", "--out", "out"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(small_rows(400), tmp_path / "people.csv")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "past.json").write_text(json.dumps(PAST))
    (tmp_path / "later.json").write_text(json.dumps({"queries": LATER}))
    (tmp_path / "broken.json").write_text("[")
    (tmp_path / "empty.json").write_text("[]")
    (tmp_path / "wrong.json").write_text('["age, sex", {"attributes": ["age", "sex"], "r": 3}]')
    return tmp_path


def test_a_release_from_past_queries_and_its_future(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--rows", "50", "--seed", "0", "--workload-seed", "1"]
    assert main([*RELEASE, "--history", "past.json", "--augment", "1", *quick, *OUT]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "learned from 10 past queries of 4 thresholds; 1 further thresholds were drawn at random." in said
    assert "about 30.0% of them ask a threshold that was not asked before" in said
    assert "5 of 6 possible 2-way marginals are in the workload; of the others, 100.0% of their attributes are" in said
    assert "What about future queries?" in (folder / "out" / "report.html").read_text()
    assert json.loads((folder / "out" / "release.json").read_text())["history"]["past"] == 10

    assert main(["evaluate", "out", "--data", "people.csv", "--future", "later.json"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("NOT PRIVATE")
    for part in (
        "Future queries: 8, of which",
        "present error",
        "future error",
        "largest error",
        "Student's, with 95%",
    ):
        assert part in said
    assert main(["evaluate", "out", "--data", "people.csv", "--future", "later.json", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["future"]
    assert found["future_error"]["low"] <= found["future_error"]["mean"] <= found["future_error"]["high"]
    assert found["future_error"]["draws"] == 8
    assert found["largest_error"] >= found["future_error"]["mean"]
    assert main(["report", "out"]) == 0
    assert "past queries" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--history", "nothing.json"], "history file nothing.json cannot be read"),
        (["--history", "broken.json"], "history file broken.json is not JSON"),
        (["--history", "schema.json"], "must hold a list"),
        (["--history", "empty.json"], "history is empty"),
        (["--history", "wrong.json"], "Past query 2: r must be"),
        (["--history", "past.json", "--augment", "-1"], "augment must be a whole number"),
        (["--history", "past.json", "--augment", "3"], "only 2 of the history's kinds"),
        (["--history", "past.json", "--workload-seed", "-1"], "workload_seed"),
        (["--workload", "all:2", "--augment", "3"], "augment adds to a history"),
    ],
)
def test_mistakes_are_explained_and_spend_nothing(
    folder: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RELEASE, *arguments, *OUT]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert not (folder / "out").exists()
    assert not (folder / "people.ledger").exists()


@pytest.mark.parametrize("asked", [[], ["--workload", "all:2", "--history", "past.json"]])
def test_exactly_one_of_workload_and_history(
    folder: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*RELEASE, *asked, *OUT])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert "--workload" in said and "--history" in said


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("future", "says"),
    [("nothing.json", "cannot be read"), ("empty.json", "history is empty"), ("wrong.json", "Past query 2: r must be")],
)
def test_a_future_that_cannot_be_read(future: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RELEASE, "--workload", "all:2", "--mechanism", "all-zero", "--out", "out"]) == 0
    assert main(["evaluate", "out", "--data", "people.csv", "--future", future]) == 2
    assert says in capsys.readouterr().err
