"""Job: what a mechanism is given besides the gate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.progress import Progress
from discreet.queries.workload import Workload


@dataclass(frozen=True)
class Job:
    """One run of a mechanism; everything in it is public.

    Attributes:
        workload: What matters.
        rho: What may be spent.
        settings: The mechanism's own settings.
        public: Rows of a public table (codes, rows x attributes; `UNKNOWN` where it lacks an attribute), or None.
        seed: For random choices that carry no privacy, such as where a fit starts.
        progress: Who hears about it.
    """

    workload: Workload
    rho: Fraction
    settings: Any
    public: NDArray[np.int64] | None
    seed: int
    progress: Progress
