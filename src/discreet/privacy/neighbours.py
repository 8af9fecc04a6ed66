"""Neighbouring tables, and every sensitivity that follows from them. All of them are derived here and nowhere else.

Two tables are neighbours when one *person's* rows differ. A person has at most `rows_per_person` rows, C.

- replace-one (the papers' relation): those rows get other values; the number of rows stays and is public.
- add-remove: those rows appear or vanish; the number of rows is private.

A record meets exactly one cell of a marginal. Under replace-one C units leave some cells and C units enter others,
which is largest in L2 when all of them leave one cell for another: squared length 2 C^2. Under add-remove C units
enter or leave: C^2. A single query, of any kind, moves by at most C under both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from discreet import _check

RELATIONS = ("replace-one", "add-remove")


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

    def to_json(self) -> dict[str, Any]:
        """For release.json and the ledger."""
        return {"relation": self.relation, "rows_per_person": self.rows_per_person}
