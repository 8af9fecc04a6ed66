"""The differentiable form of "at least r of k match": polynomial threshold queries.

A relaxed row gives each of the k named values a probability x_i. The surrogate is the probability that at least r
of k independent events of these probabilities happen: the only multilinear polynomial that agrees with the predicate
on every one-hot row, so Definition 4.3 of Avent and Korolova (2023), which sums over all partitions of the events, and
Definition 4.4, which sums over subsets with signs, are the same polynomial. Both have 2^k terms. Counting events one by
one takes k * min(r, k - r + 1) products: the count of matches is followed up to r - 1, or, by the negation identity
("at least r match" is "at most k - r fail"), the count of failures up to k - r, whichever is less. A marginal is one
product of k factors, and so is 1 of k.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp


def at_least(r: int, factors: Sequence[jax.Array]) -> jax.Array:
    """Probability that at least r of the events happen, element by element.

    Args:
        r: From 1 to the number of factors.
        factors: Probabilities of the events, arrays of one shape.
    """
    failures = len(factors) - r
    if failures < r:
        return _at_most(failures, [1 - x for x in factors], factors)
    return 1 - _at_most(r - 1, factors, [1 - x for x in factors])


def _at_most(most: int, happen: Sequence[jax.Array], fail: Sequence[jax.Array]) -> jax.Array:
    """Probability that at most this many of the events happen."""
    counts = [jnp.ones_like(happen[0])]  # counts[j]: probability of exactly j among the events so far
    for yes, no in zip(happen, fail, strict=True):
        raised = [before * yes for before in counts]
        stayed = [before * no for before in counts]
        counts = [stayed[0], *(same + more for same, more in zip(stayed[1:], raised, strict=False))]
        if len(counts) <= most:
            counts.append(raised[-1])
    return sum(counts[1:], start=counts[0])
