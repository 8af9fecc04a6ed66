"""The experiments by name; each loads when it is used."""

from __future__ import annotations

from importlib import import_module

from discreet import _check
from discreet.experiments.experiment import Experiment

NAMES = {
    "present": "present error of every mechanism by epsilon and workload size",
    "schedule": "error over rounds T and queries per round K",
    "rule": "what rap measures by default, beside other orders and schedules",
    "filtering": "filtered against unfiltered marginals, with a likelihood-ratio test",
    "thresholds": "r-of-4 thresholds, r from 1 to 4",
    "rows": "relaxed rows n' against error and time",
    "future": "future error by distribution and size of the history",
    "drift": "future error when what people ask about drifts",
    "training": "training loss, present and future error along the fit",
    "oversampling": "error of synthetic rows by how many are drawn from each relaxed row",
    "family": "every mechanism beside every other: errors, time and memory",
    "public": "mechanisms that start from a related public table beside those that do not",
    "intervals": "how often error bars hold the truth, by kind, over many releases",
    "fiveway": "3-way and 5-way marginals and 1-of-3 thresholds by epsilon",
}


def find(name: str) -> Experiment:
    """The experiment of this name."""
    _check.one_of("The experiment", name, NAMES)
    found: Experiment = import_module(f"discreet.experiments.{name}").EXPERIMENT
    return found
