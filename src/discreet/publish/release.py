"""Release: what leaves. Answers, rows, guarantee, certificate; reading it costs no budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.data.domain import Domain
from discreet.data.schema import Schema
from discreet.errors import BadRelease
from discreet.models.residuals import ResidualCounts
from discreet.models.rounded import RoundedRows
from discreet.privacy.curator import NUMBER_OF_ROWS
from discreet.privacy.ledger import Charge, total_of
from discreet.privacy.loss import epsilon_of
from discreet.privacy.measurement import Measurement
from discreet.privacy.neighbours import Neighbours
from discreet.progress import SILENT, Progress
from discreet.publish import rows
from discreet.publish.certificate import Certificate
from discreet.publish.intervals import KINDS, Interval, Intervals
from discreet.publish.spread import Spread
from discreet.queries import parse
from discreet.queries.answers import Answers, fraction
from discreet.queries.outlook import Outlook
from discreet.queries.parse import WorkloadLike
from discreet.queries.threshold import Query
from discreet.queries.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.table import Table

_NAMED = 8
"""Attributes that a warning names."""


def total_variance(neighbours: Neighbours, charges: Sequence[Charge]) -> Fraction:
    """Parameter of the noise in the number of rows, from what was paid for it; zero where it is public."""
    paid = total_of(charge for charge in charges if charge.label == NUMBER_OF_ROWS)
    return Fraction(neighbours.single**2) / (2 * paid) if paid else Fraction(0)


@dataclass(frozen=True)
class Guarantee:
    """What is promised, and to whom.

    Attributes:
        epsilon: Asked for.
        delta: Asked for, or 1/n^2.
        rho: The zCDP budget that these two allow.
        conversion: How epsilon and delta became rho.
        neighbours: Whose data is protected.
    """

    epsilon: float
    delta: float
    rho: Fraction
    conversion: str
    neighbours: Neighbours

    def reached(self, charges: Sequence[Charge]) -> float:
        """The epsilon that these charges amount to."""
        return epsilon_of(total_of(charges), self.delta, conversion=self.conversion)

    def in_words(self, charges: Sequence[Charge]) -> str:
        """For people."""
        many = self.neighbours.rows_per_person
        whose = "one row" if many == 1 else f"up to {many} rows of one person"
        change = "replaced by any other" if self.neighbours.total_is_public else "added or removed"
        if not charges:
            return "Nothing private was read, so nothing about any person is revealed."
        return (
            f"With {whose} {change}, the chance of any outcome changes by a factor of at most "
            f"exp({self.epsilon:g}), up to a probability of {self.delta:.3g}: "
            f"({self.epsilon:g}, {self.delta:.3g})-differential privacy. "
            f"Spent: rho = {float(total_of(charges)):.4g} of zero-concentrated DP, which is epsilon = "
            f"{self.reached(charges):.4g}."
        )


@dataclass(frozen=True)
class Release:
    """A finished release.

    Attributes:
        mechanism: Its name.
        settings: The mechanism's settings.
        schema: Public.
        workload: What was asked.
        guarantee: What is promised.
        charges: What was paid, step by step.
        answers: Answers to every query.
        measurements: Noisy counts, as measured.
        codes: Synthetic rows as codes, or None where the mechanism makes none.
        certificate: Bound on the largest error, or None where it was skipped.
        noise_seed: None when the noise came from the operating system, as it should.
        notes: Facts about the run.
        outlook: What may be expected for future queries, where the workload was learned from past ones.
        spread: What a bootstrap found of errors, where one was run: see `bootstrap`.
    """

    mechanism: str
    settings: dict[str, Any]
    schema: Schema
    workload: Workload
    guarantee: Guarantee
    charges: tuple[Charge, ...]
    answers: Answers
    measurements: list[Measurement]
    codes: NDArray[np.int64] | None
    certificate: Certificate | None
    noise_seed: int | None
    notes: dict[str, Any] = field(default_factory=dict)
    outlook: Outlook | None = None
    spread: Spread | None = None

    def __repr__(self) -> str:
        privacy = f"epsilon={self.guarantee.epsilon:g}, delta={self.guarantee.delta:.3g}"
        return f"Release({self.mechanism}, {self.workload.size:,} queries, {privacy})"

    @property
    def domain(self) -> Domain:
        """Public."""
        return self.schema.domain

    @cached_property
    def unseen(self) -> tuple[str, ...]:
        """Attributes that were neither asked for nor measured: what is said of them is not from the table."""
        asked = {name for threshold in self.workload for name in threshold.attributes}
        measured = {name for found in self.measurements for name in found.threshold.attributes}
        return tuple(name for name in self.domain if name not in asked | measured)

    def warning_of_unseen(self) -> str | None:
        """The same in words, where there are such attributes in synthetic rows."""
        if not self.unseen or self.codes is None:
            return None
        named = ", ".join(self.unseen[:_NAMED])
        if len(self.unseen) > _NAMED:
            named += f" and {len(self.unseen) - _NAMED:,} more"
        return f"Nothing was asked or measured of {named}: what answers and rows show there is not from the table."

    @property
    def total_variance(self) -> Fraction:
        """Parameter of the noise in the number of rows; zero where that is public."""
        return total_variance(self.guarantee.neighbours, self.charges)

    @cached_property
    def residuals(self) -> ResidualCounts | None:
        """Noisy marginals put together from residuals, where those were measured."""
        measured = [found for found in self.measurements if found.residual]
        variance = float(self.total_variance)
        known = ResidualCounts(self.domain, self.answers.total, measured, total_variance=variance)
        return known if measured else None

    def query(self, text: str) -> Query:
        """Read a query in words: `age=39, sex=Male` or `2 of (age=39, sex=Male, race=White)`."""
        return parse.query(text, self.domain, lambda name, value: self.schema[name].code_of(value))

    def answer(self, what: WorkloadLike, *, workload_seed: int = 0) -> float | list[float] | pa.Table:
        """Answer queries in words as fractions of the rows, or a whole workload as a table. Free of charge.

        Example:
            release.answer("age=39, sex=Male")         a number
            release.answer(["sex=Male", "sex=Female"]) a list of numbers
            release.answer("all:2")                    a pyarrow table with one row per query
        """
        from discreet.publish.tables import answer_table  # pyarrow loads when it is used

        if isinstance(what, str) and "=" in what and not what.endswith(".json"):
            return fraction(self.answers, self.query(what))
        if isinstance(what, list) and what and all(isinstance(text, str) for text in what):
            return [fraction(self.answers, self.query(text)) for text in what]
        return answer_table(self, parse.workload(what, self.domain, seed=workload_seed))

    def interval(self, text: str) -> Interval:
        """The answer to a query in words with its error bar: see `discreet.publish.intervals`. Free of charge.

        Example:
            release.interval("age=39, sex=Male")   Interval(estimate=0.0115, low=0.0107, high=0.0122, kind="measured")
        """
        asked = self.query(text)
        estimate = fraction(self.answers, asked)
        bars = Intervals(self).of(asked.threshold, np.array([asked.cell]), np.array([estimate]))
        return Interval(estimate, float(bars.low[0]), float(bars.high[0]), KINDS[bars.kind[0]])

    def bootstrap(
        self, times: int = 1, *, seed: int = 0, public: Table | None = None, progress: Progress = SILENT
    ) -> Release:
        """The release with error bars for queries that were neither measured nor certified. Free of charge.

        The mechanism is run again on the release's own rows, which takes as long as the release did.

        Args:
            times: Runs.
            seed: Of rows and noise.
            public: The public table that the release was started from, where it was; never private rows.
            progress: Hears how far it is.
        """
        from discreet.publish.bootstrap import bootstrap

        return replace(self, spread=bootstrap(self, times=times, seed=seed, public=public, progress=progress))

    def rows(self, count: int | None = None, *, seed: int | None = None, labels: bool = False) -> pa.Table:
        """Synthetic rows in the original schema: the released ones, or `count` fresh ones. Free of charge.

        Args:
            count: Draw this many new rows; None for the released ones.
            seed: For the draw, and for numbers inside their bins.
            labels: Bins as texts instead of numbers drawn inside them.
        """
        from discreet.data.encode import decode

        if count is not None:
            _check.whole("count", count)
        generator = np.random.default_rng(seed)
        codes = self.codes if count is None else rows.draw(self.answers, count, generator)
        if codes is None:
            raise BadRelease(f"{self.mechanism} publishes answers only; release with auto to have synthetic rows.")
        return decode(codes, self.schema, generator=generator, labels=labels)

    def rows_as_answers(self) -> Answers | None:
        """What people find who count the synthetic rows."""
        if self.codes is None:
            return None
        if isinstance(self.answers, RoundedRows):
            return self.answers
        return RoundedRows(self.domain, self.answers.total, self.codes)

    def save(self, folder: str | Path) -> None:
        """Write the release folder, report included."""
        from discreet.publish.store import save

        save(self, Path(folder))

    @staticmethod
    def open(folder: str | Path) -> Release:
        """Read a release folder."""
        from discreet.publish.store import load

        return load(Path(folder))
