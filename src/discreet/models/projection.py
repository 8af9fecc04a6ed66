"""Relaxed projection as published: fit relaxed rows to single noisy queries by projected Adam.

Reference: Aydore et al. (2021), Algorithm 1 and section 5.1; Avent and Korolova (2022), Algorithm 3 and, for
thresholds with r < k, Definition 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from discreet.data.domain import Domain
from discreet.models import transform
from discreet.privacy.curator import Measurement
from discreet.progress import SILENT, Progress

_STRETCH = 250
"""Steps between two reports of progress."""


@dataclass(frozen=True)
class ProjectionSettings:
    """Constants of the published optimisation.

    Attributes:
        rate: Adam's learning rate.
        steps: Most steps in one projection.
        tolerance: Stop when the loss improves by less than this, relative to itself, in one step.
        transform: sparsemax, softmax or box.
    """

    rate: float = 0.001
    steps: int = 5000
    tolerance: float = 1e-7
    transform: str = "sparsemax"


def start(domain: Domain, rows: int, kind: str, seed: int) -> jax.Array:
    """Random relaxed rows (bits x rows), uniform on [-1, 1] before the transform, as published."""
    x = jax.random.uniform(jax.random.key(seed), (domain.bits, rows), minval=-1.0, maxval=1.0)
    return x if kind == "softmax" else transform.per_attribute(domain, getattr(transform, kind), x)


def probabilities(domain: Domain, parameters: jax.Array, kind: str) -> jax.Array:
    """The rows that parameters stand for: themselves, unless they are logits."""
    return transform.per_attribute(domain, transform.softmax, parameters) if kind == "softmax" else parameters


def project(
    domain: Domain,
    parameters: jax.Array,
    measurements: Sequence[Measurement],
    *,
    total: int,
    settings: ProjectionSettings,
    progress: Progress = SILENT,
) -> jax.Array:
    """Relaxed rows whose answers come closest to the measured ones in squared distance."""
    queries = _queries(domain, measurements, total)
    state: Any = (parameters, jnp.zeros_like(parameters), jnp.zeros_like(parameters), 0, jnp.inf, False)
    progress.stage("projection", settings.steps)
    while int(state[3]) < settings.steps and not bool(state[5]):
        limit = min(settings.steps, int(state[3]) + _STRETCH)
        state = _stretch(domain, settings, state, limit, queries)
        progress.step(int(state[3]))
    return jnp.asarray(state[0])


def _queries(
    domain: Domain, measurements: Sequence[Measurement], total: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Measured queries as arrays, padded so that few shapes are ever compiled.

    Each query becomes the one-hot bits it names (padded with a bit that is always zero) and coefficients of the
    elementary symmetric polynomials of those bits; a zero entry changes none of them, and a padding query has
    coefficients and target zero.
    """
    width = max(len(found.threshold.attributes) for found in measurements)
    bits, coefficients, targets = [], [], []
    for found in measurements:
        threshold = found.threshold
        names = threshold.attributes
        cells = np.arange(len(found.counts)) if found.cells is None else found.cells
        offsets = [domain.offsets[domain.index(name)] for name in names]
        named = domain.project(names).unravel(cells) + np.array(offsets)
        bits.append(np.pad(named, ((0, 0), (0, width - len(names))), constant_values=domain.bits))
        polynomial = np.zeros(width + 1)
        for factor, subset in threshold.terms():
            polynomial[len(subset)] = factor
        coefficients.append(np.tile(polynomial, (len(cells), 1)))
        targets.append(found.counts / max(1, total))
    many = sum(len(target) for target in targets)
    padding = (1 << max(5, (many - 1).bit_length())) - many
    index = np.pad(np.concatenate(bits), ((0, padding), (0, 0)), constant_values=domain.bits)
    coefficient = np.pad(np.concatenate(coefficients), ((0, padding), (0, 0)))
    return (
        jnp.asarray(index, dtype=jnp.int32),
        jnp.asarray(coefficient, dtype=jnp.float32),
        jnp.asarray(np.pad(np.concatenate(targets), (0, padding)), dtype=jnp.float32),
    )


def answers(x: jax.Array, index: jax.Array, coefficient: jax.Array) -> jax.Array:
    """Answers of relaxed rows (bits x rows) to queries given as bits and polynomial coefficients."""
    padded = jnp.concatenate([x, jnp.zeros((1, x.shape[1]), x.dtype)])
    symmetric = [jnp.ones((index.shape[0], x.shape[1]), x.dtype)]
    for column in range(index.shape[1]):
        factor = padded[index[:, column]]
        raised = [lower * factor for lower in symmetric]
        symmetric = [
            symmetric[0],
            *(high + low for high, low in zip(symmetric[1:], raised[:-1], strict=True)),
            raised[-1],
        ]
    means = jnp.stack([jnp.mean(term, axis=1) for term in symmetric], axis=1)
    return jnp.sum(coefficient * means, axis=1)


@partial(jax.jit, static_argnums=(0, 1))
def _stretch(
    domain: Domain,
    settings: ProjectionSettings,
    state: Any,
    limit: int,
    queries: tuple[jax.Array, jax.Array, jax.Array],
) -> Any:
    """Projected Adam steps up to a limit, or until the loss stalls."""
    index, coefficient, target = queries
    keep = None if settings.transform == "softmax" else getattr(transform, settings.transform)

    def loss(parameters: jax.Array) -> jax.Array:
        rows = probabilities(domain, parameters, settings.transform)
        return jnp.sum((answers(rows, index, coefficient) - target) ** 2)

    def step(state: Any) -> Any:
        parameters, mean, square, number, before, _ = state
        value, gradient = jax.value_and_grad(loss)(parameters)
        number = number + 1
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = settings.rate * jnp.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        parameters = parameters - rate * mean / (jnp.sqrt(square) + 1e-8)
        if keep is not None:
            parameters = transform.per_attribute(domain, keep, parameters)
        stalled = jnp.isfinite(before) & (before - value < settings.tolerance * before)
        return parameters, mean, square, number, value, stalled

    return jax.lax.while_loop(lambda state: (state[3] < limit) & ~state[5], step, state)
