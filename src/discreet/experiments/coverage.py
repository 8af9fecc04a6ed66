"""Coverage: which error bars of a release hold the truth, and how often they do over many releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.confidence import CONFIDENCE, mean_of, rate_at_most
from discreet.publish.intervals import KINDS, Intervals
from discreet.publish.release import Release
from discreet.queries.answers import Answers, fractions
from discreet.queries.threshold import Threshold

Floats = NDArray[np.float64]
Fractions = Mapping[Threshold, Floats]
"""Answers to all queries of some thresholds, as fractions of the rows."""

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Held:
    """Error bars of many queries: kinds, whether each holds the truth, widths, and the truth itself."""

    kind: NDArray[np.int8]
    holds: NDArray[np.bool_]
    width: Floats
    truth: Floats

    def share(self, kind: str, *, above: float = -1.0) -> float:
        """Share of the intervals of a kind that hold the truth; NaN where there are none."""
        chosen = (self.kind == KINDS.index(kind)) & (self.truth > above)
        return float(self.holds[chosen].mean()) if chosen.any() else float("nan")

    def tally(self, kind: str) -> list[float]:
        """Intervals of a kind, how many hold the truth, and their widths together."""
        chosen = self.kind == KINDS.index(kind)
        return [float(chosen.sum()), float(self.holds[chosen].sum()), float(self.width[chosen].sum())]


def held(made: Release, answers: Fractions, truth: Fractions) -> Held:
    """All error bars of some published answers beside the truth."""
    bars = Intervals(made)
    kinds, holds, widths, truths = [], [], [], []
    for threshold, estimates in answers.items():
        true = truth[threshold]
        found = bars.of(threshold, np.arange(len(true)), estimates)
        kinds.append(found.kind)
        holds.append((found.low <= true + _ROUNDING) & (true <= found.high + _ROUNDING))
        widths.append(found.high - found.low)
        truths.append(true)
    return Held(np.concatenate(kinds), np.concatenate(holds), np.concatenate(widths), np.concatenate(truths))


def is_certified(made: Release, answers: Fractions, truth: Fractions) -> bool:
    """Whether the certificate's bound holds for every query at once."""
    assert made.certificate is not None
    largest = max(float(np.abs(estimates - truth[threshold]).max()) for threshold, estimates in answers.items())
    return largest <= made.certificate.bound + _ROUNDING


def every(answers: Answers, thresholds: Iterable[Threshold]) -> Fractions:
    """All answers to some thresholds."""
    return {threshold: fractions(answers, threshold) for threshold in thresholds}


@dataclass(frozen=True)
class Share:
    """How often error bars held, with a 95 % interval over releases."""

    mean: float
    low: float
    high: float
    releases: int

    def __str__(self) -> str:
        return f"{self.mean:.2%} ({self.low:.2%} to {self.high:.2%}, {self.releases} releases)"

    @staticmethod
    def of_shares(found: Sequence[float]) -> Share | None:
        """From the share of each release, by Student's t; None where there are too few."""
        if len(found) < 2:
            return None
        mean = mean_of(found)
        assert mean.low is not None
        assert mean.high is not None
        return Share(mean.mean, mean.low, min(1.0, mean.high), len(found))

    @staticmethod
    def of_events(held: Sequence[float]) -> Share | None:
        """From what held (1) or did not (0) in each release, by Chernoff's bound; None where there are too few."""
        many, level = len(held), (1 + CONFIDENCE) / 2
        if many < 2:
            return None
        missed = many - round(sum(held))
        low = 1 - rate_at_most(missed, many, confidence=level)
        return Share(1 - missed / many, low, rate_at_most(many - missed, many, confidence=level), many)
