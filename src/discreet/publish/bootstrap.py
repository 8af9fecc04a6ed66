"""Bootstrap on the model: how far a mechanism errs on a table like the one it made.

The published model is taken for the truth. Rows are drawn from it, the same mechanism is run on them with the same
budget, and its answers are compared with those rows. That needs no budget: everything it touches is published. It
says how far answers of each size were off, for queries of each kind (r of k) that were neither measured nor certified.

It is an estimate. The model knows nothing of what the mechanism missed, so errors on queries that bear upon such things
are larger than it says; `discreet experiment intervals` reports how often its intervals hold. Where there is a
certificate, that is noticed in part: if the largest error over the workload was larger on the table than on the model's
rows, so are all others taken to be, in the same proportion. And answers counted on m rows are never taken to be closer
than 1 / m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.data.domain import Domain
from discreet.data.held import Held
from discreet.data.sparse import Sparse
from discreet.data.table import Table
from discreet.errors import BadRelease
from discreet.mechanisms import catalogue
from discreet.mechanisms.job import Job
from discreet.models.rounded import RoundedRows
from discreet.privacy.budget import Budget
from discreet.privacy.curator import CERTIFICATE, NUMBER_OF_ROWS, Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.ledger import total_of
from discreet.progress import SILENT, Progress
from discreet.publish import rows, starting
from discreet.publish.certificate import distance
from discreet.publish.intervals import Intervals
from discreet.publish.release import Release
from discreet.publish.spread import EDGES, Spread
from discreet.queries.answers import fractions
from discreet.queries.threshold import Attributes, Threshold

_PANEL = 12
"""Thresholds of each kind that are compared."""

_LARGEST = 2**18
"""Most queries of a threshold that is compared."""

_MOST_ROWS = 10**6
"""Rows that are drawn at most."""

_LEAST = 20
"""Errors that a quantile needs; sizes with fewer borrow from the next."""


def bootstrap(
    release: Release, *, times: int = 1, seed: int = 0, public: Table | None = None, progress: Progress = SILENT
) -> Spread:
    """Run the release's mechanism on its own synthetic rows, and see how far it errs. Free of charge.

    Args:
        release: With a model that rows can be drawn from.
        times: Runs; one is enough for most, since every run has thousands of errors.
        seed: Of rows and noise; public, as all of this is.
        public: The public table that the release was started from, where it was: the release does not hold it. Never
            private rows: what comes of them is published with the error bars.
        progress: Hears how far it is.

    Raises:
        BadRelease: The mechanism makes no rows.
        BadSetting: It starts from a public table, and none was given.
    """
    _check.whole("times", times)
    mechanism = catalogue.find(release.mechanism)
    if release.codes is None:
        raise BadRelease(f"Errors cannot be estimated by a bootstrap: {release.mechanism} makes no rows.")
    starting.check(mechanism, public, release.domain)
    first = None if public is None else starting.codes(release.domain, public)
    settings = mechanism.settings(**release.settings)
    count = min(_MOST_ROWS, release.answers.total)
    larger = Fraction(release.answers.total, count) ** 2  # noise as a fraction of fewer rows: a larger budget makes up
    spent = larger * total_of([each for each in release.charges if each.label not in (NUMBER_OF_ROWS, CERTIFICATE)])
    on_total = larger * total_of([each for each in release.charges if each.label == NUMBER_OF_ROWS])
    panel = _panel(release)
    if not panel:
        raise BadRelease(
            f"Errors cannot be estimated by a bootstrap: every attribute has more than {_LARGEST:,} values, too many "
            "to compare."
        )
    largest = 0.0
    errors: dict[Threshold, list[tuple[NDArray[Any], NDArray[Any]]]] = {threshold: [] for threshold in panel}
    for turn in range(times):
        generator = np.random.default_rng((seed, turn))
        world = _World(release.domain, Held(tuple(rows.draw(release.answers, count, generator).T)))
        entropy = SeededEntropy(int(generator.integers(2**31)))
        curator = Curator(
            world,
            budget=Budget(spent + on_total),
            neighbours=release.guarantee.neighbours,
            entropy=entropy,
            progress=progress,
        )
        if on_total:
            curator.measure_total(rho=on_total)
        job = Job(release.workload, spent, settings, first, int(generator.integers(2**31)), progress)
        progress.stage(f"bootstrap {turn + 1} of {times}: {mechanism.name} on its own rows")
        answers = mechanism.run(curator, job).answers
        truth = RoundedRows(release.domain, world.rows(), np.column_stack(world.engine.columns))
        for threshold in panel:
            one, other = fractions(answers, threshold), fractions(truth, threshold)
            errors[threshold].append((one, np.abs(one - other)))
        if release.certificate is not None:
            largest += distance(release.workload, answers, truth) / times
    finest = 1 / len(release.answers.codes) if isinstance(release.answers, RoundedRows) else 0.0
    return _summary(errors, times, times_larger=_times_larger(release, largest), at_least=finest)


def _times_larger(release: Release, largest: float) -> float:
    """How many times larger the largest error over the workload was on the table, as far as the certificate knows."""
    if release.certificate is None or largest <= 0:
        return 1.0
    return max(1.0, release.certificate.noisy_maximum / release.answers.total / largest)


@dataclass(frozen=True)
class _World:
    """A table made of published rows: see `discreet.privacy.curator.Counted`."""

    domain: Domain
    engine: Held

    def rows(self) -> int:
        return self.engine.rows()

    def counts(self, sets: Sequence[Attributes], *, progress: Progress = SILENT) -> list[Sparse]:
        marginals = [tuple((self.domain.index(name), self.domain.size_of(name)) for name in names) for names in sets]
        return [Sparse(cells, values) for _, cells, values in self.engine.count(marginals)]


def _panel(release: Release) -> list[Threshold]:
    """Some thresholds of every kind up to one attribute more than the workload's widest.

    Only such as have no error bar but an estimate, which others would make too narrow; any where there are none. But
    never of attributes that were neither asked for nor measured: errors there say nothing of others.
    """
    domain, generator, intervals = release.domain, np.random.default_rng(0), Intervals(release)
    seen = [name for name in domain if name not in release.unseen]
    chosen: list[Threshold] = []
    for width in range(1, min(release.workload.widest + 1, len(seen)) + 1):
        sets = [names for names in _some(seen, width, generator) if domain.project(names).size <= _LARGEST]
        for r in range(1, width + 1):
            every = [Threshold(names, r) for names in sets]
            needy = (one for one in every if intervals.needs_estimate(one, np.arange(one.cells(domain))))
            chosen += list(islice(needy, _PANEL)) or every[:_PANEL]
    return chosen


def _some(seen: Sequence[str], width: int, generator: np.random.Generator) -> list[Attributes]:
    """Sets of attributes in random order: all of them, or many where there are too many to list."""
    if len(seen) <= _PANEL:
        every = list(combinations(seen, width))
        return [every[at] for at in generator.permutation(len(every))]
    drawn = (generator.choice(len(seen), width, replace=False) for _ in range(32 * _PANEL))
    return list(dict.fromkeys(tuple(seen[at] for at in sorted(which)) for which in drawn))


def _summary(
    errors: dict[Threshold, list[tuple[NDArray[Any], NDArray[Any]]]],
    times: int,
    *,
    times_larger: float,
    at_least: float,
) -> Spread:
    kinds: dict[tuple[int, int], list[tuple[NDArray[Any], NDArray[Any]]]] = {}
    for threshold, found in errors.items():
        kinds.setdefault((len(threshold.attributes), threshold.r), []).extend(found)
    reaches = {}
    for kind, found in kinds.items():
        size = np.searchsorted(EDGES, np.concatenate([estimates for estimates, _ in found]), side="right")
        off = np.concatenate([errors for _, errors in found])
        quantiles = (_quantile(off, size, wanted) for wanted in range(len(EDGES) + 1))
        reaches[kind] = tuple(max(at_least, times_larger * reach) for reach in quantiles)
    return Spread(reaches, times)


def _quantile(off: NDArray[Any], size: NDArray[Any], wanted: int) -> float:
    """The 95 % quantile of errors of one size, with those of neighbouring sizes where there are few."""
    for slack in range(len(EDGES) + 1):
        chosen = off[np.abs(size - wanted) <= slack]
        if len(chosen) >= _LEAST:
            return float(np.quantile(chosen, 0.95))
    return float(off.max(initial=0.0))
