"""Neighbouring tables, and every sensitivity that follows from them. All of them are derived here and nowhere else.

Two tables are neighbours when one *person's* rows differ. A person has at most `rows_per_person` rows, C.

- replace-one (the papers' relation): those rows get other values; the number of rows stays and is public.
- add-remove: those rows appear or vanish; the number of rows is private.

A record meets exactly one cell of a marginal. Under replace-one C units leave some cells and C units enter others,
which is largest in L2 when all of them leave one cell for another: squared length 2 C^2. Under add-remove C units
enter or leave: C^2. A single query, of any kind, moves by at most C under both.

The residual of a marginal (`discreet.privacy.residual`) is the projection P of its counts, the tensor product of
(I - 1 1^T / d_i). A row adds P e_x to it, of squared length <e_x, P e_x> = the product of (1 - 1/d_i): its change
under add-remove. Two rows that differ in the attributes D and no others have the inner product

    <e_x, P e_y>  =  product over i not in D of (1 - 1/d_i)  *  product over i in D of (-1/d_i),

and one that replaces the other moves the residual by the squared length

    g(D)  =  2 * (<e_x, P e_x> - <e_x, P e_y>)  =  2 * product of (1 - 1/d_i) * (1 - product over D of -1/(d_i - 1)),

which is largest for one differing attribute, the smallest. Residuals that are measured together all see the same D.
C rows of one person move each of them, and all together, by the sum of C such vectors, whose squared length is at
most C^2 times as large as that of the longest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod, sqrt
from typing import Any

import numpy as np

from discreet import _check

RELATIONS = ("replace-one", "add-remove")

MOST_ENUMERATED = 16
"""Attributes of which every pattern of differences is looked at; of more, a bound is used."""


@dataclass(frozen=True)
class Neighbours:
    """Which tables must be hard to tell apart."""

    relation: str = "replace-one"
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        _check.one_of("neighbours", self.relation, RELATIONS)
        _check.whole("rows_per_person", self.rows_per_person)

    @property
    def total_is_public(self) -> bool:
        """Whether the number of rows may be told for free."""
        return self.relation == "replace-one"

    @property
    def single(self) -> int:
        """Largest change of one counting query; also of the largest error over any set of queries.

        A maximum of terms that each move by at most C moves by at most C.
        """
        return self.rows_per_person

    @property
    def marginal_squared(self) -> int:
        """Squared L2 change of a whole marginal."""
        return self._per_threshold(2, 1)

    def marginal_deviation(self, rho: Fraction) -> float:
        """Standard deviation of the noise on a whole marginal that `rho` pays for, in rows."""
        return sqrt(self.marginal_squared / (2 * rho))

    @property
    def marginal_absolute(self) -> int:
        """L1 change of a whole marginal; also of its L1 distance to anything that is fixed."""
        return (2 if self.relation == "replace-one" else 1) * self.rows_per_person

    def batch_squared(self, queries: Iterable[tuple[object, int]]) -> int:
        """Squared L2 change of single queries measured together.

        One row matches `met` queries of a threshold (one, of a marginal), so replacing it moves at most twice as
        many by one each. C rows move them by at most the sum of C such vectors, whose squared length is at most C^2
        times as large. And no query moves by more than C, so q queries move by at most q C^2.

        Args:
            queries: For each query, its threshold and how many of that threshold's queries one row matches.
        """
        return sum(self._per_threshold(many, met) for (_, met), many in Counter(queries).items())

    def _per_threshold(self, queries: int, met: int) -> int:
        moving = 2 if self.relation == "replace-one" else 1
        return min(moving * met, queries) * self.rows_per_person**2

    def residual_squared(self, sizes: Sequence[int]) -> Fraction:
        """Squared L2 change of the residual of a marginal over attributes of these sizes."""
        alone = prod((Fraction(size - 1, size) for size in sizes), start=Fraction(1))
        if not alone:
            return alone  # an attribute with one value leaves nothing over
        largest = 2 * (1 + Fraction(1, min(sizes) - 1)) if self.relation == "replace-one" else 1
        return alone * largest * self.rows_per_person**2

    def residuals_squared(self, sizes: Mapping[str, int], weights: Mapping[tuple[str, ...], Fraction]) -> Fraction:
        """Largest weighted sum of the squared L2 changes of residuals that are measured together.

        Under replace-one the sum is 2 C^2 (h(none) - h(D)), with h(D) the sum over residuals of their weight times the
        inner product above. All 2^m values of h are found by one pass for each of the m attributes, since the inner
        product has one factor for each: exactly, in integers over a common denominator. Where m is above 16, what each
        residual can change on its own is added up, which is never less.

        Args:
            sizes: Values of each attribute.
            weights: Sets of attributes, with the weight of their residual; not negative.
        """
        held = {names: weight for names, weight in weights.items() if all(sizes[name] > 1 for name in names)}
        names = list(dict.fromkeys(name for key in held for name in key))
        if self.relation == "add-remove" or len(names) > MOST_ENUMERATED:
            alone = (weight * self.residual_squared([sizes[name] for name in key]) for key, weight in held.items())
            return sum(alone, start=Fraction(0))
        common = lcm(*(weight.denominator for weight in held.values()))
        table = np.zeros((2,) * len(names), dtype=object)  # of Python's integers, which do not overflow
        for key, weight in held.items():
            table[tuple(int(name in key) for name in names)] += int(weight * common)
        for axis, name in enumerate(names):
            without, within = np.split(table, 2, axis)
            size = sizes[name]
            table = np.concatenate([size * without + (size - 1) * within, size * without - within], axis)
        products = table.reshape(-1)
        denominator = common * prod(sizes[name] for name in names)
        return Fraction(2 * (products[0] - products.min()), denominator) * self.rows_per_person**2

    def to_json(self) -> dict[str, Any]:
        """For release.json and the ledger."""
        return {"relation": self.relation, "rows_per_person": self.rows_per_person}
