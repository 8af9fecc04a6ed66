"""Outlook: how far a release learned from past queries may be trusted for future ones. Public facts only.

Nothing here is about the table. It follows from the history, the workload and the domain, all of them public, and
it assumes that future queries are drawn independently from what the past ones were drawn from.

How much of the future was never asked before, the *missing mass*, is estimated by Good and Turing's rule: the share
of past queries whose threshold was asked only once. For the bound the past is cut in two halves at random. What
the first half has not seen is at least what the whole past has not seen, and each query of the second half falls
there independently, with that probability: `rate_at_most` holds for it, whatever the distribution.

Reference: Good (1953), "The population frequencies of species and the estimation of population parameters".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from discreet.confidence import CONFIDENCE, rate_at_most
from discreet.queries.history import History, Kind
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload

WIDEST_PART = 3
"""Parts of thresholds are counted up to so many attributes."""


@dataclass(frozen=True)
class KindOutlook:
    """One kind of threshold, r of k.

    Attributes:
        k: Attributes.
        r: How many must match.
        asked: Past queries of this kind.
        possible: Thresholds of this kind over the whole domain.
        in_workload: Of those, in the workload.
        parts: For 1, 2, ... attributes: of all sets of so many attributes within the thresholds that are not in
            the workload, the share that lies within some threshold of the workload. Empty if none is left out.
    """

    k: int
    r: int
    asked: int
    possible: int
    in_workload: int
    parts: tuple[float, ...]

    def __str__(self) -> str:
        """In words."""
        kind = f"{self.k}-way marginals" if self.r == self.k else f"{self.r}-of-{self.k} thresholds"
        if self.in_workload == self.possible:
            return f"All {self.possible:,} possible {kind} are in the workload."
        parts = [f"{share:.1%} of their {name}" for share, name in zip(self.parts, _PARTS, strict=False)]
        told = f"; of the others, {' and '.join(parts)} are" if parts else ""
        return f"{self.in_workload:,} of {self.possible:,} possible {kind} are in the workload{told}."


_PARTS = ("attributes", "pairs of attributes", "triples of attributes")


@dataclass(frozen=True)
class Outlook:
    """Where a workload came from, and what that says about the future.

    Attributes:
        past: Queries of the history, repetitions counted.
        thresholds: Distinct thresholds among them.
        added: Thresholds of the workload that were drawn at random.
        unseen: Estimated share of future queries whose threshold was not asked in the past.
        unseen_at_most: Upper bound on that share.
        confidence: Probability with which the bound holds.
        kinds: By kind of threshold.
    """

    past: int
    thresholds: int
    added: int
    unseen: float
    unseen_at_most: float
    confidence: float
    kinds: tuple[KindOutlook, ...]

    def origin(self) -> str:
        """Where the workload came from, in words."""
        added = f"; {self.added:,} further thresholds were drawn at random" if self.added else ""
        return f"The workload was learned from {self.past:,} past queries of {self.thresholds:,} thresholds{added}."

    def sentences(self) -> list[str]:
        """For people."""
        return [
            f"If future queries are drawn like the past ones, about {self.unseen:.1%} of them ask a threshold that was "
            f"not asked before: at most {self.unseen_at_most:.1%}, with {self.confidence:.0%} confidence.",
            *map(str, self.kinds),
            "What is certified holds for the queries of the workload. Others are answered without a stated accuracy, "
            "or not at all where the mechanism has no model.",
        ]

    def to_json(self) -> dict[str, Any]:
        """For release.json."""
        return asdict(self)

    @staticmethod
    def from_json(described: dict[str, Any]) -> Outlook:
        """Back from release.json."""
        kinds = tuple(KindOutlook(**{**kind, "parts": tuple(kind["parts"])}) for kind in described["kinds"])
        return Outlook(**{**described, "kinds": kinds})


def outlook(history: History, workload: Workload, *, confidence: float = CONFIDENCE) -> Outlook:
    """What a history and the workload made from it say about future queries."""
    covered = [_within(workload, size) for size in range(1, WIDEST_PART + 1)]
    return Outlook(
        past=history.size,
        thresholds=len(history.counts),
        added=len(workload) - len(history.counts),
        unseen=list(history.counts.values()).count(1) / history.size,
        unseen_at_most=missing_mass_at_most(history, confidence=confidence),
        confidence=confidence,
        kinds=tuple(_kind(kind, asked, workload, covered) for kind, asked in sorted(history.kinds.items())),
    )


def missing_mass_at_most(history: History, *, confidence: float = CONFIDENCE) -> float:
    """Bound on the share of future queries whose threshold is not in the history."""
    counts = np.array(list(history.counts.values()))
    first = np.random.default_rng(0).multivariate_hypergeometric(counts, history.size // 2, method="marginals")
    second = counts - first
    return rate_at_most(int(second[first == 0].sum()), int(second.sum()), confidence=confidence)


def _within(workload: Workload, size: int) -> set[Attributes]:
    """Sets of so many attributes that lie within some threshold of the workload."""
    return {part for threshold in workload for part in combinations(threshold.attributes, size)}


def _kind(kind: Kind, asked: int, workload: Workload, covered: list[set[Attributes]]) -> KindOutlook:
    k, r = kind
    d = len(workload.domain)
    inside = sum((len(threshold.attributes), threshold.r) == kind for threshold in workload)
    left = comb(d, k) - inside
    parts = [_share(d, k, inside, size, found) for size, found in enumerate(covered, start=1) if left and size < k]
    return KindOutlook(k, r, asked, comb(d, k), inside, tuple(parts))


def _share(d: int, k: int, inside: int, size: int, covered: Collection[Attributes]) -> float:
    """Every set of `size` attributes lies in C(d - size, k - size) thresholds; those inside have all theirs covered."""
    met = len(covered) * comb(d - size, k - size) - inside * comb(k, size)
    return met / ((comb(d, k) - inside) * comb(k, size))
