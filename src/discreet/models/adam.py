"""Adam with the usual constants, on any tree of arrays (Kingma, Ba 2015)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

_MEAN, _SQUARE, _FLOOR = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """Decaying averages of gradients and of their squares, and how many steps were taken."""

    mean: Any
    square: Any
    number: Any

    @staticmethod
    def start(parameters: Any) -> Adam:
        """Before the first step."""
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return Adam(zeros, zeros, jnp.int32(0))  # not 0: what is compiled for one does not serve the other

    def step(self, parameters: Any, gradient: Any, rate: float) -> tuple[Any, Adam]:
        """Parameters after one more step, and the averages."""
        number = self.number + 1
        mean = jax.tree.map(lambda old, new: _MEAN * old + (1 - _MEAN) * new, self.mean, gradient)
        square = jax.tree.map(lambda old, new: _SQUARE * old + (1 - _SQUARE) * new**2, self.square, gradient)
        scaled = rate * jnp.sqrt(1 - _SQUARE**number) / (1 - _MEAN**number)
        moved = jax.tree.map(
            lambda old, by, size: old - scaled * by / (jnp.sqrt(size) + _FLOOR), parameters, mean, square
        )
        return moved, Adam(mean, square, number)
