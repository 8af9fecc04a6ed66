"""Planning: what each mechanism would take and how far it would err, before anything is spent.

Public facts only: the domain, the workload, the budget, settings, and the number of rows where that is public. The
table is asked for its number of rows and nothing else; where that is private too, a guess stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet import _check
from discreet.data.schema import Schema
from discreet.data.table import Table
from discreet.errors import BadSetting, DiscreetError
from discreet.mechanisms import catalogue, machine
from discreet.mechanisms.catalogue import Mechanism
from discreet.mechanisms.facts import Facts
from discreet.privacy.neighbours import Neighbours
from discreet.publish import starting
from discreet.publish.make import chosen, guaranteed, requested, split
from discreet.queries.history import HistoryLike
from discreet.queries.parse import WorkloadLike
from discreet.queries.workload import Workload


@dataclass(frozen=True)
class Forecast:
    """What one mechanism would take; approximate.

    Attributes:
        mechanism: Its name.
        cells: Numbers that it would measure.
        bytes: Peak memory of the process.
        seconds: On this machine, without reading the table and writing the release.
        largest_error: Expected, as a fraction of the rows. From the noise itself where answers are noise; elsewhere a
            rule of thumb.
        refused: Why it does not apply; the figures are then None.
    """

    mechanism: str
    cells: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    largest_error: float | None = None
    refused: str | None = None


def plan(
    table: Table | Schema,
    workload: WorkloadLike | None = None,
    *,
    epsilon: float,
    delta: float | None = None,
    history: HistoryLike | None = None,
    augment: int = 0,
    mechanisms: Sequence[str] = (),
    rounds: int | None = None,
    per_round: int | None = None,
    rows: int | None = None,
    settings: Mapping[str, object] | None = None,
    public: Table | None = None,
    workload_seed: int = 0,
    neighbours: str = "replace-one",
    rows_per_person: int = 1,
    certificate: float = 0.05,
    conversion: str | None = None,
    people: int | None = None,
    slowness: float | None = None,
) -> list[Forecast]:
    """What a release would take and how far it would err, by each mechanism. Nothing is spent, and nothing counted.

    Args:
        table: Private; or its schema alone, if `people` is given.
        workload: As for `discreet.release`.
        epsilon: As for `discreet.release`, and so are `delta`, `history`, `augment`, `neighbours`, `rows_per_person`,
            `certificate`, `conversion` and `workload_seed`.
        delta: Defaults to 1/n^2 under replace-one; must be given under add-remove.
        history: Past queries, instead of a workload.
        augment: Thresholds added to those of a history.
        mechanisms: Which ones; all by default.
        rounds: T; like all settings, of every mechanism: one that lacks such a setting is refused.
        per_round: K, queries selected in each round.
        rows: n', relaxed rows of the model.
        settings: Further settings.
        public: A public table of the same schema, if there is one.
        workload_seed: For `random:k:m` workloads and `augment`.
        neighbours: replace-one or add-remove.
        rows_per_person: Most rows that one person has in the table.
        certificate: Share of the budget that measures the largest error; 0 to skip.
        conversion: tight or closed-form; each mechanism's own by default.
        people: Number of rows to plan for, a guess. It must be given under add-remove, where the number is private;
            the table is then not read at all.
        slowness: How slow the machine is that is planned for, as results of experiments say; this one by default.

    Returns:
        The smallest expected error first, and what does not apply last.
    """
    relation = Neighbours(neighbours, rows_per_person)
    _check.fraction("certificate", certificate)
    compared = [catalogue.find(name) for name in mechanisms or catalogue.catalogue()]
    asked, _ = requested(table.domain, workload, history, augment, workload_seed)
    many = _rows(table, relation, people)
    wanted = chosen(settings, rounds=rounds, per_round=per_round, rows=rows)
    promised = {
        each: guaranteed(
            many if relation.total_is_public else None,
            epsilon=epsilon,
            delta=delta,
            conversion=each,
            neighbours=relation,
        )
        for each in {conversion or mechanism.conversion for mechanism in compared}
    }
    slowness = machine.slowness() if slowness is None else slowness
    made = []
    for mechanism in compared:
        rho, certified, _ = split(
            promised[conversion or mechanism.conversion].rho, Fraction(str(certificate)), relation
        )
        try:
            facts = _facts(mechanism, asked, many, relation, rho, wanted, bool(certified), public)
            cost = mechanism.forecast(facts)
        except DiscreetError as error:
            made.append(Forecast(mechanism.name, refused=_first_sentence(str(error))))
            continue
        made.append(
            Forecast(mechanism.name, cost.cells, round(cost.bytes), cost.seconds * slowness, float(cost.largest_error))
        )
    return sorted(made, key=lambda one: (one.largest_error is None, one.largest_error or 0.0))


def _facts(
    mechanism: Mechanism,
    workload: Workload,
    rows: int,
    neighbours: Neighbours,
    rho: Fraction,
    settings: Mapping[str, object],
    certified: bool,
    public: Table | None,
) -> Facts:
    """The checks of a release, and what its cost follows from."""
    first = None if mechanism.public == "no" else public
    starting.check(mechanism, first, workload.domain)
    known = mechanism.settings_from(settings)
    mechanism.check(workload, known)
    mechanism.drawable(workload, known, rho, neighbours)
    return Facts(workload, rows, neighbours, rho, known, certified, 0 if first is None else first.rows())


def _rows(table: Table | Schema, neighbours: Neighbours, people: int | None) -> int:
    """How many rows to plan for."""
    if people is not None:
        _check.whole("people", people)
        return people
    if not neighbours.total_is_public:
        raise BadSetting(
            "Under add-remove the number of rows is private, so a plan must not look it up: give a guess with "
            "--people, from what is known without the table."
        )
    if isinstance(table, Schema):
        raise BadSetting("A schema does not say how many rows there are: give the table, or a guess with --people.")
    return table.rows()


def _first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence."""
    found = re.match(r".*?\.(?=\s|$)", text, re.DOTALL)
    return text if found is None else found[0]
