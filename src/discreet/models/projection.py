"""Relaxed projection as published: fit relaxed rows to single noisy queries by projected Adam.

Reference: Aydore et al. (2021), Algorithm 1 and section 5.1; Avent and Korolova (2023), Algorithm 3 and, for
thresholds with r < k, Definition 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from discreet.data.domain import Domain
from discreet.models import tiles, transform
from discreet.models.tiles import Bucket
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
        tolerance: Stop when the loss changes by less than this, relative to itself, in one step.
        transform: sparsemax, softmax or box.
    """

    rate: float = 0.001
    steps: int = 5000
    tolerance: float = 1e-7
    transform: str = "sparsemax"


class _Queries(NamedTuple):
    """Single queries: the bits each names, coefficients of their symmetric polynomials, and noisy fractions."""

    bits: jax.Array
    coefficient: jax.Array
    target: jax.Array


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
) -> tuple[jax.Array, int]:
    """Relaxed rows whose answers come closest to the measured ones in squared distance, and the steps it took."""
    targets = _targets(domain, measurements, total)
    state: Any = (parameters, jnp.zeros_like(parameters), jnp.zeros_like(parameters), 0, jnp.inf, False)
    progress.stage("projection", settings.steps)
    while int(state[3]) < settings.steps and not bool(state[5]):
        limit = min(settings.steps, int(state[3]) + _STRETCH)
        state = _stretch(domain, settings, state, limit, targets)
        progress.step(int(state[3]))
        progress.fitted(float(state[4]), partial(probabilities, domain, state[0], settings.transform))
    return jnp.asarray(state[0]), int(state[3])


def _targets(domain: Domain, measurements: Sequence[Measurement], total: int) -> _Queries | list[Bucket]:
    """Whole marginals become tiles, single queries become arrays; a fit has one or the other."""
    if all(found.cells is None for found in measurements):
        return tiles.pack(domain, measurements, total=total, seed=0).buckets
    return _queries(domain, measurements, total)


def _queries(domain: Domain, measurements: Sequence[Measurement], total: int) -> _Queries:
    """Measured queries as arrays, padded so that few shapes are ever compiled.

    Each query becomes the one-hot bits it names (padded with a bit that is always zero) and coefficients of the
    elementary symmetric polynomials of those bits; a zero entry changes none of them, and a padding query has
    coefficients and target zero.
    """
    width = max(len(found.threshold.attributes) for found in measurements)
    bits, coefficients, noisy = [], [], []
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
        noisy.append(found.counts / total)
    many = sum(len(part) for part in noisy)
    padding = (1 << max(5, (many - 1).bit_length())) - many
    index = np.pad(np.concatenate(bits), ((0, padding), (0, 0)), constant_values=domain.bits)
    coefficient = np.pad(np.concatenate(coefficients), ((0, padding), (0, 0)))
    return _Queries(
        jnp.asarray(index, dtype=jnp.int32),
        jnp.asarray(coefficient, dtype=jnp.float32),
        jnp.asarray(np.pad(np.concatenate(noisy), (0, padding)), dtype=jnp.float32),
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


def _pull(x: jax.Array, targets: _Queries | list[Bucket]) -> tuple[jax.Array, jax.Array]:
    """Squared distance of the answers to their targets, and its gradient."""
    if isinstance(targets, _Queries):

        def loss(x: jax.Array) -> jax.Array:
            return jnp.sum((answers(x, targets.bits, targets.coefficient) - targets.target) ** 2)

        return jax.value_and_grad(loss)(x)
    padded = tiles.with_constants(x)
    parts = [tiles.pull(padded, bucket, jnp.arange(len(bucket.y)), (0.0,)) for bucket in targets]
    value = jnp.sum(jnp.stack([loss for loss, _ in parts]))
    return value, jnp.sum(jnp.stack([half for _, half in parts]), axis=0)[:-2] * (2 / x.shape[1])


@partial(jax.jit, static_argnums=(0, 1))
def _stretch(
    domain: Domain, settings: ProjectionSettings, state: Any, limit: int, targets: _Queries | list[Bucket]
) -> Any:
    """Projected Adam steps up to a limit, or until the loss stalls."""
    keep = None if settings.transform == "softmax" else getattr(transform, settings.transform)

    def step(state: Any) -> Any:
        parameters, mean, square, number, before, _ = state
        x, back = jax.vjp(lambda free: probabilities(domain, free, settings.transform), parameters)
        value, outer = _pull(x, targets)
        (gradient,) = back(outer)
        number = number + 1
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = settings.rate * jnp.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        parameters = parameters - rate * mean / (jnp.sqrt(square) + 1e-8)
        if keep is not None:
            parameters = transform.per_attribute(domain, keep, parameters)
        stalled = jnp.isfinite(before) & (jnp.abs(before - value) < settings.tolerance * before)
        return parameters, mean, square, number, value, stalled

    return jax.lax.while_loop(lambda state: (state[3] < limit) & ~state[5], step, state)
