"""Coverage of error bars: what counts as held, and how shares are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.data.table import Table, read
from discreet.experiments import intervals
from discreet.experiments.claim import CONFIRMED, REFUTED, UNDECIDED, Finding
from discreet.experiments.experiment import Setting
from discreet.publish.intervals import KINDS

DOMAIN = {"a": 2, "b": 3, "c": 4}
SETTING: Setting = {"mechanism": "gaussian", "epsilon": 1.0, "workload": "all:2", "releases": 40}


@pytest.fixture(scope="module")
def table() -> Table:
    import pyarrow as pa

    rng = np.random.default_rng(0)
    return read(pa.table({name: rng.integers(size, size=500) for name, size in DOMAIN.items()}), schema=DOMAIN)


def test_measured_intervals_and_certificates_hold_as_often_as_they_say(table: Table) -> None:
    found = intervals.EXPERIMENT.measure(table, SETTING, 100)
    assert len(found["measured"]) == len(found["certified"]) == 40
    assert np.mean(found["measured"]) == pytest.approx(0.95, abs=0.04)
    assert np.mean(found["certified"]) > 0.8
    assert "estimated" not in found  # there are no rows to run it on
    many, held, width = np.sum([found["published"][kind] for kind in ("measured", "certified")], axis=0)
    assert many == 40 * found["queries"]
    assert held / many == pytest.approx(0.95, abs=0.04)
    assert 0 < width < many


def test_a_model_also_has_estimated_intervals(table: Table) -> None:
    setting = SETTING | {
        "mechanism": "auto",
        "releases": 2,
        "rows": 20,
        "max_steps": 40,
        "workload": [["a", "b"], ["b", "c"]],
    }
    found = intervals.EXPERIMENT.measure(table, setting, 100)
    assert len(found["estimated"]) == 2
    assert found["published"]["estimated"][0] > 0
    assert set(found["published"]) == set(KINDS)


def test_no_two_cells_share_noise() -> None:
    cells = [(setting, seed) for _, setting in intervals.EXPERIMENT.grid("quick", ["nltcs"]) for seed in (100, 101)]
    drawn = [number for setting, seed in cells for number in intervals._seeds(setting, seed)]
    assert len(set(drawn)) == len(drawn)


def _row(measured: float, certified: list[float]) -> dict[str, Any]:
    names = {"dataset": "d", "seed": 1, "workload": "w", "epsilon": 1.0, "mechanism": "auto", "releases": 100}
    shares = [measured - 0.001, measured + 0.001] * 50
    return names | {"measured": shares, "certified": certified, "estimated": shares, "estimated_large": []}


@pytest.mark.parametrize(("share", "verdict"), [(0.95, CONFIRMED), (0.98, REFUTED), (0.92, REFUTED), (0.93, UNDECIDED)])
def test_shares_are_judged_by_their_interval(share: float, verdict: str) -> None:
    measured, _, estimated, large = intervals.EXPERIMENT.findings([_row(share, [1.0] * 100)])
    assert (measured.verdict, estimated.verdict) == (verdict, verdict)
    assert f"{share:.2%}" in measured.figure
    assert large.verdict == UNDECIDED and "not run" in large.ours


@pytest.mark.parametrize(
    ("missed", "verdict"), [(0, CONFIRMED), (5, UNDECIDED), (20, REFUTED)], ids=["none", "as stated", "too many"]
)
def test_certificates_are_judged_by_how_many_miss(missed: int, verdict: str) -> None:
    found: Finding = intervals.EXPERIMENT.findings([_row(0.95, [0.0] * missed + [1.0] * (100 - missed))])[1]
    assert found.verdict == verdict
    assert found.figure.startswith(f"{1 - missed / 100:.2%} (")
