from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import DOMAIN, brute_force, random_table

from discreet.data.domain import Domain
from discreet.models import relaxed
from discreet.models.relaxed import PRECISION, RelaxedRows
from discreet.models.rounded import RoundedRows
from discreet.queries.answers import GRID, fraction
from discreet.queries.threshold import Query, Threshold


def rows(domain: Domain = DOMAIN, count: int = 30, seed: int = 0, spread: float = 0.4) -> RelaxedRows:
    rng = np.random.default_rng(seed)
    blocks = [rng.dirichlet(np.full(size, spread), count).T for size in domain.sizes]
    return RelaxedRows.publish(domain, 1000, np.concatenate(blocks))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 10**6))
def test_published_probabilities_add_up_exactly(size: int, count: int, seed: int) -> None:
    probabilities = np.random.default_rng(seed).dirichlet(np.full(size, 0.3), count).T
    model = RelaxedRows.publish(Domain({"a": size}), 10, probabilities)
    assert (model.shares.sum(axis=0) == 1 << PRECISION).all()
    assert np.abs(model.shares / 2**PRECISION - probabilities).max() <= 2.0**-PRECISION


@pytest.mark.parametrize("names", [c for k in (1, 2, 3, 4) for c in combinations(DOMAIN.attributes, k)], ids=str)
def test_answers_are_means_of_products(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    model = rows()
    domain = DOMAIN.project(names)
    expected = np.ones((domain.size, model.rows))
    codes = domain.unravel(np.arange(domain.size))
    for at, name in enumerate(names):
        expected *= model.block(name)[codes[:, at]] / 2.0**PRECISION
    units = np.rint(expected.mean(axis=1) * model.total * GRID)
    assert np.array_equal(model.units(names).dense(domain.size), units)
    assert np.array_equal(model.at(names, np.arange(domain.size)), units)
    monkeypatch.setattr(relaxed, "_SUPPORT_COST", 1e-9)  # always through the supports
    assert np.array_equal(rows().units(names).dense(domain.size), units)
    monkeypatch.setattr(relaxed, "_SUPPORT_COST", 1e9)  # never
    monkeypatch.setattr(relaxed, "_BLOCK", 1)
    assert np.array_equal(rows().units(names).dense(domain.size), units)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 10**6), st.sampled_from([1, 16, 2**10]), st.integers(0, 10**6), st.booleans())
def test_single_precision_gives_the_same_integers(total: int, grid: int, seed: int, even: bool) -> None:
    """Also where answers lie exactly between two integers, as those of equal probabilities do."""
    model = rows(count=64, seed=seed, spread=1e6 if even else 0.2)
    model = RelaxedRows(DOMAIN, total, model.shares)
    names = ("age", "sex", "race")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(relaxed, "_SUPPORT_COST", 1e9)
        patched.setattr(relaxed, "_DOUBT_COST", 1e12)  # never in single precision
        [exact] = model.stretches(names, grid=grid)
        patched.setattr(relaxed, "_DOUBT_COST", 1e-12)  # always
        [single] = model.stretches(names, grid=grid)
    assert np.array_equal(single.units.cells, exact.units.cells)
    assert np.array_equal(single.units.values, exact.units.values)


@pytest.mark.parametrize("r", [1, 2, 3])
def test_one_hot_rows_answer_as_the_table_does(r: int) -> None:
    """Definition 3.1 of Aydore et al.: on one-hot rows the surrogate agrees with the query."""
    table = random_table(25)
    one_hot = np.concatenate([np.eye(size)[table.codes[:, at]].T for at, size in enumerate(DOMAIN.sizes)])
    model = RelaxedRows.publish(DOMAIN, 25, one_hot)
    names = ("age", "sex", "race")
    expected = brute_force(table, names, r) / 25
    found = [fraction(model, Query(Threshold(names, r), cell)) for cell in range(len(expected))]
    assert np.allclose(found, expected, atol=1e-12)


def test_sampled_rows_keep_one_way_marginals_and_expected_pairs() -> None:
    model = rows(count=50)
    copies = 200
    codes = model.sample(copies, np.random.default_rng(0))
    assert codes.shape == (50 * copies, len(DOMAIN))
    for at, name in enumerate(DOMAIN):
        drawn = np.bincount(codes[:, at], minlength=DOMAIN.size_of(name)) / len(codes)
        assert np.abs(drawn - model.block(name).mean(axis=1) / 2.0**PRECISION).max() <= 1 / copies
    counted = RoundedRows(DOMAIN, model.total, codes).units(("age", "race")).dense(12)
    assert np.abs(counted - model.units(("age", "race")).dense(12)).max() / GRID / model.total < 0.02


def test_rows_in_a_box_can_be_sampled_even_when_empty() -> None:
    model = RelaxedRows.publish(DOMAIN, 10, np.zeros((DOMAIN.bits, 4)), normalise=False)
    assert (model.sample(3, np.random.default_rng(0)) < np.array(DOMAIN.sizes)).all()
    assert len(model.units(("age",)).cells) == 0


def test_rows_in_a_box_are_summed_exactly_where_single_precision_would_leave_doubts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their answers add up to thousands, so that nearly every cell would be in doubt and summed once more, alone."""
    domain = Domain({"a": 40, "b": 50, "c": 60})
    probabilities = np.random.default_rng(0).random((domain.bits, 20))
    alone: list[int] = []
    at = RelaxedRows._at

    def counted(self: RelaxedRows, names: tuple[str, ...], cells: np.ndarray, grid: int) -> np.ndarray:
        alone.append(len(cells))
        return at(self, names, cells, grid)

    monkeypatch.setattr(RelaxedRows, "_at", counted)
    for normalise in (True, False):
        model = RelaxedRows.publish(domain, 200_000, probabilities, normalise=normalise)
        (found,) = [stretch.units.dense(domain.size) for stretch in model.stretches(("a", "b", "c"), grid=16)]
        assert sum(alone) < 100
        assert np.array_equal(found, at(model, ("a", "b", "c"), np.arange(domain.size), 16))
        alone.clear()


def test_a_marginal_too_large_to_enumerate_is_answered_through_supports() -> None:
    domain = Domain({f"a{i}": 1000 for i in range(6)})
    model = rows(domain, count=5, spread=0.0005)
    found = model.units(domain.attributes)
    assert domain.size == 10**18
    assert abs(int(found.values.sum()) - model.total * GRID) <= len(found.cells)
