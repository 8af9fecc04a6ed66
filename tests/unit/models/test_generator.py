"""The generator answers like a distribution, moves towards what was measured, stops, and learns from public rows."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest

from discreet.data.domain import UNKNOWN, Domain
from discreet.models import generator, projection
from discreet.models.generator import Generator, GeneratorSettings
from discreet.privacy.measurement import Measurement
from discreet.queries.threshold import Threshold

DOMAIN = Domain([("a", 3), ("b", 2), ("c", 4)])
FAST = GeneratorSettings(rate=0.01, steps=300)
PAIR = ("a", "b")
COUNTS = np.array([400, 100, 0, 250, 50, 200])


def small(seed: int = 0) -> Generator:
    return generator.start(DOMAIN, rows=60, inputs=8, hidden=(16, 16), seed=seed)


def rows_of(made: Generator) -> np.ndarray:
    return np.asarray(generator.probabilities(DOMAIN, made.network, made.noise))


def pair_of(made: Generator) -> np.ndarray:
    x = rows_of(made)
    return np.asarray((x[0:3, None] * x[None, 3:5]).mean(axis=2).reshape(-1))


def test_rows_are_probabilities_and_differ() -> None:
    x = rows_of(small())
    for start, size in zip(DOMAIN.offsets, DOMAIN.sizes, strict=True):
        assert np.allclose(x[start : start + size].sum(axis=0), 1, atol=1e-5)
    assert (x.std(axis=1) > 0.01).all()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("resample", [True, False])
def test_training_comes_within_gamma_of_what_was_measured_and_stops(whole: bool, resample: bool) -> None:
    cells = None if whole else np.arange(6)
    measured = Measurement(Threshold(PAIR), cells, COUNTS, Fraction(1))
    targets = projection.targets_of(DOMAIN, [measured], 1000)
    settings = GeneratorSettings(FAST.rate, FAST.steps, resample)
    made, steps = generator.train(DOMAIN, small(), targets, gamma=0.02, settings=settings)
    assert 0 < steps < settings.steps
    assert np.abs(pair_of(made) - COUNTS / 1000).max() < (0.06 if resample else 0.02)
    again, more = generator.train(DOMAIN, made, targets, gamma=0.5, settings=settings)
    assert more == 0
    assert all(jnp.array_equal(one, two) for one, two in zip(again.last, made.last, strict=True))


def test_public_rows_are_learned_and_what_they_lack_is_left_alone() -> None:
    codes = np.repeat(np.indices((3, 2)).reshape(2, -1).T, COUNTS, axis=0)
    public = np.column_stack([codes, np.full(len(codes), UNKNOWN)])
    begun = small()
    made = generator.learn(DOMAIN, begun, public, settings=FAST, seed=1)
    assert np.abs(pair_of(made) - COUNTS / 1000).max() < 0.03
    moved = np.abs(rows_of(made) - rows_of(begun)).mean(axis=1)
    assert moved[:5].min() > 0.05
    assert np.abs(np.asarray(made.last[0] - begun.last[0]))[5:].max() == 0
