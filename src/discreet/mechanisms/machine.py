"""How fast one core of this machine is, beside the one that forecasts were measured on."""

from __future__ import annotations

import time

import numpy as np

_STACK, _SIDE = 200, 60
_PRODUCT_SECONDS = 0.00125
"""What the task below took there."""

_PATIENCE = 0.1
"""Seconds for the task: it is done again until then, and the quickest time counts."""


def slowness() -> float:
    """How many times as long things take here: products of matrices, which fits spend most of their time with.

    Matrices are so small that one thread multiplies them, and only its own time counts: other programs hardly matter.
    (Sorting was part of it once. NumPy sorts with instructions that some processors are several times slower at than
    at anything that is forecast.)
    """
    matrices = np.random.default_rng(0).random((_STACK, _SIDE, _SIDE), dtype=np.float32)
    began = time.perf_counter()
    taken: list[float] = []
    while len(taken) < 2 or time.perf_counter() - began < _PATIENCE:
        start = time.thread_time()
        np.matmul(matrices, matrices)
        taken.append(time.thread_time() - start)
    return min(taken) / _PRODUCT_SECONDS
