"""Targets put together from residuals: exact without noise, and with noise of the stated size, shared as theirs is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from tests.tables import brute_force, random_table

from discreet.data.domain import Domain
from discreet.models.residuals import subsets
from discreet.models.targets import Target, joined
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.measurement import Measurement
from discreet.privacy.neighbours import Neighbours

DOMAIN = Domain({"a": 3, "b": 2, "c": 4})
TABLE = random_table(500, domain=DOMAIN)
EVERY = list(subsets(DOMAIN, DOMAIN.attributes))


def measured(rho: Fraction, seed: int = 0) -> list[Measurement]:
    curator = Curator(TABLE, budget=Budget(rho), neighbours=Neighbours(), entropy=SeededEntropy(seed))
    return curator.measure_residuals(EVERY, rho=rho, weights=[2.0, 1.0, 3.0, 1.0, 2.0, 1.0, 0.5])


def found(rho: Fraction, seed: int = 0) -> dict[tuple[str, ...], Target]:
    made = joined(DOMAIN, measured(rho), EVERY, total=500, seed=seed, calm=lambda target: target)
    return {target.attributes: target for target in made}


def test_without_noise_they_are_the_marginals() -> None:
    for names, target in found(Fraction(10**12)).items():
        assert np.allclose(target.y, brute_force(TABLE, names, len(names)) / 500, atol=1e-6)
        assert np.abs(target.z).max() < 1e-6


def test_noise_and_fresh_noise_agree_across_marginals() -> None:
    made = found(Fraction(1, 10))
    for values in ({names: target.y for names, target in made.items()}, {names: t.z for names, t in made.items()}):
        whole = values[DOMAIN.attributes].reshape(3, 2, 4)
        assert np.allclose(whole.sum(axis=1).reshape(-1), values["a", "c"], atol=1e-6)
        assert np.allclose(whole.sum(axis=(0, 2)), values["b",], atol=1e-6)
    assert made["a", "b"].z.std() > 1e-3


def test_fresh_noise_has_the_deviation_that_is_stated() -> None:
    runs = [found(Fraction(1, 10), seed) for seed in range(2000)]
    for names in EVERY:
        seen = np.mean([run[names].z.astype(float) ** 2 for run in runs])
        # At least 2000 squares of a normal deviate: five deviations of their mean are 0.16 of it.
        assert abs(seen / runs[0][names].sigma ** 2 - 1) < 0.16


def test_what_is_done_to_single_attributes_is_in_the_larger_ones_too() -> None:
    even = joined(
        DOMAIN,
        measured(Fraction(1, 10)),
        EVERY,
        total=500,
        seed=0,
        calm=lambda one: replace(one, y=np.full(one.y.size, 1 / one.y.size), z=np.zeros(one.y.size, np.float32)),
    )
    whole = even[-1]
    assert whole.attributes == DOMAIN.attributes
    for axis, size in enumerate(DOMAIN.sizes):
        away = tuple(other for other in range(3) if other != axis)
        assert np.allclose(whole.y.reshape(3, 2, 4).sum(axis=away), 1 / size)
        assert np.allclose(whole.z.reshape(3, 2, 4).sum(axis=away), 0, atol=1e-6)
    assert np.abs(whole.z).max() > 1e-3  # pairs are as they were
