from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import brute_force, random_table

from discreet.data.domain import Domain
from discreet.models import projection
from discreet.models.surrogate import at_least
from discreet.privacy.measurement import Measurement
from discreet.queries.threshold import Threshold

EVERY = [(k, r) for k in range(1, 7) for r in range(1, k + 1)]
probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def by_partitions(r: int, x: list[float]) -> float:
    """Definition 4.3: a generalized product query for every partition with at least r matches."""
    places = range(len(x))
    return sum(
        prod(x[i] for i in chosen) * prod(1 - x[i] for i in places if i not in chosen)
        for size in range(r, len(x) + 1)
        for chosen in combinations(places, size)
    )


def by_inclusion_exclusion(r: int, x: list[float]) -> float:
    """Definition 4.4."""
    return sum(
        float((-1) ** (size - r)) * comb(size - 1, size - r) * prod(chosen)
        for size in range(r, len(x) + 1)
        for chosen in combinations(x, size)
    )


@settings(deadline=None, max_examples=200)
@given(probabilities, st.data())
def test_both_published_definitions_and_ours_are_one_polynomial(x: list[float], data: st.DataObject) -> None:
    r = data.draw(st.integers(1, len(x)))
    found = float(at_least(r, [jnp.float32(value) for value in x]))
    assert found == pytest.approx(by_partitions(r, x), abs=1e-5)
    assert found == pytest.approx(by_inclusion_exclusion(r, x), abs=1e-5)


@pytest.mark.parametrize(("k", "r"), EVERY)
def test_the_surrogate_is_the_predicate_on_every_one_hot_row(k: int, r: int) -> None:
    rows = np.array(list(product([0.0, 1.0], repeat=k)), dtype=np.float32)
    found = at_least(r, [jnp.asarray(column) for column in rows.T])
    assert np.array_equal(found, rows.sum(axis=1) >= r)


@pytest.mark.parametrize(("k", "r"), EVERY)
def test_the_cheapest_form_is_taken(k: int, r: int) -> None:
    """Every event costs two products for each count that is followed."""
    traced = jax.make_jaxpr(lambda x: at_least(r, list(x)))(jnp.ones(k))
    products = sum(equation.primitive.name == "mul" for equation in traced.jaxpr.eqns)
    assert products <= 2 * k * min(r, k - r + 1)


def test_r_equal_to_k_is_the_marginal_and_one_is_the_disjunction() -> None:
    x = [jnp.float32(value) for value in (0.25, 0.5, 0.75)]
    assert float(at_least(3, x)) == pytest.approx(0.25 * 0.5 * 0.75)
    assert float(at_least(1, x)) == pytest.approx(1 - 0.75 * 0.5 * 0.25)


@pytest.mark.parametrize(("k", "r"), [(k, r) for k, r in EVERY if k <= 4])
def test_answers_of_one_hot_rows_are_those_of_the_table(k: int, r: int) -> None:
    domain = Domain({"a": 3, "b": 2, "c": 4, "d": 2})
    table = random_table(30, domain=domain)
    names = domain.attributes[:k]
    expected = brute_force(table, names, r)
    asked = Measurement(Threshold(names, r), np.arange(len(expected)), expected, Fraction(1))
    other = Measurement(Threshold(("b", "d")), np.arange(4), np.zeros(4, dtype=np.int64), Fraction(1))
    one_hot = np.concatenate([np.eye(size)[table.codes[:, at]].T for at, size in enumerate(domain.sizes)])
    packed = projection.queries(domain, [other, asked], 30)
    [kind] = [same for same in packed if (same.bits.shape[1], same.r) == (k, r)]
    found = projection.answers(jnp.asarray(one_hot), kind)
    start = 4 if (k, r) == (2, 2) else 0
    assert np.allclose(found[start : start + len(expected)], expected / 30, atol=1e-6)
    assert not np.asarray(found[start + len(expected) :]).any()
