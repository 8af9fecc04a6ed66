"""Where a fit starts: logits of relaxed rows, bits x rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from discreet.data.domain import UNKNOWN, Domain
from discreet.models import guess, tree
from discreet.models.fit import FitSettings
from discreet.models.targets import Target
from discreet.models.tree import Pair

_LEAST = 0.01
"""Least probability of a value at the start of a fit, over the number of values."""

_WEIGHT = 0.1
"""Weight of a drawn value that depends on nothing."""

_MOST_WEIGHT = 0.97
"""Most weight of a drawn value: a row that is sure of one cannot be moved."""

_RARE = 4
"""Power of 1 - p(u) p(v) / p(u,v) in a dependence."""


def even(domain: Domain, rows: int, settings: FitSettings, seed: int) -> jax.Array:
    """Logits near zero, different for every row."""
    return settings.start * jax.random.normal(jax.random.key(seed), (domain.bits, rows), jnp.float32)


def mixture(domain: Domain, rows: int, targets: Sequence[Target], *, settings: FitSettings, seed: int) -> jax.Array:
    """Rows near the product of the single attributes among the targets, but where values clearly occur together.

    Each row first draws a value of every attribute (`discreet.models.tree`). If that is u, the row holds u with weight
    w(u), and otherwise any value v in proportion to p(v) (1 - w(v)), p being the single attribute. Draws follow p, so
    that the mean over rows is p whatever the weights are. A value has a large weight where it depends strongly on
    another one (`_weights`): then few rows hold it, and the others do not. All other weights are small.

    Each half of the rows starts from the numbers that it is fitted to.
    """
    logits = np.array(even(domain, rows, settings, seed))
    for shift, group in zip(settings.shifts, np.split(np.arange(rows), len(settings.shifts)), strict=True):
        single = {target.attributes[0]: _shares(target, shift) for target in targets if len(target.attributes) == 1}
        pairs = tree.pairs(targets, shift, single)
        drawn = tree.draw(single, pairs, len(group), np.random.default_rng((seed, group[0])))
        for name, weights in _weights(single, pairs).items():
            left, own = single[name] * (1 - weights), weights[drawn[name]]
            held = np.outer(left / left.sum(), 1 - own)
            held[drawn[name], np.arange(len(group))] += own
            first = domain.offsets[domain.index(name)]
            logits[first : first + len(left), group] += np.log(held)
    return jnp.asarray(logits)


def _shares(target: Target, shift: float) -> NDArray[np.float64]:
    """A single attribute as one half sees it, as a distribution that excludes nothing."""
    kept: NDArray[np.float64] = np.maximum(target.y + shift * target.z, _LEAST / len(target.y))
    return np.asarray(kept / kept.sum())


def _weights(single: Mapping[str, NDArray[np.float64]], pairs: Sequence[Pair]) -> dict[str, NDArray[np.float64]]:
    """By attribute and value: how far a row that draws it should hold it; the root of its strongest dependence.

    A dependence counts where both values are rare: married men are many husbands, which every fit finds, and rows that
    are sure of it from the start are alike and cost total variation. So it is multiplied by a power of 1 - p(u) p(v) /
    p(u,v).
    """
    weights = {name: np.full(len(shares), _WEIGHT) for name, shares in single.items()}
    for pair in pairs:
        one, other = pair.attributes
        chance = np.outer(single[one], single[other])
        beyond = 1 - np.divide(chance, pair.heavy, out=np.ones_like(chance), where=pair.heavy > 0)
        roots = np.minimum(np.sqrt(pair.depends * beyond**_RARE), _MOST_WEIGHT)
        weights[one] = np.maximum(weights[one], roots.max(axis=1))
        weights[other] = np.maximum(weights[other], roots.max(axis=0))
    return weights


def lean(
    domain: Domain, logits: jax.Array, targets: Sequence[Target], *, settings: FitSettings, seed: int
) -> jax.Array:
    """Logits that lean to a first guess (`discreet.models.guess`)."""
    codes = guess.guess(domain, targets, rows=logits.shape[1], shifts=settings.shifts, seed=seed)
    attribute, row = np.nonzero(codes != UNKNOWN)
    bits = np.asarray(domain.offsets)[attribute] + codes[attribute, row]
    return logits.at[bits, row].add(settings.lean)
