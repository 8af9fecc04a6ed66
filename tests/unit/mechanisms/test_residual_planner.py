"""ResidualPlanner: its plans are the best, and its releases are consistent, stored and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.readable import small_table

from discreet.data.domain import Domain
from discreet.data.table import read
from discreet.errors import BadSetting, BadWorkload
from discreet.mechanisms.residual import Settings, check, plan
from discreet.models.residuals import ResidualCounts, share, subsets
from discreet.privacy.neighbours import Neighbours
from discreet.publish.make import release
from discreet.publish.release import Release
from discreet.queries import parse
from discreet.queries.parse import WorkloadLike
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload

DOMAIN = Domain({"a": 2, "b": 3, "c": 5, "d": 2, "one": 1})
WORKLOADS: list[WorkloadLike] = [
    "all:3",
    "all:2",
    "a, b; b, c, d; c",
    [{"attributes": ["a", "b"], "weight": 5}, {"attributes": ["c"]}],
]


def variances(workload: Workload, planned: Mapping[Attributes, float], neighbours: Neighbours) -> list[float]:
    """Of a cell of each marginal, times the square of its weight, at a cost of one that each residual pays alone."""
    domain = workload.domain
    alone = [float(neighbours.residual_squared(domain.project(names).sizes)) for names in planned]
    cost = sum(each * precision for each, precision in zip(alone, planned.values(), strict=True))
    noise = {names: cost / precision for names, precision in planned.items()}
    return [
        weight**2 * sum(noise[names] * share(domain, names, marginal) for names in subsets(domain, marginal))
        for marginal, weight in workload.marginals.items()
    ]


def total(workload: Workload, planned: Mapping[Attributes, float], neighbours: Neighbours) -> float:
    sizes = [workload.domain.project(marginal).size for marginal in workload.marginals]
    return float(np.dot(variances(workload, planned, neighbours), sizes))


def largest(workload: Workload, planned: Mapping[Attributes, float], neighbours: Neighbours) -> float:
    return max(variances(workload, planned, neighbours))


@pytest.mark.parametrize("asked", WORKLOADS, ids=str)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("objective", ["total", "largest"])
def test_no_other_plan_is_better(asked: WorkloadLike, relation: str, objective: str) -> None:
    workload, neighbours, rng = parse.workload(asked, DOMAIN), Neighbours(relation), np.random.default_rng(0)
    value = {"total": total, "largest": largest}[objective]
    best = plan(workload, neighbours, objective=objective)
    least = value(workload, best, neighbours)
    slack = 1e-6 if objective == "total" else 2e-3
    for spread in (0.01, 0.1, 0.5):
        for _ in range(20):
            other = np.array(list(best.values())) * np.exp(rng.normal(0, spread, len(best)))
            assert value(workload, dict(zip(best, other.tolist(), strict=True)), neighbours) > least * (1 - slack)
    second = plan(workload, neighbours, objective="largest" if objective == "total" else "total")
    assert value(workload, second, neighbours) >= least * (1 - slack)


def test_extreme_weights_leave_a_plan_that_can_be_measured() -> None:
    workload = parse.workload(
        [{"attributes": ["a", "b"], "weight": 1e100}, {"attributes": ["c"], "weight": 1e91}], DOMAIN
    )
    for objective in ("total", "largest"):
        precisions = list(plan(workload, Neighbours(), objective=objective).values())
        assert max(precisions) == 1 and min(precisions) > 0


def test_a_release_is_read_back_with_its_variances(tmp_path: Path) -> None:
    table = small_table(800)
    made = release(
        table,
        "all:2",
        epsilon=1.0,
        delta=1e-6,
        mechanism="residual-planner",
        neighbours="add-remove",
        seed=0,
        out=tmp_path / "out",
    )
    again = Release.open(tmp_path / "out")
    assert isinstance(made.answers, ResidualCounts) and isinstance(again.answers, ResidualCounts)
    assert made.answers.total_variance > 0
    for marginal in made.workload.marginals:
        assert np.array_equal(made.answers.units(marginal).values, again.answers.units(marginal).values)
        assert made.answers.variance(marginal) == again.answers.variance(marginal)
        assert made.answers.variance(marginal[::-1]) == made.answers.variance(marginal)
    assert all(found.residual for found in again.measurements)
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "the answers are put together from them: the noise is the error" in report
    described = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    assert described["notes"]["residuals"] == len(made.measurements) == 10
    assert Fraction(described["measurements"][0]["sigma_squared"]) == made.measurements[0].sigma_squared
    with pytest.raises(BadWorkload, match="was not measured"):
        again.answer("all:3")


def test_attributes_of_one_value_only_cost_nothing() -> None:
    table = read(pa.table({"x": [0] * 20, "y": [0] * 20}), schema={"x": 1, "y": 1})
    made = release(table, "all:2", epsilon=1.0, mechanism="residual-planner", certificate=0, seed=0)
    assert not made.charges
    assert made.answer("x=0, y=0") == 1.0


@pytest.mark.parametrize(
    ("sizes", "asked"),
    [
        ({"a": 2**14, "b": 2**14}, "all:2"),
        ({f"a{at}": 2 for at in range(20)}, "all:20"),
        ({f"a{at}": 300 for at in range(5)}, "all:3"),
    ],
)
def test_workloads_with_too_many_residuals_are_refused(sizes: dict[str, int], asked: str) -> None:
    with pytest.raises(BadWorkload, match="can be measured whole"):
        check(parse.workload(asked, Domain(sizes)), Settings())


def test_objectives_have_names() -> None:
    with pytest.raises(BadSetting, match="total, largest"):
        Settings(objective="mean")
