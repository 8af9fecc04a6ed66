"""From finished cells to lines: grouping, best schedules, means with their range."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from discreet.experiments.experiment import Row
from discreet.publish.svg import Series, Words

Key = tuple[Any, ...]


def where(rows: Iterable[Row], /, **wanted: Any) -> list[Row]:
    """Rows that agree with all that is wanted."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def values(rows: Iterable[Row], name: str) -> list[Any]:
    """The distinct values of a key, in order; rows without it do not count."""
    return sorted({row[name] for row in rows if row.get(name) is not None})


def grouped(rows: Iterable[Row], *names: str) -> dict[Key, list[Row]]:
    """Rows that agree in some keys, in the order first met."""
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row.get(name) for name in names)].append(row)
    return dict(found)


def mean(rows: Sequence[Row], name: str) -> float:
    """Mean of a figure."""
    return float(np.mean([row[name] for row in rows]))


def adaptive(rows: Iterable[Row], mechanism: str = "rap-paper") -> list[Row]:
    """Rows of a mechanism that selects queries."""
    return [row for row in where(rows, mechanism=mechanism) if row.get("per_round") is not None]


def best(rows: Iterable[Row], *names: str, by: str = "max_error") -> list[Row]:
    """Of rows that agree in some keys, those of the schedule (T, K) with the least mean: the papers' minimum."""
    kept: list[Row] = []
    for some in grouped(rows, *names).values():
        kept += min(grouped(some, "rounds", "per_round").values(), key=lambda tried: mean(list(tried), by))
    return kept


def line(name: str, rows: Iterable[Row], x: str, y: str = "max_error") -> Series:
    """Means over seeds, with the smallest and the largest."""
    points, ends = [], []
    for (at,), some in sorted(grouped(rows, x).items()):
        points.append((float(at), mean(some, y)))
        ends.append((min(row[y] for row in some), max(row[y] for row in some)))
    return Series(name, points, ends)


def lines_of(found: Iterable[Series]) -> list[Series]:
    """Those that have points."""
    return [series for series in found if series.points]


def over_seeds(title: str, x: str, y: str = "largest error, fraction of rows") -> Words:
    """The texts of a chart of such lines."""
    return Words(title, "Mean over seeds, with the smallest and the largest; lower is better.", x, y)


def spread(rows: Sequence[Row], name: str) -> str:
    """Mean and range, as text."""
    found = [row[name] for row in rows]
    return f"{np.mean(found):.4f} ({min(found):.4f} to {max(found):.4f})" if found else "not run"
