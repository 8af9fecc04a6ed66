"""Classifiers trained on synthetic rows, beside those trained on true ones."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.apps import commands
from discreet.apps.cli import main
from discreet.compare import errors
from discreet.compare.downstream import downstream, usual_target
from discreet.data.domain import Domain
from discreet.data.table import Table
from discreet.errors import BadData, BadRelease, BadSetting, UnknownAttribute
from discreet.publish.release import Release

SIZES = {"a": 4, "b": 3, "y": 2}


def rows(count: int, seed: int, *, noise: float = 0.1) -> pa.Table:
    draws = np.random.default_rng(seed)
    a, b = draws.integers(0, 4, count), draws.integers(0, 3, count)
    y = ((a >= 2) ^ (draws.random(count) < noise)).astype(int)
    return pa.table({"a": a, "b": b, "y": y})


def table(count: int, seed: int) -> Table:
    return discreet.read(rows(count, seed), schema=SIZES)


@pytest.fixture(scope="module")
def made() -> Release:
    return discreet.release(table(4000, 1), "all:2", epsilon=5.0, rows=100, seed=0)


def test_relations_that_were_kept_are_learned(made: Release) -> None:
    found = downstream(made, table(4000, 1), "y", holdout=table(1000, 2))
    assert found.held_out and found.tested == 1000
    assert 0.87 < found.trained_on_true < 0.93
    assert 0.87 < found.trained_on_synthetic < 0.93
    assert 0.45 < found.most_frequent < 0.55
    other = discreet.release(table(4000, 1), "all:1", epsilon=5.0, rows=100, seed=0)
    assert downstream(other, table(4000, 1), "y").trained_on_synthetic < 0.8


def test_without_rows_held_out_a_quarter_is_for_testing(made: Release) -> None:
    found = discreet.evaluate(made, table(4000, 1), predict="y")["downstream"]
    assert (found["tested"], found["held_out"]) == (1000, False)
    assert "downstream" not in discreet.evaluate(made, table(4000, 1))


def test_what_cannot_be_compared_is_refused(made: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownAttribute):
        downstream(made, table(4000, 1), "z")
    with pytest.raises(BadData, match="another schema"):
        downstream(made, table(4000, 1), "y", holdout=discreet.read(pa.table({"a": [0]}), schema={"a": 4}))
    with pytest.raises(BadSetting, match="say which attribute"):
        discreet.evaluate(made, table(4000, 1), holdout=table(10, 3))
    with monkeypatch.context() as early:
        early.setattr(errors, "errors", None)  # nothing is compared before it is refused
        with pytest.raises(UnknownAttribute, match="colour"):
            discreet.evaluate(made, table(4000, 1), predict="colour")
    bare = discreet.release(table(100, 1), "all:2", epsilon=1.0, mechanism="gaussian", seed=0)
    with pytest.raises(BadRelease, match="no synthetic rows"):
        downstream(bare, table(100, 1), "y")


def test_the_usual_target_is_the_last_small_attribute() -> None:
    assert usual_target(Domain({"a": 2, "b": 10, "c": 11, "d": 1})) == "b"
    assert usual_target(Domain({"c": 11, "d": 1})) is None


def test_the_command_line_shows_both(tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Release) -> None:
    from pyarrow import csv

    csv.write_csv(rows(4000, 1), tmp_path / "data.csv")
    csv.write_csv(rows(500, 2), tmp_path / "later.csv")
    made.save(tmp_path / "release")
    evaluate = ["evaluate", str(tmp_path / "release"), "--data", str(tmp_path / "data.csv")]
    assert main(evaluate) == 0
    assert (
        "predicts y is right on this share of 1,000 rows that the release was made from too" in capsys.readouterr().out
    )
    assert main([*evaluate, "--predict", "b", "--holdout", str(tmp_path / "later.csv")]) == 0
    assert "predicts b is right on this share of 500 rows held out" in capsys.readouterr().out
    assert main([*evaluate, "--predict", "none"]) == 0
    assert "predicts" not in capsys.readouterr().out
    assert main([*evaluate, "--predict", "colour"]) == 2
    assert main([*evaluate, "--predict", "b", "--holdout", str(tmp_path / "data.csv")]) == 2
    assert "--holdout names the table itself" in capsys.readouterr().err


def test_where_no_classifier_is_trained_unasked_it_is_said_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, made: Release
) -> None:
    from pyarrow import csv

    csv.write_csv(rows(4000, 1), tmp_path / "data.csv")
    made.save(tmp_path / "release")
    evaluate = ["evaluate", str(tmp_path / "release"), "--data", str(tmp_path / "data.csv")]
    with monkeypatch.context() as small:
        small.setattr(commands, "MOST_UNASKED", 3999)
        assert main(evaluate) == 0
        assert "No classifier was trained: more than 3,999 rows" in capsys.readouterr().out
        assert main([*evaluate, "--predict", "y"]) == 0
        assert "predicts y" in capsys.readouterr().out
        csv.write_csv(rows(500, 2), tmp_path / "later.csv")
        assert main([*evaluate, "--holdout", str(tmp_path / "later.csv")]) == 2
        assert "none is trained: more than 3,999 rows" in capsys.readouterr().err
    monkeypatch.setattr(commands, "find_spec", lambda _: None)
    assert main(evaluate) == 0
    assert "needs scikit-learn" in capsys.readouterr().out
