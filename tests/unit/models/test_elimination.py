"""Graphical models in directed form: sizes as mbi has them, and marginals as of the whole table."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from discreet.data.domain import Domain
from discreet.models.elimination import Directed, eliminated, megabytes
from discreet.models.graphical import package

mbi = package()

DOMAIN = Domain({"a": 2, "b": 5, "c": 3, "d": 4, "e": 2, "f": 7})

SHAPES: dict[str, list[tuple[str, ...]]] = {
    "nothing": [],
    "apart": [("a",), ("b",)],
    "one clique": [("a", "b", "c")],
    "a tree": [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"), ("e", "f")],
    "a tree whose middle is small": [("b", "e"), ("e", "a"), ("a", "f"), ("f", "c"), ("c", "d")],
    "a circle": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")],
    "names in another order": [("d", "a"), ("f", "c", "a")],
    "two parts": [("a", "b", "c"), ("d", "e"), ("e", "f")],
}


def drawn(cliques: list[tuple[str, ...]], seed: int) -> list[tuple[tuple[str, ...], np.ndarray]]:
    generator = np.random.default_rng(seed)
    return [(names, generator.normal(size=[DOMAIN.size_of(name) for name in names])) for names in cliques]


@pytest.mark.parametrize("cliques", SHAPES.values(), ids=SHAPES)
def test_marginals_are_those_of_the_whole_table(cliques: list[tuple[str, ...]]) -> None:
    potentials = drawn(cliques, seed=3)
    whole = np.zeros(DOMAIN.sizes)
    for names, table in potentials:
        axes = [DOMAIN.index(name) for name in names]
        whole = whole + np.einsum(table, axes, sorted(axes)).reshape(
            [DOMAIN.sizes[at] if at in axes else 1 for at in range(len(DOMAIN))]
        )
    whole = np.exp(whole) / np.exp(whole).sum()
    model = Directed(DOMAIN, potentials)
    for k in (1, 2, 3, 6):
        for names in combinations(DOMAIN, k):
            mixed = names[1:] + names[:1]  # axes are as they were asked for
            expected = np.einsum(whole, range(len(DOMAIN)), [DOMAIN.index(name) for name in mixed])
            np.testing.assert_allclose(model.marginal(mixed), expected, atol=1e-14)


def test_impossible_values_and_large_potentials_stay_exact() -> None:
    table = np.array([[0.0, -2000.0, 3.0, 3.0, 3.0], [700.0, 700.0, 700.0, 700.0, 700.0]])
    model = Directed(DOMAIN, [(("a", "b"), table), (("b", "f"), np.full((5, 7), 900.0))])
    np.testing.assert_allclose(model.marginal(("a",)), [0, 1], atol=1e-100)
    np.testing.assert_allclose(model.marginal(("f", "b")), 1 / 35)


@pytest.mark.parametrize("cliques", SHAPES.values(), ids=SHAPES)
def test_sizes_are_those_of_the_junction_tree(cliques: list[tuple[str, ...]]) -> None:
    expected = mbi.junction_tree.hypothetical_model_size(mbi.Domain(DOMAIN.attributes, DOMAIN.sizes), cliques)
    assert megabytes(DOMAIN, cliques) == pytest.approx(expected)


def test_sizes_of_random_cliques_are_those_of_the_junction_tree() -> None:
    generator = np.random.default_rng(5)
    domain = Domain({f"x{at}": int(generator.integers(2, 40)) for at in range(12)})
    theirs = mbi.Domain(domain.attributes, domain.sizes)
    triples = list(combinations(domain, 3)) + list(combinations(domain, 2))
    for _ in range(60):
        many = int(generator.integers(1, 12))
        cliques = [triples[at] for at in generator.integers(len(triples), size=many)]
        expected = mbi.junction_tree.hypothetical_model_size(theirs, cliques)
        assert megabytes(domain, cliques) == pytest.approx(expected)


def test_an_attribute_meets_only_those_eliminated_later() -> None:
    order = eliminated(DOMAIN, SHAPES["a circle"])
    seen: set[str] = set()
    for name, met in order.items():
        assert name in met
        assert not seen & set(met)
        seen.add(name)
    assert seen == set(DOMAIN)
