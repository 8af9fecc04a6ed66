"""Baselines without a model: every answer zero, and plain noise on every marginal.

Plain Gaussian noise is a strong baseline when it is charged honestly. One person moves a whole marginal by a squared
distance of 2, so noise of sqrt(marginals / rho) per cell is enough (an error of sqrt(2 * marginals) / n up to the
privacy constant). The RAP papers' GM baseline charges each of the m queries on its own, sqrt(m) / n; it is kept as
`gaussian-paper`.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.mechanisms.adaptive import EVERYTHING, Outcome, measure_everything
from discreet.models.noisy import NoisyCounts
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import MOST_CELLS
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.scales import of_sparse
from discreet.queries.answers import Zeros
from discreet.queries.workload import Workload

_LEFT_OUT = (
    "counts that do not stand out of the noise: they are answered zero. Where that begins is `least` of each "
    "measurement in release.json"
)


def all_zero(curator: Curator) -> Outcome:
    """Answer zero to everything, at no cost."""
    return Outcome(Zeros(curator.domain, curator.total), [])


def drawable(workload: Workload, _: object, rho: Fraction, neighbours: Neighbours) -> None:
    """Refuse noise that is too wide for marginals which list only what stands out."""
    needed = workload.marginals
    if _listed_in_part(workload):
        of_sparse(workload.domain, neighbours, list(needed), rho, list(needed.values()))


def gaussian(curator: Curator, workload: Workload, *, rho: Fraction, priced: str = "jointly") -> Outcome:
    """Measure every marginal the workload needs, and publish the noisy counts as they are.

    Where there are too many cells to hold, only counts that stand out of the noise are listed, and others are zero.
    """
    needed, notes = workload.marginals, {}
    if priced == "jointly" and _listed_in_part(workload):
        measured = curator.measure_sparse(list(needed), rho=rho, weights=list(needed.values()), label=EVERYTHING)
        notes["left_out"] = _LEFT_OUT
    else:
        measured = measure_everything(curator, workload, rho=rho, priced=priced)
    return Outcome(NoisyCounts(curator.domain, curator.total, measured), measured, notes)


def _listed_in_part(workload: Workload) -> bool:
    """Whether there are too many cells to hold them all."""
    return sum(workload.domain.project(subset).size for subset in workload.marginals) > MOST_CELLS
