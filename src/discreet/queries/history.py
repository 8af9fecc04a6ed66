"""History: what was asked in the past, as a guide to what will be asked. Public input.

The file is a list of past queries, or {"queries": [...]}, each of them

    "age=39, sex=Male"  or  "2 of (age=39, sex=Male, race=White)"    a query in words
    "age, sex"          or  "2 of (age, sex, race)"                  its threshold in words
    ["age", "sex"]      or  {"attributes": ["age", "sex"], "r": 1, "count": 12}
    {"query": "age=39, sex=Male", "count": 3}

Only thresholds are learned: which values were asked for is not looked at.

Reference: Avent and Korolova (2023), Definition 5.1 (W_H is the history) and section 5.3.1 (augmentation).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _check
from discreet.data.domain import Domain
from discreet.errors import BadWorkload, DiscreetError
from discreet.queries import parse
from discreet.queries.threshold import Threshold
from discreet.queries.workload import Workload

Kind = tuple[int, int]
"""Attributes of a threshold, and how many must match: (k, r)."""

HELP = (
    'A history is a JSON file with a list such as ["age=39, sex=Male", "2 of (age, sex, race)", '
    '{"attributes": ["age", "sex"], "r": 1, "count": 12}].'
)

MOST_QUERIES = 10**9 - 1
_LISTED = 100_000
"""Up to so many possible thresholds are listed to draw from; of more, one is drawn until it is new."""


@dataclass(frozen=True)
class History:
    """Past queries, by threshold.

    Attributes are put in the domain's order; counts of thresholds that then coincide add up.

    Attributes:
        domain: Public.
        counts: How often each threshold was asked, in the order first named.

    Example:
        >>> domain = Domain({"age": 85, "sex": 2})
        >>> past = History(domain, [Threshold(["sex", "age"]), Threshold(["age"]), Threshold(["age", "sex"])])
        >>> past
        History(3 queries of 2 thresholds)
        >>> past.workload()
        Workload(2 thresholds, 255 queries)
    """

    domain: Domain
    counts: dict[Threshold, int]

    def __init__(self, domain: Domain, thresholds: Iterable[Threshold], counts: Iterable[int] | None = None) -> None:
        listed = list(thresholds)
        times = [1] * len(listed) if counts is None else list(counts)
        if len(times) != len(listed):
            raise BadWorkload(f"There are {len(listed)} past queries but {len(times)} counts.")
        summed: dict[Threshold, int] = {}
        for threshold, count in zip(listed, times, strict=True):
            _check.whole("count", count)
            names = tuple(sorted(threshold.attributes, key=domain.index))
            ordered = Threshold(names, threshold.r)
            summed[ordered] = summed.get(ordered, 0) + count
        if not summed:
            raise BadWorkload(f"The history is empty: there is nothing to learn from. {HELP}")
        if sum(summed.values()) > MOST_QUERIES:
            raise BadWorkload(f"A history can hold at most {MOST_QUERIES:,} queries; divide the counts.")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "counts", summed)

    def __repr__(self) -> str:
        return f"History({self.size:,} queries of {len(self.counts):,} thresholds)"

    @staticmethod
    def read(source: HistoryLike, domain: Domain) -> History:
        """Read a history: a JSON file, its content, or a History over the same domain."""
        if isinstance(source, History):
            if source.domain != domain:
                raise BadWorkload("The history was made for another domain.")
            return source
        content = parse.load(Path(source), "history") if isinstance(source, str | Path) else source
        entries = content.get("queries") if isinstance(content, dict) else content
        if not isinstance(entries, list | tuple):
            raise BadWorkload(f"A history must hold a list of past queries. {HELP}")
        thresholds, counts = [], []
        for position, entry in enumerate(entries, start=1):
            try:
                threshold, count = _entry(entry, domain)
                History(domain, [threshold], [count])  # refuses names and counts here, where the position is known
            except DiscreetError as error:
                raise type(error)(f"Past query {position}: {error}") from None
            thresholds.append(threshold)
            counts.append(count)
        return History(domain, thresholds, counts)

    @property
    def size(self) -> int:
        """Number of past queries, repetitions counted."""
        return sum(self.counts.values())

    @property
    def kinds(self) -> dict[Kind, int]:
        """How often thresholds of each kind (k, r) were asked."""
        found: dict[Kind, int] = {}
        for threshold, count in self.counts.items():
            kind = (len(threshold.attributes), threshold.r)
            found[kind] = found.get(kind, 0) + count
        return found

    def workload(self, *, augment: int = 0, seed: int = 0) -> Workload:
        """What a release should answer well: all that was asked, and `augment` further thresholds.

        The weight of a threshold asked f times is f^(2/3). A measurement's share of the budget is in proportion to
        its weight w, so its error is to w^(-1/2), and the expected error of a query drawn like the past ones, the
        sum of f w^(-1/2), is smallest for w in proportion to f^(2/3). A further threshold weighs as one asked once.

        Further thresholds are drawn evenly from those not asked before, kinds in proportion to how often each was
        asked: "a practitioner can simply augment [a small history] by adding uniformly randomly sampled thresholds"
        (section 5.3.1).
        """
        _check.whole("workload_seed", seed, least=0)
        further = self._further(augment, np.random.default_rng(seed))
        weights = [count ** (2 / 3) for count in self.counts.values()] + [1.0] * len(further)
        return Workload(self.domain, [*self.counts, *further], weights)

    def to_json(self) -> dict[str, Any]:
        """The form that `read` takes."""
        return {
            "queries": [
                {"attributes": list(threshold.attributes), "r": threshold.r, "count": count}
                for threshold, count in self.counts.items()
            ]
        }

    def _further(self, many: int, generator: np.random.Generator) -> list[Threshold]:
        _check.whole("augment", many, least=0)
        kinds = self.kinds
        left = {kind: comb(len(self.domain), kind[0]) - self._distinct(kind) for kind in kinds}
        if many > sum(left.values()):
            listed = ", ".join(f"{r} of {k}" for k, r in kinds)
            raise BadWorkload(
                f"{many:,} further thresholds were asked for, but only {sum(left.values()):,} of the history's kinds "
                f"({listed}) have not been asked yet."
            )
        wanted = dict.fromkeys(kinds, 0)
        for _ in range(many):
            open_kinds = [kind for kind in kinds if wanted[kind] < left[kind]]
            shares = np.array([kinds[kind] for kind in open_kinds], dtype=np.float64)
            wanted[open_kinds[generator.choice(len(open_kinds), p=shares / shares.sum())]] += 1
        return [threshold for kind, number in wanted.items() for threshold in self._new(kind, number, generator)]

    def _distinct(self, kind: Kind) -> int:
        return sum((len(threshold.attributes), threshold.r) == kind for threshold in self.counts)

    def _new(self, kind: Kind, many: int, generator: np.random.Generator) -> list[Threshold]:
        """Distinct thresholds of one kind that were not asked, drawn evenly."""
        k, r = kind
        if comb(len(self.domain), k) <= _LISTED:
            every = [Threshold(names, r) for names in combinations(self.domain.attributes, k)]
            unasked = [threshold for threshold in every if threshold not in self.counts]
            return [unasked[at] for at in generator.choice(len(unasked), many, replace=False)] if many else []
        found: dict[Threshold, None] = {}
        while len(found) < many:
            picked = np.sort(generator.choice(len(self.domain), k, replace=False))
            threshold = Threshold(tuple(self.domain.attributes[at] for at in picked), r)
            if threshold not in self.counts:
                found[threshold] = None
        return list(found)


HistoryLike = History | str | Path | Sequence[Any] | dict[str, Any]


def _entry(entry: Any, domain: Domain) -> tuple[Threshold, int]:
    if isinstance(entry, Threshold):
        return entry, 1
    if isinstance(entry, str):
        return _in_words(entry, domain), 1
    if isinstance(entry, list | tuple):
        entry = {"attributes": entry}
    if not isinstance(entry, dict):
        raise BadWorkload(f"{entry!r} is not understood. {HELP}")
    count = entry.get("count", 1)
    if isinstance(entry.get("query"), str) and set(entry) <= {"query", "count"}:
        return _in_words(entry["query"], domain), count
    names = entry.get("attributes")
    if set(entry) - {"attributes", "r", "count"} or not isinstance(names, list | tuple):
        raise BadWorkload(f"Only query, or attributes (a list) and r, and count are understood. {HELP}")
    return Threshold(tuple(names), entry.get("r")), count


def _in_words(text: str, domain: Domain) -> Threshold:
    if "=" in text:
        return parse.query(text, domain, lambda name, value: 0).threshold
    return parse.threshold(text, domain, advice=HELP)
