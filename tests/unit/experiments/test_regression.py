"""The nested regression, against a computation by hand and on data whose answer is known."""

from __future__ import annotations

import builtins
from math import exp, log
from typing import Any

import numpy as np
import pytest

from discreet.errors import BadSetting
from discreet.experiments.regression import design, fitted, nested


def invented(shift: float, *, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "epsilon": epsilon,
            "queries": exp(size),
            "filtered": filtered,
            "max_error": 0.3 - 0.1 * epsilon + 0.02 * size + shift * filtered + rng.normal(0, 0.005),
        }
        for epsilon in (0.01, 0.1, 1.0)
        for size in (3.0, 5.0, 7.0, 9.0)
        for filtered in (False, True)
        for _ in range(3)
    ]


def test_the_columns_are_those_of_the_appendix() -> None:
    rows = invented(0.0)
    restricted, added = design(rows, "queries")
    assert restricted.shape == (72, 6)
    assert added.shape == (72, 6)
    x3 = log(rows[-1]["queries"])
    assert restricted[-1].tolist() == pytest.approx([1, 0, 1, x3, 0, x3])
    assert restricted[0].tolist() == pytest.approx([1, 0, 0, 3, 0, 0])
    assert added[0].tolist() == [0] * 6
    assert added[-1].tolist() == restricted[-1].tolist()


def test_the_statistic_is_that_of_a_computation_by_hand() -> None:
    from scipy.stats import chi2, f

    rows = invented(0.004)
    restricted, added = design(rows, "queries")
    error = np.array([row["max_error"] for row in rows])

    def left(columns: Any) -> float:
        solved = np.linalg.lstsq(columns, error, rcond=None)[0]
        return float(np.sum((error - columns @ solved) ** 2))

    full = np.hstack([restricted, added])
    statistic = len(rows) * log(left(restricted) / left(full))
    found = nested(rows, "queries")
    assert found is not None
    assert found.statistic == pytest.approx(statistic, rel=1e-9)
    assert found.freedom == 6
    assert found.p_value == pytest.approx(float(chi2.sf(statistic, 6)), rel=1e-9)
    better = (left(restricted) - left(full)) / 6 / (left(full) / (len(rows) - 12))
    assert found.f_p_value == pytest.approx(float(f.sf(better, 6, len(rows) - 12)), rel=1e-9)
    assert found.shift == pytest.approx(0.004, abs=0.004)
    curve = fitted(rows, "queries")
    assert curve is not None
    assert float(np.sum((error - np.array(curve)) ** 2)) == pytest.approx(left(full))


def test_a_shift_is_found_and_none_is_not() -> None:
    there, absent = nested(invented(0.05), "queries"), nested(invented(0.0, seed=1), "queries")
    assert there is not None
    assert absent is not None
    assert there.p_value < 1e-9
    assert there.shift == pytest.approx(0.05, abs=0.01)
    assert absent.p_value > 0.01


def test_too_few_observations_are_not_fitted() -> None:
    assert nested(invented(0.0)[::8], "queries") is None
    assert nested([], "queries") is None
    assert fitted(invented(0.0)[::8], "queries") is None


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("statsmodels"):
            raise ImportError(name)
        return load(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BadSetting, match=r"discreet\[experiments\]"):
        nested(invented(0.0), "queries")
