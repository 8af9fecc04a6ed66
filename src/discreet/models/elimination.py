"""Elimination: the order in which a graphical model is summed up, how large that makes it, and answers in that order.

A distribution that is a product of tables over cliques is also a product of conditional distributions, one for each
attribute given those it meets when it is eliminated. In this directed form a marginal needs only the attributes it
holds and those that they depend on, directly or not; all others sum to one and are never touched. So thousands of
marginals of one model are cheap, and nothing is compiled for them.

Reference: Koller, Friedman (2009), "Probabilistic graphical models", sections 3.3 and 9.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.queries.threshold import Attributes

Floats = NDArray[np.float64]
Factor = tuple[Attributes, Floats]
"""A table and the attributes of its axes, which are in the order of the domain."""


def megabytes(domain: Domain, cliques: Iterable[Attributes]) -> float:
    """Size of the tables of a junction tree over these cliques, in double precision."""
    found = [frozenset(met) for met in eliminated(domain, cliques).values()]
    largest = [one for at, one in enumerate(found) if not any(one <= earlier for earlier in found[:at])]
    return sum(prod(map(domain.size_of, names)) for names in largest) * 8 / 2**20


def eliminated(domain: Domain, cliques: Iterable[Attributes]) -> dict[str, Attributes]:
    """Attributes in the order of their elimination, each with those it meets then, itself included.

    The next is the one whose table is smallest; in a tree the one that meets fewest, so that no edge is added.
    """
    meets: dict[str, set[str]] = {name: {name} for name in domain}
    for clique in cliques:
        for name in clique:
            meets[name].update(clique)
    sizes = dict(zip(domain, domain.sizes, strict=True))
    tree = _is_tree(meets)
    order: dict[str, Attributes] = {}
    while meets:
        name = min(meets, key=lambda one: len(meets[one]) if tree else prod(sizes[each] for each in meets[one]))
        met = meets.pop(name)
        order[name] = tuple(each for each in domain if each in met)
        for other in met - {name}:
            meets[other] |= met
            meets[other].discard(name)
    return order


def _is_tree(meets: Mapping[str, set[str]]) -> bool:
    """Whether all attributes hang together, without a circle."""
    edges = sum(len(met) - 1 for met in meets.values()) / 2
    reached: set[str] = set()
    ahead = set(list(meets)[:1])
    while ahead:
        reached |= ahead
        ahead = set().union(*(meets[name] for name in ahead)) - reached
    return edges == len(meets) - 1 and len(reached) == len(meets)


class Directed:
    """A distribution in directed form.

    Attributes:
        domain: Public.
    """

    def __init__(self, domain: Domain, potentials: Iterable[tuple[Attributes, Floats]]) -> None:
        """Args:
        domain: Public.
        potentials: Logarithms of tables whose product is the distribution, up to a constant; axes in any order.
        """
        self.domain = domain
        factors = [self._ordered(names, table) for names, table in potentials]
        self._given: dict[str, Factor] = {}
        for name, met in eliminated(domain, [names for names, _ in factors]).items():
            holding = [factor for factor in factors if name in factor[0]]
            factors = [factor for factor in factors if name not in factor[0]]
            table = np.zeros(domain.project(met).sizes) + sum(self._spread(factor, met) for factor in holding)
            axis = met.index(name)
            top = table.max(axis=axis, keepdims=True)
            table = np.exp(table - top)
            whole = table.sum(axis=axis, keepdims=True)
            self._given[name] = met, table / whole
            rest = tuple(each for each in met if each != name)
            if rest:
                factors.append((rest, (np.log(whole) + top).squeeze(axis)))

    def marginal(self, names: Sequence[str]) -> Floats:
        """Probabilities of all cells of a marginal, one axis for each name."""
        factors = [self._given[name] for name in self._ancestors(names)]
        while hidden := {name for factor in factors for name in factor[0]} - set(names):
            joined = {name: self._union(factor for factor in factors if name in factor[0]) for name in hidden}
            name = min(sorted(joined), key=lambda one: prod(map(self.domain.size_of, joined[one])))
            holding = [factor for factor in factors if name in factor[0]]
            factors = [factor for factor in factors if name not in factor[0]]
            rest = tuple(each for each in joined[name] if each != name)
            factors.append((rest, self._times(holding, joined[name]).sum(axis=joined[name].index(name))))
        held = self._union(factors)
        return np.moveaxis(self._times(factors, held), [held.index(name) for name in names], range(len(names)))

    def _ancestors(self, names: Iterable[str]) -> list[str]:
        """Attributes that some depend on, directly or not, and these."""
        found: list[str] = []
        ahead = list(names)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.append(name)
                ahead += self._given[name][0]
        return found

    def _union(self, factors: Iterable[Factor]) -> Attributes:
        held = {name for names, _ in factors for name in names}
        return tuple(name for name in self.domain if name in held)

    def _ordered(self, names: Attributes, table: Floats) -> Factor:
        order = sorted(range(len(names)), key=lambda at: self.domain.index(names[at]))
        return tuple(names[at] for at in order), np.transpose(table, order)

    def _spread(self, factor: Factor, onto: Attributes) -> Floats:
        """A table with an axis for each of `onto`."""
        names, table = factor
        return table.reshape([self.domain.size_of(name) if name in names else 1 for name in onto])

    def _times(self, factors: Sequence[Factor], onto: Attributes) -> Floats:
        product: Floats = np.ones([1] * len(onto))
        for factor in sorted(factors, key=lambda one: one[1].size):
            product = product * self._spread(factor, onto)
        return np.broadcast_to(product, self.domain.project(onto).sizes)
