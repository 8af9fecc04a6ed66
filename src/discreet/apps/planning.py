"""`discreet plan`: what each mechanism would take and how far it would err, before anything is spent."""

from __future__ import annotations

import json
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict

from discreet.apps.commands import read_as_asked, require_another, setting
from discreet.data.schema import Schema
from discreet.data.table import Table, read
from discreet.mechanisms.catalogue import catalogue
from discreet.privacy.neighbours import Neighbours
from discreet.publish.make import requested
from discreet.publish.planning import Forecast
from discreet.publish.planning import plan as forecasts

_NOTE = """\
Memory and time are approximate; time is for one core of this machine, without reading and writing.
Errors of gaussian, gaussian-paper and residual-planner follow from their noise; others are rules of thumb."""


def plan(arguments: Namespace) -> None:
    """Print what to expect of each mechanism."""
    require_another(arguments)
    schema = Schema.load(arguments.schema)
    asked, _ = requested(
        schema.domain, arguments.workload, arguments.history, arguments.augment, arguments.workload_seed
    )
    told = forecasts(
        _source(arguments, schema),
        asked,
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        mechanisms=arguments.mechanism,
        rounds=arguments.rounds,
        per_round=arguments.per_round,
        rows=arguments.rows,
        settings=dict(map(setting, arguments.set)),
        public=None if arguments.public is None else read(arguments.public, schema=schema, part=True),
        neighbours=arguments.neighbours,
        rows_per_person=arguments.rows_per_person,
        certificate=arguments.certificate,
        conversion=arguments.conversion,
        people=arguments.people,
    )
    if arguments.json:
        print(json.dumps([asdict(one) for one in told], ensure_ascii=False))
        return
    print(f"{asked.size:,} queries of {len(asked)} thresholds at epsilon {arguments.epsilon:g}. Nothing is spent.")
    _print_applying([one for one in told if one.refused is None])
    _print_refused([one for one in told if one.refused is not None])


def _source(arguments: Namespace, schema: Schema) -> Table | Schema:
    """The table, where it may be asked for its number of rows and has to be."""
    public = Neighbours(arguments.neighbours, arguments.rows_per_person).total_is_public
    return read_as_asked(arguments.data, arguments, schema) if public and arguments.people is None else schema


def _print_applying(told: Sequence[Forecast]) -> None:
    if not told:
        return
    usual = next(iter(catalogue()))
    print(f"    {'mechanism':17} {'cells measured':>15} {'memory':>9} {'time':>9}   largest error")
    for one in told:
        assert one.bytes is not None and one.seconds is not None and one.largest_error is not None
        mark = "*" if one.mechanism == usual else " "
        print(
            f"  {mark} {one.mechanism:17} {one.cells:15,} {one.bytes / 1e9:6.2f} GB {_duration(one.seconds):>9}   "
            f"{'up to 1' if one.largest_error == 1 else f'{one.largest_error:.2g}'}"
        )
    if any(one.mechanism == usual for one in told):
        print("  * the default. The one on top is expected to err least.")
    print(textwrap.indent(_NOTE, " " * 4))


def _print_refused(told: Sequence[Forecast]) -> None:
    if told:
        print("These do not apply:")
    for one in told:
        print(
            textwrap.fill(f"{one.refused}", 116, initial_indent=f"    {one.mechanism:17} ", subsequent_indent=" " * 22)
        )


def _duration(seconds: float) -> str:
    """Two digits are more than is known."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
