"""Workload: a list of distinct thresholds with weights, standing for all their queries, which stay implicit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from discreet.data.domain import Domain
from discreet.errors import BadWorkload
from discreet.queries.expand import require_expandable
from discreet.queries.threshold import Attributes, Threshold

_LARGEST_WEIGHT = 1e100
"""Sums of weights must not overflow."""

_FARTHEST_WEIGHTS = 1e9
"""How many times the least weight the largest may be: noise on what matters least must still be drawn."""


@dataclass(frozen=True)
class Workload:
    """Which queries matter, and how much.

    Attributes are put in the domain's order; thresholds that then coincide are merged, keeping the larger weight.

    Attributes:
        domain: Public.
        thresholds: Distinct, in the order first named.
        weights: How much an error on each threshold matters, relative to the others; positive.

    Example:
        >>> domain = Domain({"age": 85, "sex": 2})
        >>> Workload(domain, [Threshold(["sex", "age"]), Threshold(["age"])]).size
        255
    """

    domain: Domain
    thresholds: tuple[Threshold, ...]
    weights: tuple[float, ...]

    def __init__(self, domain: Domain, thresholds: Iterable[Threshold], weights: Iterable[float] | None = None) -> None:
        listed = list(thresholds)
        given = [1.0] * len(listed) if weights is None else list(weights)
        if len(given) != len(listed):
            raise BadWorkload(f"There are {len(listed)} thresholds but {len(given)} weights.")
        merged: dict[Threshold, float] = {}
        for threshold, weight in zip(listed, given, strict=True):
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= _LARGEST_WEIGHT:
                raise BadWorkload(
                    f"The weight of {threshold} must be a positive number, at most {_LARGEST_WEIGHT:g}, not {weight!r}."
                )
            names = tuple(sorted(threshold.attributes, key=domain.index))
            domain.project(names).require_addressable()
            ordered = Threshold(names, threshold.r)
            require_expandable(ordered, domain)
            merged[ordered] = max(float(weight), merged.get(ordered, 0.0))
        if not merged:
            raise BadWorkload("A workload needs at least one threshold.")
        least, largest = min(merged.values()), max(merged.values())
        if largest > _FARTHEST_WEIGHTS * least:
            raise BadWorkload(
                f"Weights lie between {least:g} and {largest:g}; they may differ by a factor of "
                f"{_FARTHEST_WEIGHTS:g} at most. Leave out what matters so little."
            )
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "thresholds", tuple(merged))
        object.__setattr__(self, "weights", tuple(merged.values()))

    def __len__(self) -> int:
        return len(self.thresholds)

    def __iter__(self) -> Iterator[Threshold]:
        return iter(self.thresholds)

    def __repr__(self) -> str:
        return f"Workload({len(self)} thresholds, {self.size:,} queries)"

    @cached_property
    def size(self) -> int:
        """Number of queries, exact whatever its length."""
        return sum(threshold.cells(self.domain) for threshold in self.thresholds)

    @cached_property
    def widest(self) -> int:
        """Most attributes of a threshold, and so of a marginal."""
        return max(len(threshold.attributes) for threshold in self.thresholds)

    @cached_property
    def marginals(self) -> dict[Attributes, float]:
        """The marginals that every query can be derived from, each once, with the largest weight asked of it.

        A threshold with r < k is a combination of the marginals on r .. k of its attributes, and each of those is
        far less noisy than the sum of cells that would stand for it in the full marginal.
        """
        needed: dict[Attributes, float] = {}
        for threshold, weight in zip(self.thresholds, self.weights, strict=True):
            for _, subset in threshold.terms():
                needed[subset] = max(weight, needed.get(subset, 0.0))
        return needed

    def to_json(self) -> dict[str, Any]:
        """The form that `discreet.queries.parse` reads back."""
        entries: list[dict[str, Any]] = []
        for threshold, weight in zip(self.thresholds, self.weights, strict=True):
            entry: dict[str, Any] = {"attributes": list(threshold.attributes)}
            if not threshold.is_marginal:
                entry["r"] = threshold.r
            if weight != 1 and isfinite(weight):
                entry["weight"] = weight
            entries.append(entry)
        return {"thresholds": entries}
