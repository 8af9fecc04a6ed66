"""Making a release: validate, charge, read, fit, certify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _check
from discreet.data.domain import Domain
from discreet.data.schema import Schema
from discreet.data.table import Table
from discreet.errors import BadData, BadSetting, BadWorkload, DiscreetError
from discreet.mechanisms import catalogue
from discreet.mechanisms.catalogue import Mechanism
from discreet.mechanisms.job import Job
from discreet.models.rounded import RoundedRows
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import Entropy, source
from discreet.privacy.ledger import Ledger, Limit
from discreet.privacy.loss import CONVERSIONS, rho_of
from discreet.privacy.neighbours import Neighbours
from discreet.progress import SILENT, Progress
from discreet.publish import rows as synthetic
from discreet.publish import starting
from discreet.publish.certificate import certify
from discreet.publish.release import Guarantee, Release
from discreet.publish.store import Folder
from discreet.queries import parse
from discreet.queries.history import History, HistoryLike
from discreet.queries.outlook import Outlook, outlook
from discreet.queries.parse import WorkloadLike
from discreet.queries.workload import Workload

TOTAL_SHARE = Fraction(1, 50)
"""Share of the budget that pays for the number of rows where that is private."""

_MANY = 2**13
"""Thresholds of a workload beyond which it takes seconds to ask every mechanism whether it takes it."""

_LEAST_SHARE = Fraction(1, 10**9)
"""Least share of the budget for anything that is paid for at all."""

_WIDEST = 2**26
"""Standard deviation of the noise on a single count, in rows, that a whole budget must stay below."""


@dataclass(frozen=True)
class Plan:
    """A release that has been checked and may start: public facts only.

    Attributes:
        schema: Public.
        workload: What is asked.
        mechanism: How it will be answered.
        settings: Of the mechanism.
        guarantee: What will be promised.
        certificate: Share of the budget for the certificate.
        oversample: Copies of each relaxed row in the synthetic table; None for about as many rows as the table.
        public: A public table to start from, where the mechanism takes one.
    """

    schema: Schema
    workload: Workload
    mechanism: Mechanism
    settings: Any
    guarantee: Guarantee
    certificate: Fraction
    oversample: int | None
    public: Table | None = None

    @property
    def domain(self) -> Domain:
        """Public."""
        return self.schema.domain


def release(
    table: Table,
    workload: WorkloadLike | None = None,
    *,
    epsilon: float,
    history: HistoryLike | None = None,
    augment: int = 0,
    delta: float | None = None,
    mechanism: str = "auto",
    rounds: int | None = None,
    per_round: int | None = None,
    rows: int | None = None,
    settings: Mapping[str, object] | None = None,
    public: Table | None = None,
    seed: int | None = None,
    workload_seed: int = 0,
    neighbours: str = "replace-one",
    rows_per_person: int = 1,
    certificate: float = 0.05,
    conversion: str | None = None,
    oversample: int | None = None,
    ledger: str | Path | None = None,
    ledger_epsilon: float | None = None,
    out: str | Path | None = None,
    progress: Progress = SILENT,
) -> Release:
    """Answer a workload about a private table, and make synthetic rows, under differential privacy.

    Args:
        table: Private; from `discreet.read`.
        workload: `all:3`, `random:3:64`, a file, a list: see `discreet.queries.parse`.
        epsilon: Privacy loss that may be spent.
        history: Past queries to learn the workload from, instead of `workload`; see `discreet.queries.history`. Public:
            it must not have been chosen by looking at the table.
        augment: Further thresholds of the kinds in the history, drawn at random by `workload_seed`.
        delta: Defaults to 1/n^2 under replace-one; must be given under add-remove, where n is private.
        mechanism: One of `discreet.mechanisms.catalogue`.
        rounds: T, for adaptive mechanisms.
        per_round: K, queries selected in each round.
        rows: n', relaxed rows of the model.
        settings: Further settings of the mechanism.
        public: A public table of the same schema, for pmw-pub, pep-pub and gem-pub (where it may lack attributes). It
            is published with the release in all but name, so it must not hold, or have been chosen by looking at,
            private rows.
        seed: Makes the release repeatable, for tests and experiments: whoever knows it can subtract the noise.
        workload_seed: For `random:k:m` workloads, and for `augment`.
        neighbours: replace-one or add-remove.
        rows_per_person: Most rows that one person has in the table.
        certificate: Share of the budget that measures the largest error; 0 to skip.
        conversion: From (epsilon, delta) to zCDP: tight or closed-form; the mechanism's own by default.
        oversample: Synthetic rows per relaxed row, or times the table's rows where rows are weighed; about as many rows
            as the table has by default.
        ledger: File shared by all releases of one table, so that their budgets add up.
        ledger_epsilon: Limit for all of them together, at this delta or a smaller one; fixed when the ledger is made.
        out: Folder to write; while the run goes on it says that it is unfinished and what was spent.
        progress: Hears how far it is.

    Raises:
        DiscreetError: Anything checkable is checked before the first charge.
    """
    relation = Neighbours(neighbours, rows_per_person)
    asked, foreseen = requested(table.domain, workload, history, augment, workload_seed)
    plan = _check_plan(
        table,
        workload=asked,
        mechanism=catalogue.find(mechanism),
        wanted=chosen(settings, rounds=rounds, per_round=per_round, rows=rows),
        guarantee=guaranteed(
            table.rows() if relation.total_is_public else None,
            epsilon=epsilon,
            delta=delta,
            conversion=conversion or catalogue.find(mechanism).conversion,
            neighbours=relation,
        ),
        certificate=certificate,
        oversample=oversample,
        seed=seed,
        public=public,
    )
    if out is not None:
        Folder.require_free(Path(out))
    ledgers = []
    if ledger_epsilon is not None:
        if ledger is None:
            raise BadSetting("--ledger-epsilon limits a shared ledger: name its file with --ledger.")
        _check.positive("ledger_epsilon", ledger_epsilon)
    if ledger is not None:
        limit = None if ledger_epsilon is None else Limit(ledger_epsilon, plan.guarantee.delta)
        if limit is not None and not (
            Path(ledger).is_file() and Path(ledger).stat().st_size
        ):  # or a limit would stay that this very run goes beyond
            Ledger(relation, limit=limit).require_room(plan.guarantee.rho, f"this release at epsilon {epsilon:g}")
        shared = Ledger(relation, path=Path(ledger), limit=limit, run=str(out or plan.mechanism.name))
        shared.require_room(plan.guarantee.rho, f"this release at epsilon {epsilon:g}")
        ledgers.append(shared)
    folder = None if out is None else Folder.claim(Path(out), plan.mechanism.name, plan.guarantee)
    if folder is not None:
        ledgers.insert(0, folder.open_ledger(relation))  # the shared one last: it may refuse
    entropy = source(seed)
    curator = Curator(
        table, budget=Budget(plan.guarantee.rho, ledgers), neighbours=relation, entropy=entropy, progress=progress
    )
    try:
        made = replace(run(plan, curator, entropy, progress), outlook=foreseen)
    except DiscreetError:
        if folder is not None and not curator.budget.charges:
            folder.discard()  # nothing was spent, so there is nothing to remember
        raise
    if folder is not None:
        folder.finish(made, progress)
    return made


def run(plan: Plan, curator: Curator, entropy: Entropy, progress: Progress = SILENT) -> Release:
    """Carry out a checked plan. The private table is reached through the curator only."""
    answers_rho, certificate_rho, total_rho = split(plan.guarantee.rho, plan.certificate, curator.neighbours)
    public = np.random.default_rng(int(entropy.words(1)[0]))  # drawn first: what follows may use any number of words
    if total_rho:
        curator.measure_total(rho=total_rho)
    progress.stage(f"{plan.mechanism.name}: {plan.workload.size:,} queries")
    job = Job(
        workload=plan.workload,
        rho=answers_rho,
        settings=plan.settings,
        public=None if plan.public is None else starting.codes(plan.domain, plan.public),
        seed=int(public.integers(2**31)),
        progress=progress,
    )
    outcome = plan.mechanism.run(curator, job)
    codes = synthetic.released(outcome.answers, plan.oversample, public)
    counted = None if codes is None else RoundedRows(plan.domain, curator.total, codes)
    certified = None
    if certificate_rho:
        certified = certify(curator, plan.workload, answers=outcome.answers, rows=counted, rho=certificate_rho)
    return Release(
        mechanism=plan.mechanism.name,
        settings=asdict(plan.settings),
        schema=plan.schema,
        workload=plan.workload,
        guarantee=plan.guarantee,
        charges=curator.budget.charges,
        answers=outcome.answers,
        measurements=outcome.measurements,
        codes=codes,
        certificate=certified,
        noise_seed=entropy.seed,
        notes=outcome.notes,
    )


def chosen(settings: Mapping[str, object] | None, **named: object) -> dict[str, object]:
    """All settings: those that have an argument of their own are given there or among the others."""
    given = {name: value for name, value in named.items() if value is not None}
    if twice := sorted(given.keys() & (settings or {}).keys()):
        raise BadSetting(f"{twice[0]} is given twice, by its own name and among the settings (--set): give it once.")
    return given | dict(settings or {})


def requested(
    domain: Domain, workload: WorkloadLike | None, history: HistoryLike | None, augment: int, seed: int
) -> tuple[Workload, Outlook | None]:
    """The workload, given or learned; public facts only."""
    if workload is not None and history is None:
        if augment:
            raise BadSetting("augment adds to a history of past queries: give one, or list the workload in full.")
        return parse.workload(workload, domain, seed=seed), None
    if history is None or workload is not None:
        raise BadSetting("Give either a workload, or a history of past queries to learn one from.")
    past = History.read(history, domain)
    learned = past.workload(augment=augment, seed=seed)
    return learned, outlook(past, learned)


def _check_plan(
    table: Table,
    *,
    workload: Workload,
    mechanism: Mechanism,
    wanted: Mapping[str, object],
    guarantee: Guarantee,
    certificate: float,
    oversample: int | None,
    seed: int | None,
    public: Table | None,
) -> Plan:
    _check.fraction("certificate", certificate)
    if oversample is not None:
        _check.whole("oversample", oversample)
    if seed is not None:
        _check.whole("seed", seed, least=0)
    if public is table:
        raise BadSetting("The public table is the private one, whose rows would be published; give another.")
    starting.check(mechanism, public, table.domain)
    settings = mechanism.settings_from(wanted)
    try:
        mechanism.check(workload, settings)
    except BadWorkload as error:
        raise BadWorkload(f"{error} {_instead(workload)}") from None
    share = Fraction(str(certificate))
    rho, *_ = split(guarantee.rho, share, guarantee.neighbours)
    mechanism.drawable(workload, settings, rho, guarantee.neighbours)
    return Plan(
        table.schema,
        workload,
        mechanism,
        settings,
        guarantee,
        share,
        oversample,
        public,
    )


def _instead(workload: Workload) -> str:
    """Where to turn with a workload that was refused."""
    others = catalogue.taking(workload) if len(workload) <= _MANY else []
    if not others:
        return "`discreet plan` says what other mechanisms make of it."
    return f"With their defaults these take it: {', '.join(others)}."


def split(rho: Fraction, certificate: Fraction, neighbours: Neighbours) -> tuple[Fraction, Fraction, Fraction]:
    """What of a budget pays for answers, for the certificate, and for the number of rows where that is private."""
    counted = Fraction(0) if neighbours.total_is_public else TOTAL_SHARE
    answers = 1 - certificate - counted
    if answers < _LEAST_SHARE or 0 < certificate < _LEAST_SHARE:
        least, most = float(_LEAST_SHARE), float(1 - counted - _LEAST_SHARE)
        raise BadSetting(
            f"The certificate may have between {least:g} and {most:.9g} of the budget"
            + (", since the number of rows is paid for too" if counted else "")
            + f", not {float(certificate):.10g}. Ask for 0 to have none."
        )
    return rho * answers, rho * certificate, rho * counted


def guaranteed(
    total: int | None, *, epsilon: float, delta: float | None, conversion: str, neighbours: Neighbours
) -> Guarantee:
    """What is promised; `total` is the number of rows, None where that is private."""
    _check.positive("epsilon", epsilon)
    _check.one_of("conversion", conversion, CONVERSIONS)
    if delta is None:
        if total is None:
            raise BadSetting(
                "Under add-remove the number of rows is private, so delta cannot default to 1/n^2: give --delta, "
                "well below one over the number of people (1e-9, say)."
            )
        if total < 2:
            raise BadData("delta defaults to 1/n^2, which needs a table of at least two rows; give delta.")
        delta = 1 / total**2
    elif total == 0:
        raise BadData("The table has no rows, so there is nothing to release.")
    rho = rho_of(epsilon, delta, conversion=conversion)
    if neighbours.single**2 > 2 * rho * _WIDEST**2:
        raise BadSetting(
            f"Epsilon {epsilon:g} at delta {delta:.3g} is too little for anything: noise on a single count would be "
            f"{neighbours.single / sqrt(2 * rho):.2g} rows. Ask for more."
        )
    return Guarantee(epsilon, delta, rho, conversion, neighbours)
