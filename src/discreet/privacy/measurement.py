"""What leaves the gate: noisy counts, and a noisy largest error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.errors import BadWorkload
from discreet.queries.threshold import Attributes, Threshold

MOST_CELLS = 2**26
"""Most cells that may be measured in one call: every one of them is held in memory."""


@dataclass(frozen=True)
class Measurement:
    """Noisy counts of some queries of one threshold.

    Attributes:
        threshold: What was counted.
        cells: Which of its queries, or None for all of them in order (a marginal measured whole).
        counts: Integer counts plus noise; they may be negative.
        sigma_squared: Parameter of the discrete Gaussian noise.
        least: Where a whole marginal was measured but small noisy counts are not listed: every noisy count of at least
            this is, in `cells`. None where nothing was left out.
        residual: Whether this is the residual of a marginal, times the number of its cells, see
            `discreet.privacy.residual`.
    """

    threshold: Threshold
    cells: NDArray[np.int64] | None
    counts: NDArray[np.int64]
    sigma_squared: Fraction
    least: int | None = None
    residual: bool = False


@dataclass(frozen=True)
class NoisyMaximum:
    """The largest error plus noise: the raw material of a certificate."""

    value: int
    sigma_squared: Fraction


def require_measurable(domain: Domain, marginals: Iterable[Attributes]) -> None:
    """Refuse marginals that are too large to be measured whole; public facts only."""
    require_cells(sum(domain.project(attributes).size for attributes in marginals))


def require_cells(cells: int) -> None:
    """Refuse to measure this many cells at once."""
    if cells > MOST_CELLS:
        raise BadWorkload(
            f"Marginals with {cells:,} cells would be measured together; at most {MOST_CELLS:,} can be measured whole. "
            "Ask for fewer or smaller ones, use coarser bins, select fewer at a time where a mechanism selects "
            "(--rounds with a smaller --per-round), or use a mechanism that covers larger ones."
        )
