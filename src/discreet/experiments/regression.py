"""Nested regression: does one more factor explain what is left? Needs statsmodels (the extra `experiments`).

Reference: Avent and Korolova (2023), appendix: present error by epsilon (a dummy for each but the first level), the
logarithm of a size and their interactions; the full model has all of these once more for filtered workloads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadSetting
from discreet.experiments.experiment import Row


@dataclass(frozen=True)
class Nested:
    """A full model beside a restricted one.

    Attributes:
        p_value: Of the likelihood-ratio test: how likely so much better a fit is if filtering does not matter.
        statistic: Of that test, chi-squared with `freedom` degrees of freedom.
        f_p_value: Of the F-test of the same question. The likelihood-ratio test holds for many observations and is too
            ready to reject with few; this one is exact for normal errors.
        freedom: Coefficients that the restricted model lacks.
        adjusted_r2: Of the full model.
        shift: Error with the filter less that without, as fitted, averaged over the cells.
        observations: How many.
    """

    p_value: float
    statistic: float
    f_p_value: float
    freedom: int
    adjusted_r2: float
    shift: float
    observations: int

    @property
    def short(self) -> str:
        """What decides, in a few words."""
        return f"p = {self.f_p_value:.2g} (F-test), shift {self.shift:+.4f}"


def design(rows: Sequence[Row], size: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns of the restricted model, and those that the full one adds."""
    levels = sorted({row["epsilon"] for row in rows})
    dummies = np.array([[1.0, *(float(row["epsilon"] == level) for level in levels[1:])] for row in rows])
    sizes = np.array([[log(row[size])] for row in rows])
    restricted = np.hstack([dummies, dummies * sizes])
    filtered = np.array([[float(row["filtered"])] for row in rows])
    return restricted, restricted * filtered


def nested(rows: Sequence[Row], size: str) -> Nested | None:
    """Test whether filtering matters for `max_error`; None where there are too few observations to fit.

    Args:
        rows: Finished cells with epsilon, filtered, max_error and the size.
        size: Which size counts: `thresholds` or `queries`.
    """
    linear = _statsmodels()
    if not rows:
        return None
    restricted, added = design(rows, size)
    full = np.hstack([restricted, added])
    if len(rows) <= full.shape[1] + 1 or np.linalg.matrix_rank(full) < full.shape[1]:
        return None
    error = np.array([row["max_error"] for row in rows])
    wide, narrow = linear.OLS(error, full).fit(), linear.OLS(error, restricted).fit()
    statistic, p_value, freedom = wide.compare_lr_test(narrow)
    f_p_value = float(wide.compare_f_test(narrow)[1])
    shift = float((restricted @ wide.params[restricted.shape[1] :]).mean())
    fit = float(wide.rsquared_adj)
    return Nested(float(p_value), float(statistic), f_p_value, int(freedom), fit, shift, len(rows))


def fitted(rows: Sequence[Row], size: str) -> list[float] | None:
    """Errors that the full model gives for the same rows."""
    linear = _statsmodels()
    if nested(rows, size) is None:
        return None
    full = np.hstack(design(rows, size))
    error = np.array([row["max_error"] for row in rows])
    return [float(value) for value in linear.OLS(error, full).fit().fittedvalues]


def _statsmodels() -> Any:
    try:
        from statsmodels.regression import linear_model
    except ImportError:
        raise BadSetting(
            "The likelihood-ratio test needs statsmodels: install the extra, `pip install 'discreet[experiments]'`."
        ) from None
    return linear_model
