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
        return self._per_marginal(2)

    def batch_squared(self, queries: Iterable[tuple[object, bool]]) -> int:
        """Squared L2 change of single queries measured together.

        Queries of one marginal share at most two moving cells (one, under add-remove). Threshold queries with
        r < k overlap, so each counts on its own.

        Args:
            queries: For each query, its threshold and whether that is a marginal (r = k).
        """
        per_threshold = Counter(queries)
        together = sum(self._per_marginal(many) for (_, marginal), many in per_threshold.items() if marginal)
        alone = sum(many for (_, marginal), many in per_threshold.items() if not marginal)
        return together + alone * self.rows_per_person**2

    def _per_marginal(self, queries: int) -> int:
        moving = 2 if self.relation == "replace-one" else 1
        return min(moving, queries) * self.rows_per_person**2

    def to_json(self) -> dict[str, Any]:
        """For release.json and the ledger."""
        return {"relation": self.relation, "rows_per_person": self.rows_per_person}
