"""Releases whose workload was learned from past queries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.readable import small_table

import discreet
from discreet.errors import BadSetting, BadWorkload
from discreet.publish.report import render
from discreet.queries.threshold import Threshold

PAST = ["age=20-39, sex=Male"] * 8 + ["income, born", "1 of (age, born)"]


def test_the_mechanism_sees_a_workload_and_the_release_says_where_it_came_from(tmp_path: Path) -> None:
    table = small_table(300)
    made = discreet.release(table, history=PAST, augment=2, epsilon=2.0, rows=20, seed=0, workload_seed=4)
    past = discreet.History.read(PAST, table.domain)
    assert made.workload == past.workload(augment=2, seed=4)
    assert made.outlook is not None
    assert (made.outlook.past, made.outlook.thresholds, made.outlook.added) == (10, 3, 2)
    same = discreet.release(table, made.workload, epsilon=2.0, rows=20, seed=0)
    assert same.outlook is None
    assert same.answer("age=20-39, sex=Male") == made.answer("age=20-39, sex=Male")
    assert [charge.rho for charge in same.charges] == [charge.rho for charge in made.charges]

    made.save(tmp_path / "out")
    opened = discreet.Release.open(tmp_path / "out")
    assert opened.outlook == made.outlook
    assert opened.workload == made.workload
    assert json.loads((tmp_path / "out" / "release.json").read_text())["history"]["added"] == 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert page == render(opened)
    assert "What about future queries?" in page
    for sentence in [made.outlook.origin(), *made.outlook.sentences()]:
        assert sentence in page
    assert "What about future queries?" not in render(same)


def test_releases_written_before_there_were_histories_open(tmp_path: Path) -> None:
    discreet.release(small_table(50), "all:1", epsilon=1.0, mechanism="all-zero").save(tmp_path / "out")
    described = json.loads((tmp_path / "out" / "release.json").read_text())
    del described["history"]
    (tmp_path / "out" / "release.json").write_text(json.dumps(described))
    assert discreet.Release.open(tmp_path / "out").outlook is None


def test_a_threshold_asked_more_often_is_measured_with_less_noise() -> None:
    made = discreet.release(small_table(300), history=PAST, epsilon=1.0, mechanism="gaussian", seed=0)
    sigmas = {measured.threshold: measured.sigma_squared for measured in made.measurements}
    ratio = sigmas[Threshold(("income", "born"))] / sigmas[Threshold(("age", "sex"))]
    assert float(ratio) == pytest.approx(8 ** (2 / 3))


def test_either_a_workload_or_a_history_and_nothing_is_charged(tmp_path: Path) -> None:
    table, ledger = small_table(50), tmp_path / "ledger"
    for wrong in ({}, {"workload": "all:1", "history": PAST}, {"workload": "all:1", "augment": 2}):
        with pytest.raises(BadSetting, match=r"either a workload, or a history|augment adds to a history"):
            discreet.release(table, epsilon=1.0, ledger=ledger, **wrong)
    with pytest.raises(BadWorkload, match="only"):
        discreet.release(table, history=PAST, augment=1000, epsilon=1.0, ledger=ledger)
    assert not ledger.exists()
