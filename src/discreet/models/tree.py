"""Trees of pairs: rows drawn through those pairs of values that clearly occur together beyond chance.

Where many attributes depend on a hidden cause (say, they are all missing together), or one repeats another, rows that
all start alike are far from the table, and a fit finds the way slowly: what most rows hold of a rare value is spread
over cells that nobody notices in the noise. So rows are first drawn from a rough model. What all noisy marginals say of
a pair is gathered; the cells that clearly exceed chance are kept, and all the rest is taken for independent. Each row
draws one attribute after the other, each given one that it has, so that it follows a tree of pairs, as all rows do in
MST (McKenna et al. 2021). Nothing is read or spent: the marginals were measured anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.models.targets import Target
from discreet.queries.threshold import Attributes

Floats = NDArray[np.float64]

SURE = 4.0
"""Standard deviations by which two values must occur together beyond chance."""

DOUBT = 2.0
"""Standard deviations of what they exceed it by that may be noise."""


@dataclass(frozen=True)
class Pair:
    """What a noisy pair says of two attributes.

    Attributes:
        attributes: The two.
        heavy: Fractions of the cells that clearly exceed chance; 0 elsewhere.
        depends: Of these, how far the two values depend on each other, from 0 to 1.
        explained: Sum of what they exceed chance by.
    """

    attributes: Attributes
    heavy: Floats
    depends: Floats
    explained: float


def pairs(targets: Sequence[Target], shift: float, single: Mapping[str, Floats]) -> list[Pair]:
    """Every pair that is in a target, as the half of the rows sees it that is fitted to y + shift * z.

    Cells that clearly exceed chance count. The dependence of two values is the share of what they could at most exceed
    it by, (p(u,v) - p(u) p(v)) / (min(p(u), p(v)) - p(u) p(v)) (Lewontin's D', 1964), less what may be noise.
    """
    found = []
    by_cells = _standing_out(targets, shift, single)
    for names, (gathered, noise) in _gathered(targets, shift, single).items():
        one, other = (single[name] for name in names)
        chance, most = np.outer(one, other), np.minimum.outer(one, other)
        told, deviation = by_cells[names]
        usual = np.where(gathered > chance + SURE * noise, gathered, 0.0)
        in_a_cell = np.where(told > chance + SURE * deviation, told, 0.0)
        seen = np.maximum(usual, in_a_cell)
        least = np.maximum(usual - DOUBT * noise, in_a_cell - DOUBT * deviation)
        sure = seen > chance
        depends = np.divide(least - chance, most - chance, out=np.zeros_like(chance), where=sure & (most > chance))
        heavy = np.where(sure, np.minimum(seen, most), 0.0)
        found.append(Pair(names, heavy, np.clip(depends, 0, 1), float(np.sum(heavy - chance, where=sure))))
    return found


def _standing_out(
    targets: Sequence[Target], shift: float, single: Mapping[str, Floats]
) -> dict[Attributes, tuple[Floats, float]]:
    """Each pair with what it holds by single cells of larger marginals that stand out of all the noise, or 0.

    `_gathered` looks for a pair where its companions usually are. Values that are missing together have no company
    there: all of them are in one cell of each marginal. A cell counts if it exceeds chance by more than the largest of
    so many noises is likely to be (the universal threshold: Donoho, Johnstone 1994); then each of its pairs holds at
    least as much, be it more than chance or not. The largest of such cells is given, and the largest deviation of any.
    """
    level = sqrt(2 * log(sum(target.y.size for target in targets)))
    told: dict[Attributes, Floats] = {}
    deviations: dict[Attributes, float] = defaultdict(float)
    for target in targets:
        shape = [len(single[name]) for name in target.attributes]
        noisy = target.y + shift * target.z
        deviation = target.sigma * sqrt(1 + shift**2)
        cells = np.flatnonzero(noisy > level * deviation) if len(shape) > 2 else np.zeros(0, np.int64)
        codes = np.unravel_index(cells, shape)
        chance = np.prod([single[name][code] for name, code in zip(target.attributes, codes, strict=True)], axis=0)
        sure = noisy[cells] > chance + level * deviation
        for one, other in combinations(range(len(shape)), 2):
            names = (target.attributes[one], target.attributes[other])
            known = told.setdefault(names, np.zeros((shape[one], shape[other])))
            np.maximum.at(known, (codes[one][sure], codes[other][sure]), noisy[cells][sure])
            deviations[names] = max(deviations[names], deviation if sure.any() else 0.0)
    return {names: (known, deviations[names]) for names, known in told.items()}


def _gathered(
    targets: Sequence[Target], shift: float, single: Mapping[str, Floats]
) -> dict[Attributes, tuple[Floats, float]]:
    """Each pair with its deviation: what every marginal that holds it says of it, by precision.

    A larger marginal holds the pair many times over. Were its further attributes w independent of the pair, each cell
    y(u,v,w) would be p(u,v) p(w) and noise, and the best estimate of p(u,v) the sum of y(u,v,w) p(w) over that of
    p(w)^2, with a variance of sigma^2 over the latter (a matched filter). Where nearly all rows have one value of w,
    that is as precise as the pair itself would be, measured at the same price, and there are many such marginals.
    """
    sums: dict[Attributes, Floats] = {}
    precisions: dict[Attributes, float] = defaultdict(float)
    for target in targets:
        noisy = (target.y + shift * target.z).reshape([len(single[name]) for name in target.attributes])
        variance = target.sigma**2 * (1 + shift**2)
        for one, other in combinations(range(len(target.attributes)), 2):
            names = (target.attributes[one], target.attributes[other])
            held, squares = noisy, 1.0
            for at in reversed(range(len(target.attributes))):
                if at not in (one, other):
                    shares = single[target.attributes[at]]
                    held, squares = np.tensordot(held, shares, (at, 0)), squares * float(shares @ shares)
            sums[names] = sums.get(names, 0.0) + held / variance
            precisions[names] += squares / variance
    return {names: (total / precisions[names], precisions[names] ** -0.5) for names, total in sums.items()}


def draw(
    single: Mapping[str, Floats], pairs: Sequence[Pair], rows: int, generator: np.random.Generator
) -> dict[str, NDArray[np.int64]]:
    """Codes of some rows by attribute, one attribute after the other; evenly, so that shares are met as well as can be.

    Next is always the attribute that those before it explain most (Prim 1957). Each row draws it given that one of its
    own values which tells most: a row that lacks its occupation by that, one that is married by that. So every row has
    a tree of its own.

    Args:
        single: Shares of each attribute's values.
        pairs: What is known of two attributes.
        rows: How many.
        generator: Public.
    """
    joints = {pair.attributes: _joint(pair, single) for pair in pairs}
    joints |= {(other, one): joint.T for (one, other), joint in joints.items()}
    explained = {names: pair.explained for pair in pairs for names in (pair.attributes, pair.attributes[::-1])}
    codes: dict[str, NDArray[np.int64]] = {}
    while len(codes) < len(single):
        reach = {new: max((explained.get((old, new), 0.0) for old in codes), default=0.0) for new in single}
        new = max((name for name in single if name not in codes), key=lambda name: reach[name])
        given = [(old, joints[old, new]) for old in codes if explained.get((old, new), 0.0) > 0]
        codes[new] = _given(codes, given, single[new], rows, generator)
    return codes


def _given(
    codes: Mapping[str, NDArray[np.int64]],
    given: Sequence[tuple[str, Floats]],
    shares: Floats,
    rows: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Codes of one attribute, given those of others: by the value of each row whose own shares differ most."""
    if not given:
        return _evenly(shares, rows, generator)
    told = np.stack([_told(joint, shares)[codes[old]] for old, joint in given])
    by = told.argmax(axis=0)
    drawn = np.empty(rows, np.int64)
    for at, (old, joint) in enumerate(given):
        for value in np.unique(codes[old][by == at]):
            which = np.flatnonzero((by == at) & (codes[old] == value))
            drawn[which] = _evenly(joint[value], len(which), generator)
    return drawn


def _told(joint: Floats, shares: Floats) -> Floats:
    """Per value of the first attribute: the distance of the second one's shares, given it, from its own."""
    return np.asarray(np.abs(joint / joint.sum(axis=1, keepdims=True) - shares).sum(axis=1))


def _joint(edge: Pair, single: Mapping[str, Floats]) -> Floats:
    """Heavy cells, and what they leave of both attributes as if it were independent."""
    one, other = (single[name] for name in edge.attributes)
    rows, columns = np.maximum(one - edge.heavy.sum(axis=1), 0), np.maximum(other - edge.heavy.sum(axis=0), 0)
    rest = columns if columns.sum() > 0 else other
    return np.asarray(edge.heavy + np.outer(np.maximum(rows, 1e-12), rest / rest.sum()))


def _evenly(shares: Floats, rows: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Codes in proportion to shares, up to one row, in random order."""
    places = (np.arange(rows) + generator.random()) / rows * shares.sum()
    codes = np.minimum(np.searchsorted(np.cumsum(shares), places, side="right"), len(shares) - 1)
    return generator.permutation(codes)
