"""Releases from Python: saved, opened, asked; and tables at the edge."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.readable import SCHEMA, small_rows, small_table

import discreet
from discreet.errors import BadData, BadLedger, BadRelease, BadSetting, BadWorkload
from discreet.mechanisms import allotment, answering, cover, rap
from discreet.models.relaxed import RelaxedRows
from discreet.models.rounded import RoundedRows
from discreet.publish import store
from discreet.publish.release import Release
from discreet.queries.answers import fraction


def make(rows: int = 500, **changes: object) -> Release:
    settings: dict[str, object] = {"epsilon": 2.0, "seed": 3, "rows": 50, **changes}
    return discreet.release(small_table(rows), "all:2", **settings)  # type: ignore[arg-type]


def test_a_saved_release_opens_as_it_was(tmp_path: Path) -> None:
    made = make()
    made.save(tmp_path / "out")
    opened = discreet.Release.open(tmp_path / "out")
    assert opened.workload == made.workload
    assert opened.guarantee == made.guarantee
    assert opened.certificate == made.certificate
    assert [c.rho for c in opened.charges] == [c.rho for c in made.charges]
    for text in ("sex=Male", "age=20-39, income=missing", "1 of (age=0-19, sex=Female)"):
        assert opened.answer(text) == made.answer(text)
    assert np.array_equal(opened.codes, made.codes)  # type: ignore[arg-type]
    again = [m.counts for m in opened.measurements]
    assert all(np.array_equal(a, m.counts) for a, m in zip(again, made.measurements, strict=True))


@pytest.mark.parametrize("mechanism", ["gaussian", "all-zero"])
def test_releases_without_rows_open_too(mechanism: str, tmp_path: Path) -> None:
    made = discreet.release(small_table(100), "all:2", epsilon=1.0, mechanism=mechanism)
    made.save(tmp_path / "out")
    opened = Release.open(tmp_path / "out")
    assert opened.answer("sex=Male, age=0-19") == made.answer("sex=Male, age=0-19")
    assert opened.noise_seed is None
    for count in (None, 5):
        with pytest.raises(BadRelease, match="auto"):
            opened.rows(count)
    with pytest.raises(BadSetting, match="count"):
        opened.rows(-3)


def test_rows_come_in_the_original_schema() -> None:
    made = make()
    rows = made.rows()
    assert rows.column_names == ["age", "sex", "income", "born"]
    assert len(rows) == 500
    assert len(made.rows(7)) == 7
    assert made.rows(20, seed=1).equals(made.rows(20, seed=1))
    assert set(made.rows(50, seed=0, labels=True)["sex"].to_pylist()) <= {"Female", "Male"}
    assert discreet.read(rows, schema=SCHEMA).rows() == 500


def test_a_workload_is_answered_in_words() -> None:
    made = make()
    table = made.answer("all:1")
    assert isinstance(table, pa.Table)
    assert len(table) == made.domain.bits
    sexes = table.filter(pa.compute.equal(table["threshold"].cast(pa.string()), "sex"))
    values = dict(zip(sexes["value_1"].to_pylist(), sexes["estimate"].to_pylist(), strict=True))
    assert values["Male"] == made.answer("sex=Male") == fraction(made.answers, made.query("sex=Male"))


def test_several_queries_are_answered_in_order() -> None:
    made = make()
    assert made.answer(["sex=Male", "sex=Female"]) == [made.answer("sex=Male"), made.answer("sex=Female")]
    assert "Release" in dir(discreet)


def test_synthetic_rows_follow_the_answers() -> None:
    made = make(rows=2000, epsilon=20.0, delta=1e-6)
    assert made.certificate is not None
    assert made.certificate.rows_bound is not None
    assert made.certificate.bound < made.certificate.rows_bound < made.certificate.bound + 0.1


@pytest.mark.parametrize("rows", [2, 3])
def test_tiny_tables(rows: int) -> None:
    assert make(rows=rows).codes is not None


def test_one_row_needs_a_delta_and_no_rows_are_nothing() -> None:
    with pytest.raises(BadData, match="give delta"):
        make(rows=1)
    assert make(rows=1, delta=1e-6).answers.total == 1
    with pytest.raises(BadData, match="no rows"):
        make(rows=0, delta=1e-6)


@pytest.mark.parametrize("rows", [0, 1, 40])
def test_under_add_remove_an_empty_table_looks_like_any_other(rows: int) -> None:
    made = make(rows=rows, neighbours="add-remove", delta=1e-6)
    assert made.answers.total >= 1
    assert made.charges[0].label == "number of rows"
    with pytest.raises(BadSetting, match="delta"):
        make(rows=rows, neighbours="add-remove")


def test_an_attribute_with_one_value() -> None:
    table = discreet.read(pa.table({"a": [0] * 30, "b": [0, 1, 2] * 10}), schema={"a": 1, "b": 3})
    made = discreet.release(table, "all:2", epsilon=1.0, seed=0, rows=20)
    assert made.answer("a=0") == pytest.approx(1, abs=1e-5)


def test_damaged_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    make().save(tmp_path / "out")
    described = json.loads((tmp_path / "out" / "release.json").read_text())
    (tmp_path / "out" / "release.json").write_text(json.dumps({**described, "format": 99}))
    with pytest.raises(BadRelease, match="format 1"):
        Release.open(tmp_path / "out")
    del described["guarantee"]["rho"]
    (tmp_path / "out" / "release.json").write_text(json.dumps(described))
    with pytest.raises(BadRelease, match="damaged"):
        Release.open(tmp_path / "out")
    with pytest.raises(BadRelease, match="not a release"):
        Release.open(tmp_path / "nowhere")


def test_guarantees_in_words_say_whose_and_how_much() -> None:
    text = make(rows_per_person=3).guarantee.in_words(make().charges)
    assert "up to 3 rows of one person" in text
    skipped = discreet.release(small_table(50), "all:1", epsilon=1.0, mechanism="all-zero", certificate=0)
    assert "Nothing private was read" in skipped.guarantee.in_words(skipped.charges)
    assert skipped.certificate is None


def test_a_table_prints_its_domain_and_nothing_else() -> None:
    shown = repr(discreet.read(small_rows(123), schema=SCHEMA))
    assert "age: 5" in shown
    assert "123" not in shown


def test_workloads_beyond_the_limits_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    sizes = {f"a{i}": 4000 for i in range(4)}
    table = discreet.read(pa.table({name: [0, 1, 2] for name in sizes}), schema=sizes)
    refused: list[tuple[str, dict[str, object], str]] = [
        ("rap", {"answers": "relaxed"}, "relaxed rows can score"),
        ("rap", {"order": 3}, "can be measured whole"),
        ("gaussian-paper", {}, "can be measured whole"),
        ("residual-planner", {}, "can be measured whole"),
    ]
    for mechanism, settings, says in refused:
        with pytest.raises(BadWorkload, match=says):
            discreet.release(
                table, "all:4", epsilon=1.0, mechanism=mechanism, settings=settings, ledger=tmp_path / "ledger"
            )
    assert not (tmp_path / "ledger").exists()
    made = discreet.release(table, "all:4", epsilon=1.0, mechanism="all-zero", seed=0)
    assert made.certificate is not None


def test_answers_from_rounded_rows_are_the_rows(tmp_path: Path) -> None:
    made = make(rows=50, settings={"answers": "rounded", "copies": 40}, oversample=3)
    assert made.codes is not None
    assert len(made.codes) == 50 * 40
    assert made.certificate is not None
    assert made.certificate.rows_bound == made.certificate.bound
    made.save(tmp_path / "release")
    opened = Release.open(tmp_path / "release")
    assert opened.answer("all:2") == made.answer("all:2")
    counted = opened.rows(labels=True)
    assert counted.num_rows == 50 * 40
    assert opened.rows(70, seed=0).num_rows == 70
    described = json.loads((tmp_path / "release" / "release.json").read_text(encoding="utf-8"))
    assert described["answers_from"] == "rounded-rows"
    assert not (tmp_path / "release" / "model.parquet").exists()
    (tmp_path / "release" / "codes.parquet").unlink()
    with pytest.raises(BadRelease, match=r"codes\.parquet"):
        Release.open(tmp_path / "release")


def test_large_thresholds_are_answered_by_rounded_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "1 of (sex, age)"
    settings: dict[str, Any] = {"epsilon": 2.0, "rows": 20, "seed": 0}
    assert isinstance(discreet.release(small_table(50), asked, **settings).answers, RelaxedRows)
    monkeypatch.setattr(answering, "_MOST_DENSE", 5)
    assert isinstance(discreet.release(small_table(50), asked, **settings).answers, RoundedRows)
    assert isinstance(discreet.release(small_table(50), "sex, age", **settings).answers, RelaxedRows)
    with pytest.raises(BadWorkload, match="Leave out --set answers=relaxed"):
        discreet.release(small_table(50), asked, settings={"answers": "relaxed"}, **settings)


def test_a_run_that_fails_before_it_spends_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise BadData("The database went away.")

    monkeypatch.setattr(rap, "adaptive", failing)
    with pytest.raises(BadData):
        make(out=tmp_path / "out", mechanism="rap", neighbours="replace-one")
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadData):
        make(
            out=tmp_path / "out", mechanism="rap", neighbours="add-remove", delta=1e-6
        )  # the number of rows was paid for
    assert (tmp_path / "out" / "unfinished.json").is_file()


def test_a_tiny_certificate_is_a_certificate() -> None:
    made = discreet.release(small_table(50), "all:1", epsilon=1.0, mechanism="gaussian", certificate=1e-7, seed=0)
    assert made.certificate is not None
    assert made.certificate.bound > 1


@pytest.mark.parametrize(("mechanism", "orders"), [("auto", {1, 2}), ("rap", {2})])
def test_more_cells_than_can_be_measured_are_covered_by_smaller_marginals(
    mechanism: str, orders: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cover, allotment):
        monkeypatch.setattr(module, "MOST_CELLS", 1000)
    sizes = {f"a{i}": 12 for i in range(3)}
    table = discreet.read(pa.table({name: [0, 1, 2] * 200 for name in sizes}), schema=sizes)
    made = discreet.release(table, "all:3", epsilon=1e4, mechanism=mechanism, rows=20, seed=0)
    assert made.notes["order"] == 2
    assert {len(found.threshold.attributes) for found in made.measurements} == orders
    assert made.answer("a0=1, a1=1, a2=1") == pytest.approx(1 / 3, abs=0.05)


def test_one_query_of_many_attributes_needs_no_marginal() -> None:
    sizes = {f"a{i}": 50 for i in range(10)}
    table = discreet.read(pa.table({name: [0, 1, 2, 3] for name in sizes}), schema=sizes)
    made = discreet.release(table, "all:1", epsilon=1.0, rows=20, seed=0)
    answer = made.answer(", ".join(f"{name}=1" for name in sizes))
    assert isinstance(answer, float)
    assert 0 <= answer <= 1


def test_models_too_large_for_memory_are_refused() -> None:
    table = discreet.read(pa.table({"a": [0, 1, 2]}), schema={"a": 10**6})
    with pytest.raises(BadWorkload, match="'a' coarser bins"):
        discreet.release(table, "all:1", epsilon=1.0)


GAUSSIAN: dict[str, Any] = {"epsilon": 1.0, "mechanism": "gaussian"}


def full(monkeypatch: pytest.MonkeyPatch, *places: Path) -> None:
    """Let nothing but empty files be written in these folders."""
    written = store._write_json

    def write(path: Path, content: dict[str, object]) -> None:
        if path.parent in places:
            path.touch()
            raise OSError(errno.ENOSPC, "No space left on device")
        written(path, content)

    monkeypatch.setattr(store, "_write_json", write)


def test_a_full_disk_is_noticed_before_anything_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full(monkeypatch, tmp_path / "out")
    with pytest.raises(BadRelease, match="Nothing was spent"):
        discreet.release(small_table(50), "all:1", **GAUSSIAN, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with pytest.raises(BadLedger, match="No space left"):
        discreet.release(small_table(50), "all:1", **GAUSSIAN, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_was_paid_for_is_not_lost_with_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, temporary, claim = tmp_path / "out", tmp_path / "temporary", store.Folder.claim
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def claimed(*asked: Any) -> store.Folder:
        folder = claim(*asked)
        full(monkeypatch, out)
        return folder

    monkeypatch.setattr(store.Folder, "claim", claimed)
    with pytest.raises(BadRelease, match=r"No space left on device.* charged once"):
        discreet.release(small_table(50), "all:1", **GAUSSIAN, out=out)
    (rescued,) = temporary.iterdir()
    assert isinstance(Release.open(rescued).answer("sex=Male"), float)
    assert len(store.account_of(out).charges) == len(Release.open(rescued).charges) == 2
    with pytest.raises(BadRelease, match="not finished, and of what it spent"):
        discreet.release(small_table(50), "all:1", **GAUSSIAN, out=out)


def test_an_unfinished_run_that_was_cut_off_shows_what_it_spent(tmp_path: Path) -> None:
    (tmp_path / "unfinished.json").touch()
    (tmp_path / "ledger.jsonl").touch()
    assert store.account_of(tmp_path) == store.Account([])
    with pytest.raises(BadRelease, match="unfinished"):
        Release.open(tmp_path)
