"""How fast one core of this machine is, beside the one that forecasts were measured on."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import sqrt

import numpy as np

_STACK, _SIDE, _SORTED = 200, 60, 200_000
_PRODUCT_SECONDS, _SORT_SECONDS = 0.00125, 0.00235
"""What the two tasks below took there."""

_PATIENCE = 0.1
"""Seconds for each task: it is done again until then, and the quickest time counts."""


def slowness() -> float:
    """How many times as long things take here: products of matrices and a sort, geometric mean. Under 0.3 seconds.

    Matrices are so small that one thread multiplies them, and only its own time counts: other programs hardly matter.
    """
    draws = np.random.default_rng(0)
    matrices = draws.random((_STACK, _SIDE, _SIDE), dtype=np.float32)
    numbers = draws.integers(2**40, size=_SORTED)
    product = _quickest(lambda: np.matmul(matrices, matrices)) / _PRODUCT_SECONDS
    return sqrt(product * _quickest(lambda: np.sort(numbers)) / _SORT_SECONDS)


def _quickest(task: Callable[[], object]) -> float:
    began = time.perf_counter()
    taken: list[float] = []
    while len(taken) < 2 or time.perf_counter() - began < _PATIENCE:
        start = time.thread_time()
        task()
        taken.append(time.thread_time() - start)
    return min(taken)
