"""Tiles: whole noisy marginals cut into blocks of few distinct shapes, for fast and unbiased batches.

A marginal is a matrix: its largest attribute gives the columns, all other attributes together give the rows. Rows of
all marginals with the same column attribute are pooled and cut into tiles of `HEIGHT` rows, so marginals of any number
of attributes fit the same compiled code, and a few column widths (padded by at most a third) are all the shapes there
are. The answers of relaxed rows to a tile are one matrix product.

Single attributes come first, then rows whose noisy counts stand out of the noise, heaviest first; all others are
shuffled, so that a tile of those is a random sample of cells that hold little. A batch can then hold the heavy tiles
always, and a few others.
Where a handful of millions of cells hold most of the table, batches that meet them now and then lead nowhere: on LOANS
such fits ended with errors above those of answering zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.models.targets import Target

HEIGHT = 64
"""Rows of a tile: few, so that those which stand out share their tiles with few others."""

MOST_STRESS = 2.0
"""How many times more strongly a residual may pull than its square asks for, at first."""

STANDS_OUT = 5.0
"""Standard deviations by which a row's squared length exceeds that of noise alone."""

Array = NDArray[np.generic]


class Bucket(NamedTuple):
    """Tiles of one width. Bits index the one-hot encoding, followed by one bit that is always 1 and one always 0.

    Attributes:
        left: tiles x HEIGHT x factors: bits of every attribute but the column's, padded with the bit that is 1.
        column: tiles x width: bits of the column attribute, padded with the bit that is 0.
        y: tiles x HEIGHT x width: noisy fractions.
        z: the same shape: fresh public noise with the standard deviation of the measurement.
        weight: tiles x HEIGHT: smallest variance over this row's variance; 0 for padding.
    """

    left: jax.Array
    column: jax.Array
    y: jax.Array
    z: jax.Array
    weight: jax.Array


class Pull(NamedTuple):
    """How relaxed rows miss their targets.

    Attributes:
        loss: Weighted squared residual.
        half: Half its gradient times the rows of a group.
        worst: The largest residual.
    """

    loss: jax.Array
    half: jax.Array
    worst: jax.Array


class Packed(NamedTuple):
    """All buckets, and how many tiles of each are real: the rest is padding, so that few shapes are compiled.

    Attributes:
        buckets: Tiles by width.
        real: Number of real tiles of each.
        heavy: Tiles of each that hold single attributes, and then those with rows that stand out of the noise, heaviest
            first.
        single: Of these, how many hold single attributes.
    """

    buckets: list[Bucket]
    real: list[int]
    heavy: list[NDArray[np.int32]]
    single: list[int]


def pack(domain: Domain, targets: Sequence[Target], *, large: float = inf, seed: int) -> Packed:
    """Cut whole marginals into tiles; of those with more than `large` cells only rows that stand out of the noise.

    Single attributes are one row each, and always kept: something is left to fit, whatever the noise.
    """
    least = min(target.sigma for target in targets)
    depth = max(1, *(len(target.attributes) - 1 for target in targets))
    pools: dict[str, list[tuple[Array, ...]]] = {}
    for target in targets:
        column, left, (y, z) = _as_matrices(domain, target.attributes, (target.y, target.z), depth)
        weight = np.full(len(left), (least / target.sigma) ** 2, np.float32)
        partly = target.y.size > large and len(target.attributes) > 1
        kept = _excess(y, weight, least) > 0 if partly else np.full(len(left), True)
        if kept.any():
            pools.setdefault(column, []).append((left[kept], y[kept].astype(np.float32), z[kept], weight[kept]))
    widths = widths_of(domain, pools)
    generator = np.random.default_rng(seed)
    parts: dict[int, list[tuple[Array, ...]]] = {}
    for name in sorted(pools, key=domain.index):
        width = min(width for width in widths if width >= domain.size_of(name))
        cut = _tiles(domain, name, pools.pop(name), width, least, generator)
        parts.setdefault(width, []).append(cut)
    packed = Packed([], [], [], [])
    for width in sorted(parts):
        *arrays, excess = (np.concatenate(same) for same in zip(*parts.pop(width), strict=True))
        spare = roomy(len(arrays[0])) - len(arrays[0])
        padded = [np.pad(array, ((0, spare), *[(0, 0)] * (array.ndim - 1))) for array in arrays]
        packed.buckets.append(Bucket(*(jnp.asarray(array) for array in padded)))
        packed.real.append(len(arrays[0]))
        falling = np.argsort(-excess, kind="stable").astype(np.int32)
        packed.heavy.append(falling[: np.count_nonzero(excess)])
        packed.single.append(int(np.isinf(excess).sum()))
    return packed


def roomy(count: int) -> int:
    """The next of 1, 2, ..., 8, 10, 12, 14, 16, 20, ...: few distinct numbers, at most a quarter larger."""
    unit = 1 << max(0, (count - 1).bit_length() - 3)
    return -(-count // unit) * unit


def with_constants(x: jax.Array) -> jax.Array:
    """Relaxed rows (bits x rows) with the two constant bits appended."""
    rows = x.shape[1]
    return jnp.concatenate([x, jnp.ones((1, rows), x.dtype), jnp.zeros((1, rows), x.dtype)])


def answers(x: jax.Array, left: jax.Array, column: jax.Array, groups: int) -> jax.Array:
    """Answers to one tile (groups x HEIGHT x width) of each of `groups` equal groups of rows."""
    return _split(_product(_factors(x, left)), x[column], groups)


def pull(
    x: jax.Array,
    bucket: Bucket,
    tiles: jax.Array,
    scales: jax.Array,
    shifts: Sequence[float],
    emphasis: jax.Array | float = 0.0,
    most: jax.Array | float = MOST_STRESS,
) -> Pull:
    """What some tiles, each times its scale, pull at the rows.

    There is one group of rows for each shift; it is drawn towards y + shift * z. Where there is emphasis, a residual r
    of weight w pulls 1 + min(w (emphasis r)^2, most) times as strongly, as if its fourth power were part of the loss:
    what is far off is mended first, and so is the largest error.
    """
    groups = len(shifts)
    shift = jnp.asarray(shifts, x.dtype)[:, None, None]

    def body(summed: Pull, taken: tuple[jax.Array, jax.Array]) -> tuple[Pull, None]:
        (loss, gradient, worst), (tile, scale) = summed, taken
        left, column, y, z, weight = (array[tile] for array in bucket)
        factors, right = _factors(x, left), x[column]
        product = _product(factors)
        residual = _split(product, right, groups) - y - shift * z
        stressed = 1 + jnp.minimum(weight[:, None] * (emphasis * residual) ** 2, most)
        pulled = residual * (scale * weight)[:, None] * stressed
        gradient = gradient.at[column].add(_join(jnp.swapaxes(pulled, 1, 2), product, groups))
        back = _join(pulled, right, groups)
        for at in range(len(factors)):
            gradient = gradient.at[left[:, at]].add(_product([back, *factors[:at], *factors[at + 1 :]]))
        worst = jnp.maximum(worst, jnp.max(jnp.where(weight[:, None] > 0, jnp.abs(residual), 0.0)))
        return Pull(loss + jnp.sum(pulled * residual), gradient, worst), None

    nothing = jnp.zeros((), x.dtype)
    return jax.lax.scan(body, Pull(nothing, jnp.zeros_like(x), nothing), (tiles, scales))[0]


def _factors(x: jax.Array, left: jax.Array) -> list[jax.Array]:
    return [x[left[:, at]] for at in range(left.shape[1])]


def _product(arrays: Sequence[jax.Array]) -> jax.Array:
    product = arrays[0]
    for array in arrays[1:]:
        product = product * array
    return product


def _split(left: jax.Array, right: jax.Array, groups: int) -> jax.Array:
    """left @ right.T / rows, for each group of rows on its own."""
    size = left.shape[1] // groups
    cut = [slice(at * size, (at + 1) * size) for at in range(groups)]
    return jnp.stack([left[:, part] @ right[:, part].T / size for part in cut])


def _join(weights: jax.Array, values: jax.Array, groups: int) -> jax.Array:
    """weights[group] @ values for each group of rows, side by side."""
    size = values.shape[1] // groups
    return jnp.concatenate([weights[at] @ values[:, at * size : (at + 1) * size] for at in range(groups)], axis=1)


def _as_matrices(
    domain: Domain, names: tuple[str, ...], values: Sequence[NDArray[Any]], depth: int
) -> tuple[str, Array, list[NDArray[Any]]]:
    """Column attribute, bits of every row's factors, and values of all cells as rows x columns."""
    shape = domain.project(names).sizes
    axis = int(np.argmax(shape))
    matrices = [np.moveaxis(value.reshape(shape), axis, -1).reshape(-1, shape[axis]) for value in values]
    left = np.full((len(matrices[0]), depth), domain.bits, np.int32)
    rest = [name for name in names if name != names[axis]]
    for at, (name, codes) in enumerate(zip(rest, np.indices([domain.size_of(name) for name in rest]), strict=True)):
        left[:, at] = codes.reshape(-1) + domain.offsets[domain.index(name)]
    return names[axis], left, matrices


def widths_of(domain: Domain, columns: Iterable[str]) -> list[int]:
    """Widths such that every column size fits one that is at most a third larger."""
    widths: list[int] = []
    for size in sorted({domain.size_of(name) for name in columns}, reverse=True):
        if not widths or size < 0.75 * widths[-1]:
            widths.append(size)
    return widths


def _tiles(
    domain: Domain,
    name: str,
    pool: list[tuple[Array, ...]],
    width: int,
    sigma: float,
    generator: np.random.Generator,
) -> tuple[Array, ...]:
    """The pooled rows of one column attribute, ordered and cut, and for each tile how far its first row stands out.

    That is infinitely far for single attributes.
    """
    left, y, z, weight = (np.concatenate(same) for same in zip(*pool, strict=True))
    alone = (left == domain.bits).all(axis=1)
    excess = np.where(alone, np.inf, _excess(y, weight, sigma))
    order = generator.permutation(len(y))
    order = order[np.argsort(-excess[order], kind="stable")]
    tiles = -(-len(y) // HEIGHT)
    fill, slack, zero = tiles * HEIGHT - len(y), width - y.shape[1], domain.bits + 1
    start = domain.offsets[domain.index(name)]
    column = np.pad(np.arange(start, start + y.shape[1], dtype=np.int32), (0, slack), constant_values=zero)
    return (
        np.pad(left[order], ((0, fill), (0, 0)), constant_values=zero).reshape(tiles, HEIGHT, -1),
        np.tile(column, (tiles, 1)),
        np.pad(y[order], ((0, fill), (0, slack))).reshape(tiles, HEIGHT, width),
        np.pad(z[order], ((0, fill), (0, slack))).reshape(tiles, HEIGHT, width),
        np.pad(weight[order], (0, fill)).reshape(tiles, HEIGHT),
        excess[order[::HEIGHT]],
    )


def _excess(y: NDArray[Any], weight: NDArray[Any], sigma: float) -> NDArray[np.float64]:
    """By how much the weighted squared length of rows exceeds that of noise of this deviation; 0 if it may be noise."""
    over = np.einsum("ij,ij->i", y, y, dtype=np.float64) * weight / sigma**2 - y.shape[1]
    return np.where(over > STANDS_OUT * np.sqrt(2 * y.shape[1]), over, 0.0)
