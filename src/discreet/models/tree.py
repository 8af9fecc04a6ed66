"""A tree of pairs: rows drawn through those pairs of values that clearly occur together beyond chance.

Where many attributes depend on a hidden cause (say, they are all missing together), or one repeats another, rows that
all start alike are far from the table, and a fit finds the way slowly: what most rows hold of a rare value is spread
over cells that nobody notices in the noise. So rows are first drawn from a rough model. Of each noisy pair the cells
that clearly exceed chance are kept, and all the rest is taken for independent; pairs that explain most are joined to a
tree, as in MST (McKenna et al. 2021), and each row draws one attribute after the other along it. Nothing is read or
spent: the pairs were measured anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.models.targets import Target
from discreet.queries.threshold import Attributes

Floats = NDArray[np.float64]

SURE = 4.0
"""Standard deviations by which two values must occur together beyond chance."""


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


def pair(target: Target, shift: float, single: Mapping[str, Floats]) -> Pair:
    """A noisy pair, as the half of the rows sees it that is fitted to y + shift * z.

    The dependence of two values is the share of what they could at most occur together beyond chance,
    (p(u,v) - p(u) p(v)) / (min(p(u), p(v)) - p(u) p(v)), less what may be noise (Lewontin's D', 1964).
    """
    one, other = (single[name] for name in target.attributes)
    noise = target.sigma * (1 + shift**2) ** 0.5
    together = (target.y + shift * target.z).reshape(len(one), len(other))
    chance = np.outer(one, other)
    sure = together - chance - SURE * noise
    most = np.minimum(one[:, None], other) - chance
    heavy = np.where(sure > 0, together, 0.0)
    depends = np.where(sure > 0, np.clip((together - chance) / (most + noise), 0, 1), 0.0)
    return Pair(target.attributes, heavy, depends, float(np.sum(heavy - chance, where=sure > 0)))


def forest(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs without a circle that explain most (Kruskal 1956); those that explain nothing are left out."""
    group: dict[str, set[str]] = {name: {name} for found in pairs for name in found.attributes}
    kept = []
    for found in sorted(pairs, key=lambda found: -found.explained):
        one, other = (group[name] for name in found.attributes)
        if found.explained > 0 and one is not other:
            kept.append(found)
            one |= other
            group |= dict.fromkeys(other, one)
    return kept


def draw(
    single: Mapping[str, Floats], edges: Sequence[Pair], rows: int, generator: np.random.Generator
) -> dict[str, NDArray[np.int64]]:
    """Codes of some rows by attribute, drawn along a forest; evenly, so that shares are met as well as they can be.

    Args:
        single: Shares of each attribute's values.
        edges: Of the forest.
        rows: How many.
        generator: Public.
    """
    codes: dict[str, NDArray[np.int64]] = {}
    left = list(edges)
    for root in single:
        if root not in codes:
            codes[root] = _evenly(single[root], rows, generator)
        while True:
            found = next((edge for edge in left if codes.keys() & edge.attributes), None)
            if found is None:
                break
            left.remove(found)
            known, new = sorted(found.attributes, key=lambda name: name not in codes)
            joint = _joint(found, single)
            joint = joint if known == found.attributes[0] else joint.T
            codes[new] = np.empty(rows, np.int64)
            for value in np.unique(codes[known]):
                which = np.flatnonzero(codes[known] == value)
                codes[new][which] = _evenly(joint[value], len(which), generator)
    return codes


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
