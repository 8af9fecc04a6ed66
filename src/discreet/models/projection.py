"""Relaxed projection as published: fit relaxed rows to single noisy queries by projected Adam.

Reference: Aydore et al. (2021), Algorithm 1 and section 5.1; Avent and Korolova (2023), Algorithm 3 and, for
thresholds with r < k, section 4.2 (`discreet.models.surrogate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.models import compiled, surrogate, tiles, transform
from discreet.models.adam import Adam
from discreet.models.targets import targets as whole_marginals
from discreet.models.tiles import Bucket
from discreet.models.transform import Blocks
from discreet.privacy.measurement import Measurement
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


@partial(jax.tree_util.register_dataclass, data_fields=["bits", "target"], meta_fields=["r"])
@dataclass(frozen=True)
class Queries:
    """Single queries "at least r of k": the bits each names (queries x k), and noisy fractions."""

    r: int
    bits: jax.Array
    target: jax.Array


def start(domain: Domain, rows: int, kind: str, seed: int) -> Blocks:
    """Random relaxed rows, uniform on [-1, 1] before the transform, as published."""
    x = jax.random.uniform(jax.random.key(seed), (domain.bits, rows), minval=-1.0, maxval=1.0)
    return [block if kind == "softmax" else getattr(transform, kind)(block) for block in transform.blocks(domain, x)]


def probabilities(parameters: Blocks, kind: str) -> jax.Array:
    """The rows (bits x rows) that parameters stand for: themselves, unless they are logits."""
    return jnp.concatenate([transform.softmax(block) if kind == "softmax" else block for block in parameters])


def project(
    domain: Domain,
    parameters: Blocks,
    measurements: Sequence[Measurement],
    *,
    total: int,
    settings: ProjectionSettings,
    progress: Progress = SILENT,
) -> tuple[Blocks, int]:
    """Relaxed rows whose answers come closest to the measured ones in squared distance, and the steps it took."""
    compiled.trim()
    targets = targets_of(domain, measurements, total)
    state: Any = (parameters, Adam.start(parameters), jnp.float32(jnp.inf), jnp.bool_(False))
    progress.stage("projection", settings.steps)
    steps = 0
    while steps < settings.steps and not bool(state[3]):
        state = _stretch(settings, state, min(settings.steps, steps + _STRETCH), targets)
        steps = int(state[1].number)
        progress.step(steps)
        progress.fitted(float(state[2]), partial(probabilities, state[0], settings.transform))
    return state[0], steps


def targets_of(domain: Domain, measurements: Sequence[Measurement], total: int) -> list[Queries] | list[Bucket]:
    """Whole marginals become tiles, single queries become arrays; a fit has one or the other."""
    if all(found.cells is None for found in measurements):
        return tiles.pack(domain, whole_marginals(measurements, total=total, seed=0), seed=0).buckets
    return queries(domain, measurements, total)


def queries(domain: Domain, measurements: Sequence[Measurement], total: int) -> list[Queries]:
    """Measured queries as arrays, those of the same k and r together, padded so that few shapes are ever compiled.

    Padding names a bit that is always zero, where the answer and the target are zero.
    """
    kinds: dict[tuple[int, int], list[Measurement]] = {}
    for found in measurements:
        kinds.setdefault((len(found.threshold.attributes), found.threshold.r), []).append(found)
    packed = []
    for (_, r), same in sorted(kinds.items()):
        bits = np.concatenate([_bits(domain, found) for found in same])
        target = np.concatenate([found.counts / total for found in same])
        padding = (1 << max(5, (len(target) - 1).bit_length())) - len(target)
        index = np.pad(bits, ((0, padding), (0, 0)), constant_values=domain.bits)
        packed.append(
            Queries(r, jnp.asarray(index, dtype=jnp.int32), jnp.asarray(np.pad(target, (0, padding)), jnp.float32))
        )
    return packed


def _bits(domain: Domain, found: Measurement) -> NDArray[np.int64]:
    """The one-hot bits that each measured query names."""
    names = found.threshold.attributes
    cells = np.arange(len(found.counts)) if found.cells is None else found.cells
    offsets = np.array([domain.offsets[domain.index(name)] for name in names])
    bits: NDArray[np.int64] = domain.project(names).unravel(cells) + offsets
    return bits


def answers(x: jax.Array, asked: Queries) -> jax.Array:
    """Answers of relaxed rows (bits x rows) to single queries."""
    padded = jnp.concatenate([x, jnp.zeros((1, x.shape[1]), x.dtype)])
    factors = [padded[asked.bits[:, column]] for column in range(asked.bits.shape[1])]
    return jnp.mean(surrogate.at_least(asked.r, factors), axis=1)


def pull(x: jax.Array, targets: list[Queries] | list[Bucket]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Squared distance of the answers to their targets, its gradient, and the largest distance."""
    asked = [target for target in targets if isinstance(target, Queries)]
    if asked:

        def loss(x: jax.Array) -> tuple[jax.Array, jax.Array]:
            off = jnp.concatenate([answers(x, same) - same.target for same in asked])
            return jnp.sum(off**2), jnp.max(jnp.abs(off))

        (value, worst), gradient = jax.value_and_grad(loss, has_aux=True)(x)
        return value, gradient, worst
    padded = tiles.with_constants(x)
    buckets = [target for target in targets if isinstance(target, Bucket)]
    parts = [
        tiles.pull(padded, bucket, jnp.arange(len(bucket.y)), jnp.ones(len(bucket.y)), (0.0,)) for bucket in buckets
    ]
    value = jnp.sum(jnp.stack([part.loss for part in parts]))
    gradient = jnp.sum(jnp.stack([part.half for part in parts]), axis=0)[:-2] * (2 / x.shape[1])
    return value, gradient, jnp.max(jnp.stack([part.worst for part in parts]))


@partial(jax.jit, static_argnums=0)
def _stretch(settings: ProjectionSettings, state: Any, limit: int, targets: list[Queries] | list[Bucket]) -> Any:
    """Projected Adam steps up to a limit, or until the loss stalls."""
    keep = None if settings.transform == "softmax" else getattr(transform, settings.transform)

    def step(state: Any) -> Any:
        parameters, adam, before, _ = state
        x, back = jax.vjp(partial(probabilities, kind=settings.transform), parameters)
        value, outer, _ = pull(x, targets)
        (gradient,) = back(outer)
        parameters, adam = adam.step(parameters, gradient, settings.rate)
        if keep is not None:
            parameters = [keep(block) for block in parameters]
        stalled = jnp.isfinite(before) & (jnp.abs(before - value) < settings.tolerance * before)
        return parameters, adam, value, stalled

    return jax.lax.while_loop(lambda state: (state[1].number < limit) & ~state[3], step, state)
