"""Job: what a mechanism is given besides the gate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.progress import Progress
from discreet.queries.workload import Workload


@dataclass(frozen=True)
class Job:
    """One run of a mechanism; everything in it is public.

    Attributes:
        workload: What matters.
        rho: What may be spent.
        settings: The mechanism's own settings.
        seed: For random choices that carry no privacy, such as where a fit starts.
        progress: Who hears about it.
    """

    workload: Workload
    rho: Fraction
    settings: Any
    seed: int
    progress: Progress
