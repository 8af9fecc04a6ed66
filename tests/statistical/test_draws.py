"""Signed queries and whole marginals are drawn by the exponential mechanism; a wrong scale is rejected."""

from collections import Counter
from collections.abc import Hashable
from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats
from tests.tables import CodedTable

from discreet.data.domain import Domain
from discreet.models.rounded import RoundedRows
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.queries import parse
from discreet.queries.answers import Answers, Zeros
from discreet.queries.threshold import Query

RUNS = 4000
SIGNIFICANCE = 1e-6
DOMAIN = Domain([("a", 2), ("b", 3)])
ROWS = np.array([[0, 0]] * 9 + [[0, 1]] * 4 + [[1, 2]] * 7)
PUBLIC = np.array([[0, 0], [1, 1], [1, 0], [1, 2]])


def gate(seed: int, relation: str = "replace-one") -> Curator:
    table = CodedTable(DOMAIN, ROWS)
    curator = Curator(
        table, budget=Budget(Fraction(10**6)), neighbours=Neighbours(relation), entropy=SeededEntropy(seed)
    )
    if relation == "add-remove":
        curator.measure_total(rho=Fraction(10**5))
    return curator


def agrees(observed: Counter[Hashable], scores: dict[Hashable, float], exponent: float) -> bool:
    weights = {pick: exp(exponent * score) for pick, score in scores.items()}
    assert set(observed) <= set(weights)
    expected = np.array([weight / sum(weights.values()) * observed.total() for weight in weights.values()])
    seen = np.array([observed[pick] for pick in weights])
    return bool(np.sum((seen - expected) ** 2 / expected) < stats.chi2.isf(SIGNIFICANCE, len(weights) - 1))


def counts_of(rows: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    columns = [DOMAIN.index(name) for name in names]
    part = DOMAIN.project(names)
    cells = [int(np.ravel_multi_index(tuple(row[columns]), part.sizes)) for row in rows]
    return np.bincount(cells, minlength=part.size)


@pytest.mark.parametrize("public", [True, False])
def test_signed_draws_have_the_chances_of_the_exponential_mechanism(public: bool) -> None:
    workload = parse.workload("all:1", DOMAIN)
    against: Answers = RoundedRows(DOMAIN, len(ROWS), PUBLIC) if public else Zeros(DOMAIN, len(ROWS))
    rho, picks = Fraction(1, 5), 4
    observed: Counter[Hashable] = Counter(
        pick
        for seed in range(RUNS // picks)
        for pick in gate(seed).draw(workload, against=against, picks=picks, rho=rho)
    )
    scores: dict[Hashable, float] = {}
    for threshold in workload:
        exact = counts_of(ROWS, threshold.attributes)
        scale = len(ROWS) / len(PUBLIC) if public else 0.0
        error = exact - scale * counts_of(PUBLIC, threshold.attributes)
        scores |= {(Query(threshold, cell), sign): sign * error[cell] for cell in range(len(error)) for sign in (1, -1)}
    exponent = sqrt(8 * rho / picks) / 2
    assert agrees(observed, scores, exponent)
    assert not agrees(observed, scores, exponent * 1.5)
    assert not agrees(observed, scores, exponent / 1.5)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_marginals_are_selected_by_their_weighted_error_less_their_handicap(relation: str) -> None:
    marginals = [("a",), ("b",), ("a", "b")]
    weights, handicaps = [1.0, 0.5, 0.75], [2.0, 0.0, 11.0]
    rho = Fraction(1, 20)
    observed: Counter[Hashable] = Counter(
        gate(seed, relation).select_marginals(
            marginals,
            against=RoundedRows(DOMAIN, len(ROWS), PUBLIC),
            rho=rho,
            weights=weights,
            handicaps=handicaps,
        )[0]
        for seed in range(RUNS)
    )
    scores: dict[Hashable, float] = {}
    for names, weight, handicap in zip(marginals, weights, handicaps, strict=True):
        error = counts_of(ROWS, names) - len(ROWS) / len(PUBLIC) * counts_of(PUBLIC, names)
        scores[names] = weight * (np.abs(error).sum() - handicap)
    exponent = sqrt(8 * rho) / 2 / (2 if relation == "replace-one" else 1)
    assert agrees(observed, scores, exponent)
    assert not agrees(observed, scores, exponent * 2)
    assert not agrees(observed, scores, exponent / 2)
