"""Compiled code does not pile up, and is kept while there is little of it."""

import jax
import jax.numpy as jnp
import pytest

from discreet.models import compiled


def many_maps() -> int:
    return len(compiled._MAPS.read_bytes().splitlines())


@pytest.mark.skipif(not compiled._MAPS.exists(), reason="counts the memory maps of a process as Linux shows them")
def test_many_fits_of_new_shapes_do_not_fill_the_memory_map(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []

    @jax.jit
    def fitted(x: jax.Array) -> jax.Array:
        traced.append(len(x))
        return jnp.sin(x @ x.T).sum()

    def fits(sizes: range) -> None:
        for size in sizes:
            compiled.trim()
            fitted(jnp.ones((size, size)))

    fits(range(1, 20))
    fits(range(1, 20))
    assert len(traced) == 19  # the second time nothing is compiled
    start = many_maps()
    monkeypatch.setattr(compiled, "_MOST_MAPS", start + 100)
    fits(range(20, 200))
    assert many_maps() < start + 100 + 50 * compiled._FITS
