"""What cannot be done is refused before anything is charged, and what can be done is not refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.readable import small_table

from discreet.errors import BadSetting, BadWorkload
from discreet.mechanisms import oracles
from discreet.privacy import measurement
from discreet.publish.make import release
from discreet.publish.planning import plan

TABLE = small_table(300)


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
    assert not ledger.exists() or len(ledger.read_text().splitlines()) == 1  # its head alone


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
