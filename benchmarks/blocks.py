"""Steps of the published projection on rows kept attribute by attribute, beside the same on one array."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.record import Context
from discreet.data.domain import Domain
from discreet.data.table import read
from discreet.models import projection, transform
from discreet.models.adam import Adam
from discreet.models.projection import ProjectionSettings, Queries

TABLES = ("nltcs", "adult", "loans")
QUERIES, ROWS, STEPS, REPEATS = 128, 1000, 20, 10


def run(context: Context) -> None:
    for name in TABLES:
        schema = context.data / f"{name}-domain.json"
        domain = read(context.data / f"{name}.csv", schema=schema).domain
        for kind in transform.NAMES:
            settings = ProjectionSettings(tolerance=0, transform=kind)
            asked = _asked(domain)
            cut = projection.start(domain, ROWS, kind, 0)
            ours = _seconds(partial(projection._stretch, settings), cut, asked)
            whole = _seconds(partial(_stretch, domain, settings), jnp.concatenate(cut), asked)
            print(f"{name}, {kind}: {1e3 * ours:.2f} ms a step; on one array {whole / ours:.1f} times as long")
            context.record("blocks", table=name, transform=kind, ours=ours, whole=whole)


def _asked(domain: Domain) -> list[Queries]:
    """Random three-way queries."""
    draws = np.random.default_rng(0)
    sets = [np.sort(draws.choice(len(domain), 3, replace=False)) for _ in range(QUERIES)]
    bits = [[domain.offsets[at] + draws.integers(domain.sizes[at]) for at in some] for some in sets]
    return [Queries(3, jnp.asarray(bits, jnp.int32), jnp.asarray(draws.random(QUERIES) / 10, jnp.float32))]


def _seconds(stretch: Callable[..., Any], parameters: Any, asked: list[Queries]) -> float:
    """Of the processor, for one step after compilation."""
    state = (parameters, Adam.start(parameters), jnp.float32(jnp.inf), jnp.bool_(False))
    taken = []
    for number in range(1 + REPEATS):
        began = time.process_time()
        state = stretch(state, (1 + number) * STEPS, asked)
        float(state[2])
        taken.append((time.process_time() - began) / STEPS)
    return min(taken[1:])


@partial(jax.jit, static_argnums=(0, 1))
def _stretch(domain: Domain, settings: ProjectionSettings, state: Any, limit: int, asked: list[Queries]) -> Any:
    """The same steps on one array, cut up and put together in each, with the compiler's own gradients of slices."""

    def each(function: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
        parts = zip(domain.offsets, domain.sizes, strict=True)
        return jnp.concatenate([function(x[start : start + size]) for start, size in parts])

    def step(state: Any) -> Any:
        parameters, adam, _, stalled = state
        logits = settings.transform == "softmax"
        x, back = jax.vjp(partial(each, transform.softmax) if logits else lambda x: x, parameters)
        value, outer, _ = projection.pull(x, asked)
        parameters, adam = adam.step(parameters, back(outer)[0], settings.rate)
        return parameters if logits else each(getattr(transform, settings.transform), parameters), adam, value, stalled

    return jax.lax.while_loop(lambda state: state[1].number < limit, step, state)
