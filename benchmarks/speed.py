"""rap against a plain implementation of the published algorithm, end to end and side by side.

The plain one is what the papers describe, written straightforwardly: relaxed rows in row-major order, products of
gathered columns, sparsemax by sorting after every step, a Gumbel draw for every query, the full Adam schedule of
5,000 steps in each of T = 16 rounds with K = 16 queries. It is stopped once it has taken `LIMIT` times as long as
rap, unless --full is given; the ratio printed is then a lower bound.
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmarks.record import Context, timed
from discreet.compare.errors import evaluate
from discreet.data.domain import Domain
from discreet.data.table import Table, read
from discreet.privacy.loss import rho_of
from discreet.publish.make import release
from discreet.queries import parse

ROUNDS = PER_ROUND = 16
STEPS, RATE, ROWS = 5000, 0.001, 1000
LIMIT = 12


def run(context: Context) -> None:
    for epsilon in (0.1, 1.0):
        with timed() as ours:
            table = read(context.adult, schema=context.adult_schema)
            made = release(table, "random:3:64", epsilon=epsilon, mechanism="rap", seed=0)
        error = evaluate(made, table)["max_error"]
        limit = float("inf") if context.full else LIMIT * ours.seconds
        with timed() as peer:
            done, steps = plain(table, epsilon, limit)
        bound = "" if done == ROUNDS else f"at least, stopped in round {done + 1} of {ROUNDS} after {steps:,} steps: "
        ratio = peer.seconds / ours.seconds
        print(
            f"epsilon {epsilon:g}: rap {ours.seconds:.1f} s (largest error {error:.4f}); "
            f"plain RAP {bound}{ratio:.1f} times as long"
        )
        context.record(
            "speed", epsilon=epsilon, ours=ours.seconds, plain=peer.seconds, rounds_done=done, steps=steps, ratio=ratio
        )


def plain(table: Table, epsilon: float, limit: float) -> tuple[int, int]:
    """The published algorithm; returns finished rounds and Adam steps taken."""
    began = time.perf_counter()
    domain, n = table.domain, table.rows()
    rng = np.random.default_rng(0)
    rho = float(rho_of(epsilon, 1 / n**2, conversion="closed-form")) / ROUNDS
    queries, truth = _explicit(table)
    x = _sparsemax(jnp.asarray(rng.uniform(-1, 1, (ROWS, domain.bits)), jnp.float32), domain)
    chosen: list[int] = []
    noisy: list[float] = []
    steps = 0
    for turn in range(ROUNDS):
        scores = np.abs(truth - _answers_in_blocks(x, queries)) + rng.gumbel(
            scale=(PER_ROUND / rho) ** 0.5 / n, size=len(truth)
        )
        scores[chosen] = -np.inf
        picked = np.argpartition(-scores, PER_ROUND)[:PER_ROUND]
        chosen += picked.tolist()
        noisy += (truth[picked] + rng.normal(scale=(PER_ROUND / rho) ** 0.5 / n, size=PER_ROUND)).tolist()
        index, target = jnp.asarray(queries[chosen]), jnp.asarray(noisy, jnp.float32)
        mean = square = jnp.zeros_like(x)
        for number in range(1, STEPS + 1):
            x, mean, square = _step(x, mean, square, jnp.float32(number), index, target, domain)
            steps += 1
            if number % 50 == 0:
                x.block_until_ready()
                if time.perf_counter() - began > limit:
                    return turn, steps
    return ROUNDS, steps


def _explicit(table: Table) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Every query of the workload as three one-hot bits, and its true answer."""
    workload = parse.workload("random:3:64", table.domain)
    bits, truth = [], []
    for threshold in workload:
        inner = table.domain.project(threshold.attributes)
        offsets = [table.domain.offsets[table.domain.index(name)] for name in threshold.attributes]
        bits.append((inner.unravel(np.arange(inner.size)) + offsets).astype(np.int32))
        truth.append(table.count(threshold.attributes).dense(inner.size) / table.rows())
    return np.concatenate(bits), np.concatenate(truth)


@jax.jit
def _answers(x: jax.Array, index: jax.Array) -> jax.Array:
    return jnp.mean(x[:, index[:, 0]] * x[:, index[:, 1]] * x[:, index[:, 2]], axis=0)


def _answers_in_blocks(x: jax.Array, queries: NDArray[np.int32]) -> NDArray[np.float64]:
    block = 2**14
    padded = np.pad(queries, ((0, -len(queries) % block), (0, 0)))
    parts = [np.asarray(_answers(x, jnp.asarray(padded[at : at + block]))) for at in range(0, len(padded), block)]
    return np.concatenate(parts)[: len(queries)].astype(np.float64)


def _sparsemax(x: jax.Array, domain: Domain) -> jax.Array:
    """Projection onto the simplex by sorting, attribute by attribute."""
    blocks = []
    for start, size in zip(domain.offsets, domain.sizes, strict=True):
        block = x[:, start : start + size]
        ordered = -jnp.sort(-block, axis=1)
        cumulative = jnp.cumsum(ordered, axis=1)
        rank = jnp.arange(1, size + 1)
        support = jnp.sum(1 + rank * ordered > cumulative, axis=1, keepdims=True)
        tau = (jnp.take_along_axis(cumulative, support - 1, axis=1) - 1) / support
        blocks.append(jnp.maximum(block - tau, 0))
    return jnp.concatenate(blocks, axis=1)


def _step_of(
    x: jax.Array,
    mean: jax.Array,
    square: jax.Array,
    number: jax.Array,
    index: jax.Array,
    target: jax.Array,
    domain: Domain,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    gradient = jax.grad(lambda rows: jnp.sum((_answers(rows, index) - target) ** 2))(x)
    mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
    change = mean / (1 - 0.9**number) / (jnp.sqrt(square / (1 - 0.999**number)) + 1e-8)
    return _sparsemax(x - RATE * change, domain), mean, square


_step = jax.jit(_step_of, static_argnames="domain")
