"""Rows are cut up by attribute, and gradients are put together again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.models import transform

DOMAIN = Domain({"a": 3, "b": 2, "c": 4})
X = jax.random.normal(jax.random.key(1), (DOMAIN.bits, 5))


def weighed(blocks: transform.Blocks) -> jax.Array:
    return jnp.sum(jnp.stack([jnp.sum((at + 1) * block**2) for at, block in enumerate(blocks)]))


def test_blocks_are_the_values_of_one_attribute_each() -> None:
    assert [block.shape for block in transform.blocks(DOMAIN, X)] == [(3, 5), (2, 5), (4, 5)]
    assert np.array_equal(jnp.concatenate(transform.blocks(DOMAIN, X)), X)


def test_gradients_are_those_of_slices() -> None:
    sliced = jax.grad(lambda x: weighed([x[:3], x[3:5], x[5:]]))(X)
    np.testing.assert_allclose(jax.grad(lambda x: weighed(transform.blocks(DOMAIN, x)))(X), sliced, rtol=1e-6)
    assert np.abs(sliced).min() > 0


@pytest.mark.parametrize("kind", ["sparsemax", "softmax"])
def test_every_attribute_is_a_distribution(kind: str) -> None:
    found = transform.per_attribute(DOMAIN, getattr(transform, kind), X)
    for block in transform.blocks(DOMAIN, found):
        assert block.min() >= 0
        np.testing.assert_allclose(block.sum(axis=0), 1, rtol=1e-6)
