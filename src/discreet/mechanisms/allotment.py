"""What `auto` measures, and how precisely: from public facts alone.

The marginals that are asked for and all smaller ones that they contain; where not all fit, a cover of them. Each gets
a share of the budget of its own (`shares`), or, where attributes have few values, residuals do (`precisions`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, combinations
from math import prod, sqrt

import numpy as np

from discreet.data.domain import Domain
from discreet.mechanisms.cover import cells_of, closure, cover, largest_order
from discreet.privacy.measurement import MOST_CELLS
from discreet.privacy.neighbours import MOST_ENUMERATED
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload

MEASURES = ("auto", "marginals", "residuals")
"""What is measured."""

_BETWEEN = 0.07
"""Share of what single attributes leave that goes to marginals which are contained in others, where it is worth it."""

_BALANCE = 0.36
"""Total variation that noise on single attributes is weighed against: chosen on ADULT, a public table."""

_BY_SIZE = 1 / 3
"""Single attributes share their part of the budget by their number of values to this power."""

_FEW_VALUES = 1 / 3
"""Residuals are measured where they cost less than this share of what their marginals would, on average."""

_NOISIEST = 2.0**24
"""Deviation of noise, in rows, beyond which residuals are not measured unless that is asked for."""

_HALFWAY = 1 / 2
"""Where precisions of residuals lie between those of plain noise (0) and of the least total variance (1)."""

_LEAST = 2.0**-40
"""Least precision of a residual, relative to the largest."""

_LEAST_SHARE = 2.0**-32
"""Least share of a marginal, relative to the largest: less than weights may be apart, and its noise can be drawn."""

_MOST = 3 / 4
"""Share of the marginals of an order that must fit for them to be measured although the others do not."""


def shares(domain: Domain, wanted: Mapping[Attributes, float], *, total: int, sigma: float) -> dict[Attributes, float]:
    """How much of the budget each marginal gets; public facts only.

    Each marginal gets its part by weight, as far as it matters more than what holds it (`_excess`). Of the part of
    those with several attributes some goes to the smaller ones within: not wanted for themselves, but a fit goes by
    them where the larger ones are noisy. First single attributes. With all of that part, noise on the d cells of one
    attribute would leave a total variation of about 0.4 d sigma sqrt(attributes) / n. The mean of that over attributes,
    A, is weighed against a constant B: minimising A / sqrt(s) + B / sqrt(1 - s) gives the share s of all single
    attributes that help, A^(2/3) / (A^(2/3) + B^(2/3)).

    A smaller marginal is known from the larger ones too: a cell of it is the sum of r cells of each that holds it, with
    r times their variance. Where these make it more precise than a measurement of its own would (many of them, few
    cells), there is no need for one, so both shares of what helps are multiplied by v / (1 + v), v being the variance
    of such a cell over that of a measured one, averaged over marginals.

    Args:
        domain: Public.
        wanted: Marginals that are measured, with all they contain, and how much an error on each matters.
        total: Rows of the table.
        sigma: Deviation of the noise on a marginal that gets the whole budget, in rows.
    """
    beyond, holding = _excess(wanted), _holding(wanted)
    alone, main = (
        {names: weight for names, weight in beyond.items() if (len(names) == 1) == one} for one in (True, False)
    )
    single, between = (
        {names: holding[names] for names in wanted if names in holding and (len(names) == 1) == one}
        for one in (True, False)
    )
    part = sum(main.values()) / sum(beyond.values())
    share = _single_share(domain, list(single), main, total=total, sigma=sigma / sqrt(part)) if single else 0.0
    rest = (1 - share) * _BETWEEN * _worth(domain, list(between), main) if between else 0.0
    sized = {names: weight * domain.project(names).size ** _BY_SIZE for names, weight in single.items()}
    found: dict[Attributes, float] = {}
    for portion, priced in (
        (part * share, sized),
        (part * rest, between),
        (part * (1 - share - rest), main),
        (1 - part, alone),
    ):
        for names, price in priced.items():
            found[names] = found.get(names, 0.0) + portion * price / sum(priced.values())
    least = max(found.values()) * _LEAST_SHARE
    return {names: max(share, least) for names, share in found.items()}


def _single_share(
    domain: Domain, single: Sequence[Attributes], main: Mapping[Attributes, float], *, total: int, sigma: float
) -> float:
    """s above, as far as single attributes are worth it."""
    sizes = [float(domain.project(names).size) for names in single]
    noise = 0.4 * float(np.mean(sizes)) * sigma * sqrt(len(single)) / max(1, total)
    ratio: float = (noise / _BALANCE) ** (2 / 3)
    return _worth(domain, single, main) * ratio / (1 + ratio)


def _worth(domain: Domain, smaller: Sequence[Attributes], main: Mapping[Attributes, float]) -> float:
    """v / (1 + v) above, averaged."""
    sizes = {names: domain.project(names).size for names in (*smaller, *main)}
    precisions = dict.fromkeys(smaller, 0.0)  # 1 / v: of a cell that is summed up, over that of a measured one
    most = max(main.values())
    for names, weight in main.items():
        for held in closure([names]):
            if held in precisions:
                precisions[held] += weight / most * sizes[held] / sizes[names]
    return float(np.mean([1 / (1 + precision) for precision in precisions.values()]))


def needed(workload: Workload, order: int | None = None) -> dict[Attributes, float]:
    """Marginals that are measured, smallest first, with the largest weight asked of any that holds them."""
    covering = _fitting(workload) if order is None else cover(workload.marginals, order)
    weights: dict[Attributes, float] = {}
    for names, weight in covering.items():
        for smaller in closure([names]):
            weights[smaller] = max(weight, weights.get(smaller, 0.0))
    return {names: weights[names] for names in closure(covering)}


def _fitting(workload: Workload) -> dict[Attributes, float]:
    """The cover of the largest order at which everything fits, smaller marginals included, and what fits beyond it.

    Where most marginals of the next order fit as well, smallest first, these are added: a few large ones should not
    keep all others from being measured. Where few do, they would dilute the budget and say nothing about the others.
    """
    domain, marginals = workload.domain, workload.marginals
    order = largest_order(workload, None)
    while order > 1 and cells_of(domain, closure(cover(marginals, order))) > MOST_CELLS:
        order -= 1
    covering = cover(marginals, order)
    left = MOST_CELLS - cells_of(domain, closure(covering))
    larger = {names: weight for names, weight in cover(marginals, order + 1).items() if names not in covering}
    smallest = sorted(larger, key=lambda names: domain.project(names).size)
    sums = accumulate(domain.project(names).size for names in smallest)
    fitting = [names for names, cells in zip(smallest, sums, strict=True) if cells <= left]
    if len(fitting) < _MOST * len(larger):
        return covering
    return covering | {names: larger[names] for names in fitting}


def by_residuals(
    domain: Domain, wanted: Mapping[Attributes, float], measures: str = "auto", *, sigma: float = 0.0
) -> bool:
    """Whether residuals are measured, not marginals; public facts only.

    For the same precision of what only a marginal of sizes d_i knows, its residual costs the product of (1 - 1/d_i) of
    what the marginal does under add-remove, and up to twice that under replace-one. The rest of the price is for what
    smaller marginals say too. With many values there is no such rest, and plain noise is drawn faster. What all
    residuals together cost is known exactly for up to 16 attributes, and with more of them not well enough.

    Args:
        domain: Public.
        wanted: Marginals with all they contain.
        measures: One of MEASURES.
        sigma: Deviation of the noise on a marginal that gets the whole budget, in rows. Residuals cannot be drawn with
            as much noise as marginals.
    """
    known = _telling(domain, wanted)
    if measures != "auto" or not known:
        return measures == "residuals" and bool(known)
    costs = [prod(1 - 1 / domain.size_of(name) for name in names) for names in largest_of(known)]
    exact = len({name for names in known for name in names}) <= MOST_ENUMERATED
    return exact and sigma <= _NOISIEST and float(np.mean(costs)) < _FEW_VALUES


def precisions(domain: Domain, wanted: Mapping[Attributes, float]) -> dict[Attributes, float]:
    """How precisely each residual is measured, 1 / sigma^2, relative to each other; public facts only.

    Plain noise on the largest marginals S, of weights w and sizes d_i, measures the residual of A with the precision

        c_A  =  sum over all S that hold A of  w / (product of d_i over S without A).

    The least sum of the variances of all cells has sqrt(c_A * product of d_i over A) instead, which is less for small A
    and more for large ones (`discreet.mechanisms.residual`). But a fit shrinks what large marginals alone know, as far
    as noise hides it, so the best lies between the two: halfway, at their geometric mean.

    A smaller marginal that matters more than all that hold it is one of the S too, by what its weight is above theirs.
    Weights enter with a power such that the precision of a marginal alone is in proportion to its weight.

    Args:
        domain: Public.
        wanted: Marginals with all they contain, and how much an error on each matters.

    Returns:
        Smallest first; attributes of one value are left out, since they have no residual.
    """
    wanted = _telling(domain, wanted)
    covered = dict.fromkeys(wanted, 0.0)
    sizes = {names: domain.project(names).size for names in wanted}
    power = 1 - _HALFWAY / 2
    for names, above in _excess(wanted).items():
        for held in closure([names]):
            covered[held] += (above / max(wanted.values())) ** (1 / power) * sizes[held] / sizes[names]
    found = np.array([covered[names] ** power * sizes[names] ** (1 - power) for names in wanted])
    short = np.maximum(found / found.max(), _LEAST).astype(np.float32)  # short fractions, for exact arithmetic
    return {names: float(each) for names, each in zip(wanted, short, strict=True)}


def _excess(wanted: Mapping[Attributes, float]) -> dict[Attributes, float]:
    """Marginals that matter more than any that holds them, and by how much: others are wanted for what holds them."""
    holding = _holding(wanted)
    beyond = {names: weight - holding.get(names, 0.0) for names, weight in wanted.items()}
    return {names: weight for names, weight in beyond.items() if weight > 0}


def _holding(wanted: Mapping[Attributes, float]) -> dict[Attributes, float]:
    """The largest weight of any marginal that holds another one."""
    holding: dict[Attributes, float] = defaultdict(float)
    for names, weight in wanted.items():
        for held in combinations(names, len(names) - 1):
            holding[held] = max(weight, holding[held])
    return {names: weight for names, weight in holding.items() if names}


def _telling(domain: Domain, wanted: Mapping[Attributes, float]) -> dict[Attributes, float]:
    """The same without attributes of one value."""
    kept: dict[Attributes, float] = {}
    for names, weight in wanted.items():
        telling = tuple(name for name in names if domain.size_of(name) > 1)
        if telling:
            kept[telling] = max(weight, kept.get(telling, 0.0))
    return kept


def largest_of(wanted: Iterable[Attributes]) -> list[Attributes]:
    """Marginals that no other one contains."""
    listed = list(wanted)
    within = {smaller for names in listed for smaller in closure([names]) if smaller != names}
    return [names for names in listed if names not in within]
