"""Compiled code does not pile up."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from discreet.models import compiled

MAPS = Path("/proc/self/maps")


@pytest.mark.skipif(not MAPS.exists(), reason="counts the memory maps of a process as Linux shows them")
def test_many_fits_of_new_shapes_do_not_fill_the_memory_map() -> None:
    @jax.jit
    def fitted(x: jax.Array) -> jax.Array:
        return jnp.sin(x @ x.T).sum()

    def maps_after(fits: range) -> int:
        for size in fits:
            compiled.trim()
            fitted(jnp.ones((size, size)))
        return len(MAPS.read_text().splitlines())

    start = maps_after(range(1, 3))
    few = maps_after(range(3, 35)) - start
    assert maps_after(range(35, 200)) - start < 3 * max(few, 50)
