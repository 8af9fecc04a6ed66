"""The gate charges before it reads, reads nothing when refused, and its sensitivities bound what neighbours change."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import DOMAIN, CodedTable, brute_force, random_table

from discreet.data.domain import Domain
from discreet.errors import BadSetting, BadWorkload, BudgetExceeded, DiscreetError
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.measurement import MOST_CELLS
from discreet.privacy.neighbours import Neighbours
from discreet.progress import Progress
from discreet.queries import parse
from discreet.queries.answers import Zeros
from discreet.queries.threshold import Query, Threshold
from discreet.queries.workload import Workload

TENTH = Fraction(1, 10)
WORKLOAD = parse.workload("all:2", DOMAIN)


def gate(
    table: CodedTable | None = None, *, rho: Fraction = Fraction(1), neighbours: Neighbours | None = None, seed: int = 0
) -> Curator:
    return Curator(
        table or random_table(50),
        budget=Budget(rho),
        neighbours=neighbours or Neighbours(),
        entropy=SeededEntropy(seed),
    )


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows_per_person", [1, 3])
@pytest.mark.parametrize("priced", ["jointly", "singly"])
def test_every_verb_charges_what_it_was_asked_to_spend(relation: str, rows_per_person: int, priced: str) -> None:
    curator = gate(neighbours=Neighbours(relation, rows_per_person))
    if relation == "add-remove":
        curator.measure_total(rho=TENTH)
        assert curator.budget.spent == TENTH
    before = curator.budget.spent
    curator.measure([("age",), ("age", "sex")], rho=TENTH, weights=[1, 2.5], priced=priced)
    assert curator.budget.spent - before == TENTH
    queries = [Query(Threshold(("age", "sex")), cell) for cell in range(3)] + [Query(Threshold(("age", "race"), 1), 0)]
    curator.measure_queries(queries, rho=TENTH, priced=priced)
    assert curator.budget.spent - before == 2 * TENTH
    curator.worst(WORKLOAD, against=Zeros(DOMAIN, curator.total), rho=TENTH)
    assert curator.budget.spent - before == 3 * TENTH
    curator.select(WORKLOAD, against=Zeros(DOMAIN, curator.total), picks=3, rho=TENTH)
    spent = curator.budget.spent - before
    assert 4 * TENTH - Fraction(1, 10**9) < spent <= 4 * TENTH
    curator.draw(WORKLOAD, against=Zeros(DOMAIN, curator.total), picks=3, rho=TENTH)
    curator.select_marginals(list(WORKLOAD.marginals), against=Zeros(DOMAIN, curator.total), picks=2, rho=TENTH)
    spent = curator.budget.spent - before
    assert 6 * TENTH - Fraction(1, 10**9) < spent <= 6 * TENTH
    curator.measure_sparse([("age",), ("age", "sex")], rho=TENTH, weights=[1, 2.5])
    assert curator.budget.spent - before - spent == TENTH
    curator.measure_residuals([("age",), ("age", "sex")], rho=TENTH, weights=[1, 2.5])
    assert curator.budget.spent - before - spent == 2 * TENTH


def test_a_refused_charge_reads_nothing() -> None:
    table = random_table(50)
    curator = gate(table, rho=Fraction(1, 100))
    zeros = Zeros(DOMAIN, 50)
    for verb in (
        lambda: curator.measure([("age",)], rho=TENTH),
        lambda: curator.measure_residuals([("age",)], rho=TENTH),
        lambda: curator.measure_queries([Query(Threshold(("age",)), 0)], rho=TENTH),
        lambda: curator.select(WORKLOAD, against=zeros, picks=1, rho=TENTH),
        lambda: curator.worst(WORKLOAD, against=zeros, rho=TENTH),
        lambda: curator.measure_total(rho=TENTH),
    ):
        with pytest.raises(BudgetExceeded):
            verb()
    assert table.reads == []
    assert curator.budget.spent == 0


def test_bad_arguments_charge_nothing_and_read_nothing() -> None:
    table = random_table(50)
    curator = gate(table)
    zeros = Zeros(DOMAIN, 50)
    huge = Domain({"a": 2**20, "b": 2**20})
    for verb in (
        lambda: curator.measure([], rho=TENTH),
        lambda: curator.measure([("age",), ("age",)], rho=TENTH),
        lambda: curator.measure([("agge",)], rho=TENTH),
        lambda: curator.measure([("age",)], rho=Fraction(0)),
        lambda: curator.measure([("age",)], rho=TENTH, priced="cheaply"),
        lambda: curator.measure([("age",)], rho=TENTH, weights=[0.0]),
        lambda: curator.measure_queries([], rho=TENTH),
        lambda: curator.measure_queries([Query(Threshold(("age",)), 4)], rho=TENTH),
        lambda: curator.select(WORKLOAD, against=zeros, picks=0, rho=TENTH),
        lambda: curator.select(WORKLOAD, against=zeros, picks=10**6, rho=TENTH),
        lambda: curator.worst(WORKLOAD, against=zeros, rho=Fraction(-1)),
        lambda: curator.measure([("age",), ("sex",)], rho=TENTH, weights=[1.0, 1e-40]),
        lambda: curator.measure_residuals([], rho=TENTH),
        lambda: curator.measure_residuals([("age",), ("age",)], rho=TENTH),
        lambda: curator.measure_residuals([("agge",)], rho=TENTH),
        lambda: curator.measure_residuals([("age", "one")], rho=TENTH),
        lambda: curator.measure_residuals([("age",)], rho=Fraction(0)),
        lambda: curator.measure_residuals([("age",)], rho=TENTH, weights=[1.0, 1.0]),
        lambda: curator.measure_residuals([("age",), ("sex",)], rho=TENTH, weights=[1.0, 1e-40]),
    ):
        with pytest.raises(DiscreetError):
            verb()
    assert huge.size > MOST_CELLS
    with pytest.raises(BadWorkload, match="can be measured whole"):
        gate(CodedTable(huge, np.zeros((1, 2), dtype=np.int64))).measure([("a", "b")], rho=TENTH)
    with pytest.raises(BadWorkload, match="can be measured whole"):
        gate(CodedTable(huge, np.zeros((1, 2), dtype=np.int64))).measure_residuals([("a", "b")], rho=TENTH)
    assert table.reads == []
    assert curator.budget.spent == 0


def test_the_total_is_private_under_add_remove_until_paid_for() -> None:
    curator = gate(neighbours=Neighbours("add-remove"))
    with pytest.raises(BadSetting, match="measure_total"):
        _ = curator.total
    curator.measure_total(rho=TENTH)
    assert curator.total > 0


def test_measurements_are_counts_plus_noise_of_the_stated_scale() -> None:
    table = random_table(50)
    big = Fraction(10**6)
    curator = gate(table, rho=10 * big)
    (found,) = curator.measure([("age", "race")], rho=big)
    assert np.array_equal(found.counts, brute_force(table, ("age", "race"), 2))
    assert found.sigma_squared == Fraction(1, 10**6)
    threshold = Threshold(("age", "sex", "race"), 2)
    queries = [Query(threshold, 5), Query(threshold, 3), Query(Threshold(("sex",)), 1)]
    several = curator.measure_queries(queries, rho=big)
    expected = brute_force(table, threshold.attributes, 2)
    assert several[0].cells is not None
    assert several[0].cells.tolist() == [3, 5]
    assert several[0].counts.tolist() == [expected[3], expected[5]]
    assert curator.worst(WORKLOAD, against=Zeros(DOMAIN, 50), rho=big).value == max(
        brute_force(table, t.attributes, t.r).max() for t in WORKLOAD
    )


def test_noise_is_shared_by_weights_and_charged_in_full() -> None:
    light, heavy = gate().measure([("age",), ("sex",)], rho=Fraction(1), weights=[1, 4])
    assert light.sigma_squared == 4 * heavy.sigma_squared
    assert 1 / light.sigma_squared + 1 / heavy.sigma_squared == 1  # sum of 2 / (2 sigma^2) = rho


def test_cells_priced_singly_get_the_papers_noise() -> None:
    """Every one of m queries alone at rho / m: variance m / (2 rho), whichever marginal it belongs to."""
    found = gate().measure([("age",), ("age", "race")], rho=Fraction(1), priced="singly")
    assert {measured.sigma_squared for measured in found} == {Fraction(4 + 12, 2)}


def test_selection_prefers_weighted_thresholds() -> None:
    workload = Workload(DOMAIN, [Threshold(("age",)), Threshold(("sex",))], [100, 1])
    picks = gate(rho=Fraction(10**6)).select(workload, against=Zeros(DOMAIN, 50), picks=1, rho=Fraction(10**5))
    assert picks[0].threshold == Threshold(("age",))


# Sensitivities: derived ones must bound what really changes, and be reached by some pair of neighbours.


def neighbours_of(table: CodedTable, relation: str, many: int) -> Iterator[CodedTable]:
    """Adversarial neighbours: `many` rows moved to, added in, or taken from a single cell, and random ones."""
    rng = np.random.default_rng(1)
    values = [np.array(row) for row in product(*(range(size) for size in table.domain.sizes))]
    for row in [values[0], values[-1], *(values[i] for i in rng.integers(len(values), size=6))]:
        if relation == "replace-one":
            changed = table.codes.copy()
            changed[:many] = row
            yield CodedTable(table.domain, changed)
        else:
            yield CodedTable(table.domain, np.vstack([table.codes, np.tile(row, (many, 1))]))
            yield CodedTable(table.domain, table.codes[many:])


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("many", [1, 2, 5])
def test_sensitivities_bound_neighbours_and_are_reached(relation: str, many: int) -> None:
    claimed = Neighbours(relation, many)
    same = CodedTable(DOMAIN, np.zeros((10, len(DOMAIN)), dtype=np.int64))
    largest_marginal = largest_single = largest_worst = 0
    for table in (same, random_table(10), random_table(10, seed=1)):
        for other in neighbours_of(table, relation, many):
            worst = []
            for r in (1, 2, 3):
                change = np.abs(
                    brute_force(table, ("age", "sex", "race"), r) - brute_force(other, ("age", "sex", "race"), r)
                )
                largest_single = max(largest_single, int(change.max()))
            for names in (("age",), ("age", "sex"), ("age", "sex", "race")):
                one, two = brute_force(table, names, len(names)), brute_force(other, names, len(names))
                largest_marginal = max(largest_marginal, int(((one - two) ** 2).sum()))
                worst.append(abs(int(one.max()) - int(two.max())))
            largest_worst = max(largest_worst, *worst)
    assert largest_marginal == claimed.marginal_squared
    assert largest_single == claimed.single
    assert largest_worst <= claimed.single


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=1, max_size=6, unique=True),
    st.sampled_from(["replace-one", "add-remove"]),
    st.integers(1, 3),
    st.integers(0, 10**6),
)
def test_a_batch_of_queries_moves_at_most_its_joint_sensitivity(
    drawn: list[tuple[int, int]], relation: str, many: int, seed: int
) -> None:
    thresholds = [
        Threshold(("age", "sex")),
        Threshold(("age", "sex"), 1),
        Threshold(("sex", "race")),
        Threshold(("age",)),
    ]
    queries = [(thresholds[which], cell % thresholds[which].cells(DOMAIN)) for which, cell in drawn]
    queries = list(dict.fromkeys(queries))
    claimed = Neighbours(relation, many).batch_squared((t, t.met(DOMAIN)) for t, _ in queries)
    table = random_table(8, seed=seed)
    for other in neighbours_of(table, relation, many):
        moved = sum(
            int(brute_force(table, t.attributes, t.r)[cell] - brute_force(other, t.attributes, t.r)[cell]) ** 2
            for t, cell in queries
        )
        assert moved <= claimed


def test_joint_prices_of_queries_in_one_marginal() -> None:
    age, sex, half = Threshold(("age",)), Threshold(("sex",)), Threshold(("age", "sex"), 1)
    batch = [(age, 1)] * 5 + [(sex, 1)] + [(half, 6)] * 3
    assert Neighbours().batch_squared(batch) == 2 + 1 + 3
    assert Neighbours("add-remove").batch_squared(batch) == 1 + 1 + 3
    assert Neighbours(rows_per_person=2).batch_squared(batch) == 4 * 6
    assert Neighbours().batch_squared([(half, 6)] * 20) == 12
    assert Neighbours("add-remove", 3).batch_squared([(half, 6)] * 20) == 9 * 6


@pytest.mark.parametrize("names", [("age",), ("age", "sex"), ("age", "sex", "race"), DOMAIN.attributes], ids=str)
def test_a_row_meets_as_many_queries_of_a_threshold_as_stated(names: tuple[str, ...]) -> None:
    """By brute force, with the sum over sets of agreeing attributes beside it."""
    for r in range(1, len(names) + 1):
        threshold = Threshold(names, r)
        met = {int(brute_force(random_table(1, seed=seed), names, r).sum()) for seed in range(5)}
        published = sum(
            prod(DOMAIN.size_of(name) - 1 for name in names if name not in agreeing)
            for size in range(r, len(names) + 1)
            for agreeing in combinations(names, size)
        )
        assert met == {threshold.met(DOMAIN)} == {published}


@pytest.mark.parametrize(("relation", "rows"), [("swap", 1), ("replace-one", 0), ("replace-one", 1.5)])
def test_bad_neighbours_are_refused(relation: str, rows: int) -> None:
    with pytest.raises(BadSetting):
        Neighbours(relation, rows)


def test_marginals_beyond_what_can_be_numbered_are_refused_before_anything_is_charged() -> None:
    wide = Domain({"a": 2**31, "b": 2**31})
    table = CodedTable(wide, np.zeros((3, 2), dtype=np.int64))
    curator = gate(table)
    with pytest.raises(BadWorkload, match="noise can be drawn on"):
        curator.measure_sparse([("a", "b")], rho=TENTH)
    assert not curator.budget.charges and not table.reads


class Steps(Progress):
    """Remembers what it heard."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def step(self, done: int, note: str = "") -> None:
        self.heard.append(done)


@pytest.mark.parametrize("verb", ["select", "draw"])
def test_progress_tells_nothing_of_what_is_drawn(verb: str) -> None:
    """Thresholds are counted one after the other, whatever the table; which are looked at again is not told."""
    for seed in range(5):
        heard = Steps()
        curator = Curator(
            random_table(50, seed=seed),
            budget=Budget(Fraction(1)),
            neighbours=Neighbours(),
            entropy=SeededEntropy(seed),
            progress=heard,
        )
        getattr(curator, verb)(WORKLOAD, against=Zeros(DOMAIN, curator.total), picks=4, rho=TENTH)
        assert heard.heard == list(range(len(WORKLOAD) * (2 if verb == "draw" else 1)))


def test_a_query_that_is_out_of_the_draw_must_exist() -> None:
    curator = gate()
    nowhere = Query(WORKLOAD.thresholds[0], WORKLOAD.thresholds[0].cells(DOMAIN))
    with pytest.raises(BadWorkload, match="does not have"):
        curator.select(WORKLOAD, against=Zeros(DOMAIN, curator.total), picks=1, rho=TENTH, without=[nowhere])
    assert curator.budget.spent == 0
