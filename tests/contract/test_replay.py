"""Nothing but the Curator's outputs depends on the private table.

A run on one table is recorded. The same run on a neighbouring table, with the recorded outputs handed out in place of
its own, must make identical charges, take the same way, state the same noise scales and write the same files. (That
the outputs themselves have close distributions is what the statistical tests and the docstrings' arguments are about.)
"""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.data.table import Table, read
from discreet.mechanisms import catalogue
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator, Signed
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.loss import rho_of
from discreet.privacy.measurement import Measurement, NoisyMaximum
from discreet.privacy.neighbours import Neighbours
from discreet.publish.make import Plan, run
from discreet.publish.release import Guarantee, Release
from discreet.queries import parse
from discreet.queries.threshold import Attributes, Query
from tests.contract.test_mechanisms import EVERY
from tests.readable import SCHEMA, small_rows


class Recorder(Curator):
    """Keeps what each verb returned, and the public arguments it was called with."""

    tape: list[Any]
    calls: list[tuple[str, str]]

    def _kept(self, verb: str, asked: object, result: Any) -> Any:
        self.tape.append(result)
        self.calls.append((verb, repr(asked)))
        return result

    def measure_total(self, **asked: Any) -> None:
        super().measure_total(**asked)
        self._noisy_total = self._kept("measure_total", asked, self._noisy_total)

    def measure(self, marginals: Any, **asked: Any) -> list[Measurement]:
        return list(self._kept("measure", (marginals, asked), super().measure(marginals, **asked)))

    def measure_sparse(self, marginals: Any, **asked: Any) -> list[Measurement]:
        return list(self._kept("measure_sparse", (marginals, asked), super().measure_sparse(marginals, **asked)))

    def measure_residuals(self, marginals: Any, **asked: Any) -> list[Measurement]:
        return list(self._kept("measure_residuals", (marginals, asked), super().measure_residuals(marginals, **asked)))

    def measure_queries(self, queries: Any, **asked: Any) -> list[Measurement]:
        return list(self._kept("measure_queries", (queries, asked), super().measure_queries(queries, **asked)))

    def select(self, workload: Any, **asked: Any) -> list[Query]:
        public = {key: value for key, value in asked.items() if key != "against"}
        return list(self._kept("select", (workload, public), super().select(workload, **asked)))

    def draw(self, workload: Any, **asked: Any) -> list[Signed]:
        public = {key: value for key, value in asked.items() if key != "against"}
        return list(self._kept("draw", (workload, public), super().draw(workload, **asked)))

    def select_marginals(self, marginals: Any, **asked: Any) -> list[Attributes]:
        public = {key: value for key, value in asked.items() if key != "against"}
        return list(self._kept("select_marginals", (marginals, public), super().select_marginals(marginals, **asked)))

    def worst(self, workload: Any, **asked: Any) -> NoisyMaximum:
        public = {key: value for key, value in asked.items() if key != "against"}
        found: NoisyMaximum = self._kept("worst", (workload, public), super().worst(workload, **asked))
        return found


class Player(Recorder):
    """Reads and charges for its own table, but hands out what another run returned."""

    heard: list[Any]

    def _kept(self, verb: str, asked: object, result: Any) -> Any:
        super()._kept(verb, asked, result)
        return self.heard[len(self.tape) - 1]


def neighbouring_tables(relation: str) -> tuple[Table, Table]:
    rows = small_rows(600)
    if relation == "add-remove":
        return read(rows, schema=SCHEMA), read(rows.slice(1), schema=SCHEMA)
    other = [*rows.slice(1).to_pylist(), {"age": 99, "sex": "Male", "income": None, "born": rows["born"][0].as_py()}]
    return read(rows, schema=SCHEMA), read(rows.from_pylist(other, schema=rows.schema), schema=SCHEMA)


def carry_out(kind: type[Recorder], table: Table, plan: Plan, heard: list[Any]) -> tuple[Recorder, Release]:
    entropy = SeededEntropy(5)
    curator = kind(table, budget=Budget(plan.guarantee.rho), neighbours=plan.guarantee.neighbours, entropy=entropy)
    curator.tape, curator.calls = [], []
    if isinstance(curator, Player):
        curator.heard = heard
    return curator, run(plan, curator, entropy)


@pytest.mark.parametrize("which", EVERY)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_neighbouring_table_leaves_the_same_trace(which: str, relation: str, tmp_path: Path) -> None:
    one, two = neighbouring_tables(relation)
    name, settings = EVERY[which]
    mechanism = catalogue.find(name)
    named = {key: value for key, value in settings.items() if key not in ("settings", "public")}
    wanted = named | settings.get("settings", {})
    guarantee = Guarantee(1.0, 1e-6, rho_of(1.0, 1e-6), "tight", Neighbours(relation))
    plan = Plan(
        schema=one.schema,
        workload=parse.workload("all:2", one.domain),
        mechanism=mechanism,
        settings=mechanism.settings_from(wanted),
        guarantee=guarantee,
        certificate=Fraction(1, 20),
        oversample=None,
        public=settings.get("public"),
    )
    recorder, first = carry_out(Recorder, one, plan, [])
    player, second = carry_out(Player, two, plan, recorder.tape)
    assert player.calls == recorder.calls
    assert [charge.to_json() for charge in first.charges] == [charge.to_json() for charge in second.charges]
    assert [m.sigma_squared for m in first.measurements] == [m.sigma_squared for m in second.measurements]
    first.save(tmp_path / "one")
    second.save(tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    for file in names:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file
    # The gate of the neighbour did read something else: the test would notice a table that is not read.
    assert pickle.dumps(recorder._counts) != pickle.dumps(player._counts)
