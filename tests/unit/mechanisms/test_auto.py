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
from discreet.models import fit
from discreet.models.fit import FitSettings
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


def test_fits_go_on_for_longer_where_most_cells_are_light() -> None:
    assert constants({f"a{at}": 18 for at in range(5)}).overrun == 1.2  # ten marginals of 5,832 cells
    assert constants({f"a{at}": 19 for at in range(5)}).overrun == auto.FIT.overrun == 1.4  # of 6,859
    assert constants({"a": 10, "b": 10, "c": 10, "zip": 1000}).overrun == 1.4  # a few large ones count


def test_large_residuals_pull_more_strongly_where_marginals_have_many_cells() -> None:
    few, many = (constants({f"a{at}": size for at in range(12)}) for size in (16, 17))
    assert (few.emphasis, few.shifts, few.overrun) == (0.0, (0.3, -0.3), 1.4)  # of 4,096 cells each
    assert (many.emphasis, many.shifts, many.overrun) == (5.0, (0.5, -0.5), 1.4)


def fitted(monkeypatch: pytest.MonkeyPatch, measures: str) -> set[tuple[str, ...]]:
    """Marginals that rows are fitted to."""
    domain = Domain({"a": 3, "b": 3, "c": 4, "d": 2})
    rho = rho_of(1.0, 1e-6)
    curator = Curator(
        random_table(500, domain=domain), budget=Budget(rho), neighbours=Neighbours(), entropy=SeededEntropy(0)
    )
    seen: set[tuple[str, ...]] = set()
    original = fit.fit

    def watched(domain: Domain, logits: Any, targets: Any, **rest: Any) -> Any:
        seen.update(target.attributes for target in targets)
        return original(domain, logits, targets, **rest)

    monkeypatch.setattr(fit, "fit", watched)
    settings = auto.Settings(rows=20, max_steps=8, measures=measures)
    auto.run(curator, Job(parse.workload("all:3", domain), rho, settings, None, 0, SILENT))
    return seen


def test_rows_are_fitted_to_what_holds_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(fitted(monkeypatch, "marginals")) == 4 + 6 + 4
    assert {len(names) for names in fitted(monkeypatch, "residuals")} == {1, 3}


def test_where_only_a_part_of_a_marginal_is_fitted_so_is_what_lies_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "FIT", replace(auto.FIT, large=30))
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
