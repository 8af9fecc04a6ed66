"""Expected largest errors, against what is drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.tables import DOMAIN, random_table

from discreet.mechanisms import machine, residual
from discreet.mechanisms.catalogue import catalogue
from discreet.mechanisms.expected import of_fit, of_noise, of_others
from discreet.mechanisms.facts import Facts
from discreet.mechanisms.job import Job
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.progress import SILENT
from discreet.queries import parse

RHO = Fraction(1, 50)


@pytest.mark.parametrize("noise", [[(1.0, 10)], [(2.0, 5000)], [(1.0, 10_000), (3.0, 20)]])
def test_the_largest_of_some_normal_deviates(noise: list[tuple[float, int]]) -> None:
    draws = np.random.default_rng(0)
    scale = np.concatenate([np.full(many, sigma) for sigma, many in noise])
    found = np.mean([np.abs(draws.normal(scale=scale)).max() for _ in range(400)])
    assert of_noise(noise) == pytest.approx(found, rel=0.05)


def test_no_noise_no_error() -> None:
    assert of_noise([(0.0, 10)]) == 0
    assert of_noise([]) == 0


def test_rules_of_thumb_stay_below_one() -> None:
    assert of_fit(100.0) == 1
    assert of_others("mwem", 0.9) == 1
    assert of_fit(0.001) < of_fit(0.01) < of_others("pep", of_fit(0.01))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("objective", residual.OBJECTIVES)
def test_the_variances_of_a_plan_are_those_of_the_release(relation: str, objective: str) -> None:
    workload, neighbours = parse.workload("all:2", DOMAIN), Neighbours(relation)
    curator = Curator(random_table(50), budget=Budget(Fraction(1)), neighbours=neighbours, entropy=SeededEntropy(0))
    if not neighbours.total_is_public:
        curator.measure_total(rho=Fraction(1, 2))
    job = Job(workload, RHO, residual.Settings(objective), None, 0, SILENT)
    answers = residual.run(curator, job).answers
    answers.total_variance = 0.0  # type: ignore[attr-defined]
    planned = residual.plan(workload, neighbours, objective=objective)
    foreseen = residual.variances(planned, workload.marginals, domain=DOMAIN, neighbours=neighbours, rho=RHO)
    for marginal in workload.marginals:
        assert foreseen[marginal] == pytest.approx(answers.variance(marginal), rel=1e-6)  # type: ignore[attr-defined]


def test_gaussian_noise_errs_as_foreseen() -> None:
    table, workload = random_table(400), parse.workload("all:2", DOMAIN)
    mechanism = catalogue()["gaussian"]
    foreseen = mechanism.forecast(Facts(workload, 400, Neighbours(), RHO, mechanism.settings_from({})))
    found = []
    for seed in range(200):
        curator = Curator(table, budget=Budget(RHO), neighbours=Neighbours(), entropy=SeededEntropy(seed))
        measured = mechanism.run(curator, Job(workload, RHO, None, None, 0, SILENT)).measurements
        exact = table.counts([each.threshold.attributes for each in measured])
        off = [each.counts - truth.dense(len(each.counts)) for each, truth in zip(measured, exact, strict=True)]
        found.append(np.abs(np.concatenate(off)).max() / 400)
    assert foreseen.cells == sum(len(each) for each in off)
    assert foreseen.largest_error == pytest.approx(np.mean(found), rel=0.06)


def test_the_machine_is_compared_quickly() -> None:
    assert 0.01 < machine.slowness() < 1000
