"""How well a classifier does that was trained on synthetic rows. For the owner's eyes: the results are NOT private.

Two classifiers learn to predict one attribute from all others, one from synthetic rows and one from true rows, and both
are tested on true rows that neither was trained on. Logistic regression on one bit for each value: simple, the same for
every table, and sensitive to whether relations between pairs of attributes were kept.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.table import Table
from discreet.errors import BadData, BadRelease, BadSetting
from discreet.publish.release import Release

Codes = NDArray[np.int64]

MOST_ROWS = 50_000
"""Rows that a classifier is trained on, at most; more are drawn from at random."""

MOST_UNASKED = 1_000_000
"""Rows of a table beyond which a classifier is trained only on request: all of them are read into memory."""

_TESTED = 4
"""Without rows that were held out, one true row in this many is for testing."""


@dataclass(frozen=True)
class Downstream:
    """Shares of the tested rows whose value was predicted.

    Attributes:
        target: The attribute.
        trained_on_synthetic: By the classifier that saw synthetic rows only.
        trained_on_true: By the one that saw true rows.
        most_frequent: By always saying the value that is most frequent.
        tested: How many rows.
        held_out: Whether they were kept from the release; if not, it was made from them too.
    """

    target: str
    trained_on_synthetic: float
    trained_on_true: float
    most_frequent: float
    tested: int
    held_out: bool

    def to_json(self) -> dict[str, Any]:
        """For `evaluate --json`."""
        return asdict(self)


def downstream(
    release: Release, table: Table, target: str, *, holdout: Table | None = None, seed: int = 0
) -> Downstream:
    """Train on synthetic and on true rows, and test on other true rows. Not private.

    Args:
        release: With synthetic rows.
        table: The true one.
        target: Which attribute to predict.
        holdout: True rows that the release was not made from; a quarter of the table's by default.
        seed: For the split, and for which rows are taken of many.
    """
    at = release.domain.index(target)
    if release.codes is None:
        raise BadRelease(f"{release.mechanism} makes no synthetic rows to train on.")
    if len(release.domain) < 2:
        raise BadSetting(f"There is nothing to predict {target!r} from: the table has no other attribute.")
    if holdout is not None and holdout.domain != release.domain:
        raise BadData("The rows held out have another schema than the release's.")
    draws = np.random.default_rng(seed)
    true = table.codes()[draws.permutation(table.rows())]
    cut = len(true) // _TESTED
    tested, trained = (true[:cut], true[cut:]) if holdout is None else (holdout.codes(), true)
    if not len(tested) or not len(trained):
        raise BadData("There are too few true rows to train and test on.")
    synthetic = release.codes[draws.permutation(len(release.codes))]
    values, many = np.unique(trained[:, at], return_counts=True)
    return Downstream(
        target,
        _accuracy(release.domain, synthetic[:MOST_ROWS], tested, at),
        _accuracy(release.domain, trained[:MOST_ROWS], tested, at),
        float(np.mean(tested[:, at] == values[np.argmax(many)])),
        len(tested),
        holdout is not None,
    )


def usual_target(domain: Domain) -> str | None:
    """The last attribute of two to ten values, which in many tables is the one to predict; None if there is none."""
    return next((name for name in reversed(domain.attributes) if 2 <= domain.size_of(name) <= 10), None)


def _accuracy(domain: Domain, trained: Codes, tested: Codes, at: int) -> float:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise BadSetting("Training a classifier needs scikit-learn: pip install 'discreet[learning]'.") from None
    if len(np.unique(trained[:, at])) < 2:
        return float(np.mean(tested[:, at] == trained[0, at]))  # it has seen one value only
    model = LogisticRegression(max_iter=200, tol=1e-3)
    with warnings.catch_warnings(action="ignore"):  # a fit that is stopped at 200 steps is as good a yardstick
        model.fit(_bits(domain, trained, at), trained[:, at])
    return float(np.mean(model.predict(_bits(domain, tested, at)) == tested[:, at]))


def _bits(domain: Domain, codes: Codes, without: int) -> Any:
    """One bit for each value of every attribute but one, sparse."""
    from scipy.sparse import csr_matrix

    kept = [place for place in range(len(domain)) if place != without]
    columns = (codes[:, kept] + np.array(domain.offsets)[kept]).reshape(-1)
    starts = np.arange(len(codes) + 1) * len(kept)
    return csr_matrix((np.ones(len(columns)), columns, starts), shape=(len(codes), domain.bits))
