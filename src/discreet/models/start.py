"""Where a fit starts: logits of relaxed rows, bits x rows."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from discreet.data.domain import UNKNOWN, Domain
from discreet.models import guess
from discreet.models.fit import FitSettings
from discreet.models.targets import Target

_LEAST = 0.01
"""Least probability of a value at the start of a fit, over the number of values."""


def even(domain: Domain, rows: int, settings: FitSettings, seed: int) -> jax.Array:
    """Logits near zero, different for every row."""
    return settings.start * jax.random.normal(jax.random.key(seed), (domain.bits, rows), jnp.float32)


def product(domain: Domain, rows: int, targets: Sequence[Target], *, settings: FitSettings, seed: int) -> jax.Array:
    """Rows near the product of the single attributes among the targets; each half by the numbers it is fitted to."""
    logits = np.array(even(domain, rows, settings, seed))
    half = rows // len(settings.shifts)
    for target in targets:
        if len(target.attributes) == 1:
            first = domain.offsets[domain.index(target.attributes[0])]
            bits = slice(first, first + len(target.y))
            for group, shift in enumerate(settings.shifts):
                kept = np.maximum(target.y + shift * target.z, _LEAST / len(target.y))
                logits[bits, group * half : (group + 1) * half] += np.log(kept / kept.sum())[:, None]
    return jnp.asarray(logits)


def lean(
    domain: Domain, logits: jax.Array, targets: Sequence[Target], *, settings: FitSettings, seed: int
) -> jax.Array:
    """Logits that lean to a first guess (`discreet.models.guess`)."""
    codes = guess.guess(domain, targets, rows=logits.shape[1], shifts=settings.shifts, seed=seed)
    attribute, row = np.nonzero(codes != UNKNOWN)
    bits = np.asarray(domain.offsets)[attribute] + codes[attribute, row]
    return logits.at[bits, row].add(settings.lean)
