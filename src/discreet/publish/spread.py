"""Spread: how far answers were off, by kind of query and size of answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.queries.threshold import Threshold

EDGES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Where sizes of answers are cut."""


@dataclass(frozen=True)
class Spread:
    """What a bootstrap found.

    Attributes:
        reaches: For each kind of threshold, (k, r): for each size of answer, how far 95 % of them were off at most.
        times: Runs behind it.
    """

    reaches: Mapping[tuple[int, int], tuple[float, ...]]
    times: int

    def reach(self, threshold: Threshold, estimates: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far answers of these sizes may be off; thresholds wider than any that was looked at are like those."""
        wide, r = len(threshold.attributes), threshold.r
        width = min(wide, max(width for width, _ in self.reaches))
        found = self.reaches[width, max(1, width - (wide - r))]
        chosen: NDArray[np.float64] = np.asarray(found)[np.searchsorted(EDGES, estimates, side="right")]
        return chosen

    def to_json(self) -> dict[str, Any]:
        """For bootstrap.json."""
        kinds = [
            {"attributes": wide, "r": r, "reach": list(found)} for (wide, r), found in sorted(self.reaches.items())
        ]
        return {"times": self.times, "sizes": list(EDGES), "kinds": kinds}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Spread:
        """The same again."""
        kinds = {(entry["attributes"], entry["r"]): tuple(entry["reach"]) for entry in content["kinds"]}
        return Spread(kinds, content["times"])
