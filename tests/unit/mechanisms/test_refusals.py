"""What cannot be done is refused before anything is charged, and what can be done is not refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.readable import small_table

from discreet.data.domain import Domain
from discreet.data.schema import Schema
from discreet.errors import BadSetting, BadWorkload
from discreet.mechanisms import catalogue, direct, oracles
from discreet.models import support
from discreet.privacy import measurement, noise, residual
from discreet.publish import make
from discreet.publish.make import release
from discreet.publish.planning import plan
from discreet.queries import parse

TABLE = small_table(300)
PRIVATE: dict[str, Any] = {"neighbours": "add-remove", "delta": 1e-9, "seed": 1}
"""Where the number of rows is paid for first, so that whatever is refused later comes too late."""


def refused(tmp_path: Path, mechanism: str, error: type[Exception], match: str, **settings: Any) -> None:
    ledger = tmp_path / "ledger"
    with pytest.raises(error, match=match):
        release(
            TABLE,
            "all:2",
            mechanism=mechanism,
            epsilon=1.0,
            seed=1,
            ledger=ledger,
            ledger_epsilon=2.0,
            settings=settings,
        )
    assert nothing_charged(ledger)


def nothing_charged(ledger: Path) -> bool:
    return not ledger.exists() or len(ledger.read_text().splitlines()) == 1  # its head alone


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [("dualquery", {"rounds": 5, "settings": {"samples": 30}}), ("fem", {"rounds": 2, "per_round": 30})],
)
def test_queries_are_drawn_again_and_again_from_a_small_workload(mechanism: str, settings: dict[str, Any]) -> None:
    made = release(TABLE, "sex", mechanism=mechanism, epsilon=1.0, seed=1, **settings)
    answers = [made.answer(f"sex={value}") for value in ("Female", "Male")]
    assert np.sum(np.array(answers)) == pytest.approx(1, abs=1e-3)


def test_a_tree_of_pairs_must_fit_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [a * b for at, a in enumerate(TABLE.domain.sizes) for b in TABLE.domain.sizes[:at]]
    monkeypatch.setattr(measurement, "MOST_CELLS", max(pairs))  # each of them would
    refused(tmp_path, "mst", BadWorkload, "measured together")


def test_a_refusal_names_what_takes_the_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "MOST_ROWS", TABLE.domain.size - 1)
    named = r"pep weighs every combination of values.*With their defaults these take it: auto, rap, .*, mst, .*\.$"
    refused(tmp_path, "pep", BadWorkload, named)
    wide = parse.workload("all:3", Domain(dict.fromkeys("abc", 2000)))
    taking = catalogue.taking(wide)
    assert {"auto", "gaussian", "mst"} <= set(taking)
    assert not {"mwem", "pep", "pmw-pub", "gem-pub", "residual-planner", "gaussian-paper", "all-zero"} & set(taking)


def test_a_refused_setting_is_no_reason_to_leave_a_mechanism(tmp_path: Path) -> None:
    refused(tmp_path, "rap-search", BadWorkload, "take it: auto, rap,", rows=10**10)


def test_nothing_is_looked_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "MOST_ROWS", TABLE.domain.size - 1)
    monkeypatch.setattr(make, "_MANY", 5)  # there are 6 pairs
    refused(tmp_path, "pep", BadWorkload, r"are taken.*`discreet plan` says what other mechanisms make of it\.$")


@pytest.mark.parametrize("mechanism", ["dualquery", "fem", "mst"])
def test_attributes_with_too_many_values_are_refused(mechanism: str) -> None:
    """Before, they were only found to be too many after a draw or a measurement was paid for."""
    wide = Schema.load({"attributes": [{"name": "code", "type": "integer", "min": 0, "max": 2**30}]})
    (told,) = plan(wide, "code", epsilon=1.0, people=1000, mechanisms=[mechanism])
    assert told.refused is not None
    assert f"{2**30 + 1:,}" in told.refused


def test_draws_without_number_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, "dualquery", BadSetting, "Raise --set eta", eta=1e-12)
    (told,) = plan(TABLE, "all:2", epsilon=1.0, mechanisms=["dualquery"], settings={"eta": 1e-12})
    assert told.refused is not None and told.refused.startswith("With eta 1e-12")


def test_nothing_is_refused_once_the_number_of_rows_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracles, "_MOST_SAMPLES", 20)
    asked: dict[str, Any] = {"mechanism": "dualquery", "epsilon": 1.0, "delta": 1e-9, "rounds": 2, "seed": 1}
    with pytest.raises(BadSetting, match="Raise --set eta"):
        release(TABLE, "all:2", **asked)
    made = release(TABLE, "all:2", neighbours="add-remove", **asked)
    assert made.notes["drawn_each_round"] == 20
    assert made.charges[0].label == "number of rows"
    assert 0.999999 * made.guarantee.rho < sum(charge.rho for charge in made.charges) <= made.guarantee.rho


@pytest.mark.parametrize("mechanism", ["gaussian", "residual-planner", "mwem", "all-zero"])
@pytest.mark.parametrize("certificate", [0.98, 0.99, 1e-12])
def test_something_is_left_for_answers(tmp_path: Path, mechanism: str, certificate: float) -> None:
    asked: dict[str, Any] = {"mechanism": mechanism, "epsilon": 1.0, "certificate": certificate}
    with pytest.raises(BadSetting, match=r"between 1e-09 and 0\.979999999 of the budget, since"):
        release(TABLE, "all:2", **asked, **PRIVATE, ledger=tmp_path / "ledger")
    assert nothing_charged(tmp_path / "ledger")
    with pytest.raises(BadSetting, match="The certificate may have"):
        plan(
            TABLE,
            "all:2",
            epsilon=1.0,
            delta=1e-9,
            neighbours="add-remove",
            people=300,
            certificate=certificate,
            mechanisms=[mechanism],
        )


def test_a_large_certificate_is_fine_where_it_leaves_something() -> None:
    made = release(TABLE, "sex", mechanism="gaussian", epsilon=1.0, certificate=0.97, **PRIVATE)
    assert [charge.label for charge in made.charges] == ["number of rows", "measure every marginal", "certificate"]


def test_too_little_for_a_single_count_is_refused(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"mechanism": "all-zero", "epsilon": 1e-8, **PRIVATE}
    with pytest.raises(BadSetting, match="too little for anything: noise on a single count would be"):
        release(TABLE, "sex", **asked, ledger=tmp_path / "ledger")
    assert nothing_charged(tmp_path / "ledger")


def test_noise_too_wide_for_jumps_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "MOST_CELLS", 10)  # so that only what stands out is listed
    monkeypatch.setattr(noise, "WIDEST_TABLE", 50)
    asked: dict[str, Any] = {"mechanism": "gaussian", "epsilon": 0.05}
    with pytest.raises(BadSetting, match="has no table"):
        release(TABLE, "all:2", **asked, **PRIVATE, ledger=tmp_path / "ledger")
    assert nothing_charged(tmp_path / "ledger")
    (told,) = plan(TABLE, "all:2", epsilon=0.05, mechanisms=["gaussian"])
    assert told.refused is not None and "has no table" in told.refused


@pytest.mark.parametrize(("mechanism", "settings"), [("residual-planner", {}), ("auto", {"measures": "residuals"})])
def test_noise_too_wide_for_residuals_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str, settings: dict[str, str]
) -> None:
    monkeypatch.setattr(residual, "WIDEST", 3)
    with pytest.raises(BadSetting, match="A residual would need noise"):
        release(
            TABLE, "all:2", mechanism=mechanism, epsilon=0.1, settings=settings, **PRIVATE, ledger=tmp_path / "ledger"
        )
    assert nothing_charged(tmp_path / "ledger")
    (told,) = plan(TABLE, "all:2", epsilon=0.1, mechanisms=[mechanism], settings=settings)
    assert told.refused is not None and told.refused.startswith("A residual would need noise")
