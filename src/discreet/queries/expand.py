"""Values of every query of a threshold, from those of its marginals, in blocks of bounded size.

A threshold with r < k is a fixed combination of the marginals on subsets of its attributes (inclusion-exclusion,
Avent and Korolova 2023, Definition 4.4). Its table is dense, but each of those marginals is sparse. The cells of a
block agree in the values of the leading attributes, so all that a marginal adds to a block is one stretch of its
cells: it is made dense there, added to other stretches over the same attributes, and only then spread over the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import Domain
from discreet.data.sparse import Piece, Run, Sparse
from discreet.errors import BadWorkload
from discreet.queries.threshold import Attributes, Threshold

Lookup = Callable[[Attributes], Sparse]
"""All values of a marginal."""

Axes = tuple[int, ...]
Part = tuple[int, Axes, Sparse]
"""Coefficient, axes of the threshold's table, and values of one marginal."""

_BLOCK = 2**20
"""Most cells that are expanded at once when r < k."""

MOST_CELLS = 2**36
"""Most queries of one threshold with r < k: visiting them takes some minutes."""

_INT32 = 2**31 - 1


def expand(threshold: Threshold, domain: Domain, lookup: Lookup) -> Iterator[Piece]:
    """Values of all queries of a threshold, in stretches of cells that follow each other.

    Linear in what is looked up: exact counts, public answers or their differences all expand the same way. A
    marginal comes as one sparse piece, whatever its size. For r < k the pieces are dense.
    """
    if threshold.is_marginal:
        yield lookup(threshold.attributes)
        return
    shape = domain.project(threshold.attributes).sizes
    axis = {name: at for at, name in enumerate(threshold.attributes)}
    parts = [
        (coefficient, tuple(axis[name] for name in subset), lookup(subset)) for coefficient, subset in threshold.terms()
    ]
    largest = sum(abs(factor) * int(np.abs(part.values).max(initial=0)) for factor, _, part in parts)
    kind = np.int32 if largest <= _INT32 else np.int64
    # Cells are visited in order: all values of the first axes one by one, a stretch of the pivot, all of the rest.
    pivot = next(axis for axis in range(len(shape)) if prod(shape[axis + 1 :]) <= _BLOCK)
    step = max(1, _BLOCK // prod(shape[pivot + 1 :]))
    start = 0
    for leading in product(*(range(size) for size in shape[:pivot])):
        for first in range(0, shape[pivot], step):
            window = (first, min(shape[pivot], first + step))
            block = _block(parts, shape, leading, window, kind)
            yield Run(start, block.reshape(-1))
            start += block.size


def require_expandable(threshold: Threshold, domain: Domain) -> None:
    """Refuse a threshold with r < k that has too many queries to be visited one by one."""
    cells = threshold.cells(domain)
    if not threshold.is_marginal and cells > MOST_CELLS:
        raise BadWorkload(
            f"{threshold} has {cells:,} queries; with r < k each of them is visited, so at most {MOST_CELLS:,} are "
            "allowed. Ask for fewer or coarser attributes."
        )


def _block(
    parts: list[Part], shape: tuple[int, ...], leading: tuple[int, ...], window: tuple[int, int], kind: type[np.integer]
) -> NDArray[np.integer]:
    """The cells with these leading values and the pivot in a window: one array over the pivot and the axes after it."""
    pivot = len(leading)
    inner = {pivot: window[1] - window[0], **{axis: shape[axis] for axis in range(pivot + 1, len(shape))}}
    spread: dict[Axes, NDArray[np.integer]] = {}
    scattered = []
    for factor, axes, values in parts:
        found, width = _stretch(axes, values, shape, leading, window)
        free = tuple(axis for axis in axes if axis >= pivot)
        if len(free) == len(inner):
            scattered.append(found.times(factor))
            continue
        dense = np.zeros(width, dtype=kind)
        dense[found.cells] = found.values * factor
        dense = dense.reshape([inner[axis] if axis in free else 1 for axis in inner])
        spread[free] = spread[free] + dense if free in spread else dense
    # Smaller arrays are added to larger ones, so that few have to be spread over the whole block.
    for axes in sorted(spread, key=len):
        wider = next((other for other in spread if set(axes) < set(other)), None)
        if wider is not None:
            spread[wider] = spread[wider] + spread.pop(axes)
    block = np.empty(tuple(inner.values()), dtype=kind)
    first, *others = [*spread.values(), np.zeros((1,) * len(inner), dtype=kind)]
    np.add(first, others.pop(0), out=block)
    for array in others:
        block += array
    for found in scattered:
        block.reshape(-1)[found.cells] += found.values.astype(kind)
    return block


def _stretch(
    axes: Axes, values: Sparse, shape: tuple[int, ...], leading: tuple[int, ...], window: tuple[int, int]
) -> tuple[Sparse, int]:
    """What a marginal says about the cells of a block: its cells there follow each other; and how many they are."""
    pivot = len(leading)
    number = 0
    for axis in axes:
        if axis < pivot:
            number = number * shape[axis] + leading[axis]
    inside = [axis for axis in axes if axis >= pivot]
    width = prod(shape[axis] for axis in inside)
    first, last = number * width, (number + 1) * width
    if pivot in inside:
        stride = width // shape[pivot]
        first, last = first + window[0] * stride, first + window[1] * stride
    found = values.between(first, last)
    return Sparse(found.cells - first, found.values), last - first
