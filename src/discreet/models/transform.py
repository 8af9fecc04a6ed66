"""Transforms: what keeps relaxed rows where they belong. All work on blocks, one for each attribute (values x rows).

Loops keep a list of blocks and put them together (bits x rows) only where queries look values up. If the state of a
loop is one array, the compiler joins whatever is done to it with the blocks that it is made of, and finds out for every
number which block that comes from (`python -m benchmarks blocks`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from discreet.data.domain import Domain

NAMES = ("sparsemax", "softmax", "box")

Blocks = list[jax.Array]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def blocks(domain: Domain, x: jax.Array) -> Blocks:
    """Relaxed rows (bits x rows), attribute by attribute.

    Gradients are put together as they are; usually each would be padded to the size of all, and then added up.
    """
    return [x[start : start + size] for start, size in zip(domain.offsets, domain.sizes, strict=True)]


blocks.defvjp(lambda domain, x: (blocks(domain, x), None), lambda domain, _, gradients: (jnp.concatenate(gradients),))


def per_attribute(domain: Domain, function: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """Apply a function of (values x rows) to every attribute's block."""
    return jnp.concatenate([function(block) for block in blocks(domain, x)])


def softmax(block: jax.Array) -> jax.Array:
    """Positive probabilities from any real numbers."""
    return jax.nn.softmax(block, axis=0)


def box(block: jax.Array) -> jax.Array:
    """Each entry between 0 and 1; the entries of one attribute need not add up to anything."""
    return jnp.clip(block, 0.0, 1.0)


def sparsemax(block: jax.Array) -> jax.Array:
    """Euclidean projection of every column onto the probability simplex (Martins, Astudillo 2016).

    max(x - tau, 0) for the tau that makes the column add up to one. tau is found without sorting: starting from
    the mean over all entries, it only rises as entries below it drop out, and stops after few turns (Michelot
    1986).
    """

    def mean_above(tau: jax.Array) -> jax.Array:
        above = block > tau
        return (jnp.sum(jnp.where(above, block, 0.0), axis=0) - 1.0) / jnp.maximum(1, jnp.sum(above, axis=0))

    def turn(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        _, tau = state
        return tau, jnp.maximum(tau, mean_above(tau))

    start = (jnp.sum(block, axis=0) - 1.0) / block.shape[0]
    _, tau = jax.lax.while_loop(
        lambda state: jnp.any(state[0] != state[1]), turn, (jnp.full_like(start, -jnp.inf), start)
    )
    return jnp.maximum(block - tau, 0.0)
