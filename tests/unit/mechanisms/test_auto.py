"""Settings of `auto`, and how far its fits go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.tables import random_table

from discreet.data.domain import Domain
from discreet.errors import BadSetting
from discreet.mechanisms import auto
from discreet.mechanisms.allotment import needed
from discreet.mechanisms.job import Job
from discreet.models import fit, smooth
from discreet.models.fit import FitSettings
from discreet.models.targets import Target
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.loss import rho_of
from discreet.privacy.neighbours import Neighbours
from discreet.progress import SILENT
from discreet.queries import parse


def test_what_is_measured_is_one_of_three() -> None:
    assert auto.Settings(measures="residuals").measures == "residuals"
    with pytest.raises(BadSetting, match="measures"):
        auto.Settings(measures="everything")


def constants(sizes: dict[str, int]) -> FitSettings:
    workload = parse.workload("all:3", Domain(sizes))
    return auto.constants_of(workload.domain, needed(workload))


def test_fits_are_calmer_and_end_earlier_where_marginals_have_few_cells() -> None:
    assert constants({f"a{at}": 16 for at in range(5)}) == auto.CALM  # of 4,096 cells each
    assert constants({f"a{at}": 17 for at in range(5)}) == auto.FIT
    assert constants({"a": 10, "b": 10, "c": 10, "zip": 1000}) == auto.FIT  # a few large ones count


def fitted(monkeypatch: pytest.MonkeyPatch, measures: str) -> set[tuple[str, ...]]:
    """Marginals that rows are fitted to, with the constants of a table of few cells."""
    domain = Domain({"a": 3, "b": 3, "c": 4, "d": 2})
    rho = rho_of(1.0, 1e-6)
    curator = Curator(
        random_table(500, domain=domain), budget=Budget(rho), neighbours=Neighbours(), entropy=SeededEntropy(0)
    )
    seen: set[tuple[str, ...]] = set()
    settings = auto.Settings(rows=20, max_steps=8, measures=measures)
    original_fit, original_calm = fit.fit, smooth.calm

    def watched_fit(domain: Domain, logits: Any, targets: Any, **rest: Any) -> Any:
        assert rest["settings"] == replace(auto.CALM, max_steps=8)
        seen.update(target.attributes for target in targets)
        return original_fit(domain, logits, targets, **rest)

    def watched_calm(target: Target, shifts: tuple[float, float]) -> Target:
        assert shifts == auto.CALM.shifts != auto.FIT.shifts
        return original_calm(target, shifts)

    monkeypatch.setattr(fit, "fit", watched_fit)
    monkeypatch.setattr(smooth, "calm", watched_calm)
    auto.run(curator, Job(parse.workload("all:3", domain), rho, settings, None, 0, SILENT))
    return seen


def test_rows_are_fitted_to_what_holds_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(fitted(monkeypatch, "marginals")) == 4 + 6 + 4
    assert {len(names) for names in fitted(monkeypatch, "residuals")} == {1, 3}


def test_where_only_a_part_of_a_marginal_is_fitted_so_is_what_lies_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "CALM", replace(auto.CALM, large=30))
    pairs = {names for names in fitted(monkeypatch, "residuals") if len(names) == 2}
    assert pairs == {("a", "b"), ("a", "c"), ("b", "c")}  # of a, b, c, which has 36 cells; the others have at most 24


def test_a_budget_whose_noise_residuals_cannot_have_is_spent_on_marginals() -> None:
    """Under add-remove a refusal would come after the number of rows was paid for."""
    domain = Domain({"a": 2, "b": 2, "c": 2})
    rho = rho_of(1e-10, 1e-30)
    entropy, relation = SeededEntropy(0), Neighbours("add-remove")
    curator = Curator(random_table(50, domain=domain), budget=Budget(2 * rho), neighbours=relation, entropy=entropy)
    curator.measure_total(rho=rho)
    job = Job(parse.workload("all:3", domain), rho, auto.Settings(rows=20, max_steps=8), None, 0, SILENT)
    assert not any(found.residual for found in auto.run(curator, job).measurements)
