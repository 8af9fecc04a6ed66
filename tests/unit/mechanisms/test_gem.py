"""What GEM adds to the loop: when a training stops, and what is released."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.mechanisms import gem
from discreet.mechanisms.gem import Settings
from discreet.mechanisms.job import Job
from discreet.models import generator
from discreet.privacy.measurement import Measurement
from discreet.progress import SILENT
from discreet.queries.answers import Answers, fractions
from discreet.queries.threshold import Threshold
from discreet.queries.workload import Workload

DOMAIN = Domain({"a": 2, "b": 3})
TOTAL = 1000


def model(rounds: int) -> gem._Gem:
    settings = Settings(rounds=rounds, rows=20, hidden="8", inputs=4)
    job = Job(Workload(DOMAIN, [Threshold(("a", "b"))]), Fraction(1), settings, None, 0, SILENT)
    return gem._Gem(DOMAIN, TOTAL, job)


def found(cell: int, count: int) -> Measurement:
    return Measurement(Threshold(("a", "b")), np.array([cell]), np.array([count]), Fraction(1))


def moved(weights: Any) -> Any:
    """Each value of an attribute by another step, or a softmax would not see it."""
    return 0.1 * np.arange(len(weights), dtype=np.float32)[:, None]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Trainings that move the last layer by `moved`; the gammas they were given."""
    gammas: list[float] = []

    def train(_: Domain, known: Any, targets: Sequence[Any], *, gamma: float, **more: Any) -> tuple[Any, int]:
        gammas.append(gamma)
        hidden, last = known.network
        return known.with_network((hidden, jax.tree.map(lambda weights: weights + moved(weights), last))), 7

    monkeypatch.setattr(generator, "train", train)
    return gammas


def test_what_is_released_is_a_moving_average_over_the_second_half_of_the_rounds(trained: list[float]) -> None:
    """Rounds 3 to 5 of 5 end at weights w + 3 s, w + 4 s and w + 5 s, w being those of the start, s a step."""
    made = model(rounds=5)
    first = np.asarray(made._generator.last[0])
    for at in range(5):
        made.fit([found(cell, 100) for cell in range(at + 1)], SILENT)
    assert made.notes()["steps"] == [7] * 5
    step = moved(first)
    averaged = 0.9 * (0.9 * (first + 3 * step) + 0.1 * (first + 4 * step)) + 0.1 * (first + 5 * step)
    assert np.asarray(made._average[1][0]) == pytest.approx(averaged, abs=1e-5)

    def cells(answers: Answers) -> np.ndarray:
        return fractions(answers, Threshold(("a", "b")))

    released = cells(made.published())
    assert released == pytest.approx(cells(made._publish(made._average)))
    assert np.abs(released - cells(made.answers())).max() > 0.01


def test_training_stops_at_half_of_a_moving_average_of_the_errors_that_were_found(trained: list[float]) -> None:
    made = model(rounds=3)
    errors, measurements = [], []
    for cell, count in ((0, 900), (1, -300), (2, 500)):
        measurements.append(found(cell, count))
        before = made._relaxed(made._generator.network).units(("a", "b")).dense(6)
        errors.append(abs(count / TOTAL - before[cell] / before.sum()))
        made.fit(measurements, SILENT)
    expected = [errors[0], (errors[0] + errors[1]) / 2, (errors[0] + errors[1]) / 4 + errors[2] / 2]
    assert trained == pytest.approx([error / 2 for error in expected], rel=1e-3)
    assert len(set(np.round(trained, 6))) == 3
