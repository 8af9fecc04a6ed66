"""Curator: the gate. The only object that reads exact counts for anyone but their owner.

Each verb validates its public arguments, charges the budget, and only then reads the table. What it returns has
been paid for; what it computes on the way (counts, scores, the group a query was drawn from) never leaves. All verbs
stand in this one file, long as it is, so that whoever audits the gate has it before them as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil, prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet import _check
from discreet.data.domain import Domain
from discreet.data.sparse import Piece, Run, Sparse
from discreet.errors import BadSetting, BadWorkload
from discreet.privacy import noise, rare, residual
from discreet.privacy.budget import Budget
from discreet.privacy.entropy import Entropy
from discreet.privacy.event import DrawsEvent, GaussianEvent, SelectionEvent
from discreet.privacy.loss import root_below
from discreet.privacy.measurement import Measurement, NoisyMaximum, require_measurable
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.noise import DiscreteGaussian
from discreet.privacy.scales import of_residuals, of_sparse
from discreet.privacy.select import Scores, select
from discreet.privacy.shares import SELECTION_GRID, grid_of, shares, whole_weights
from discreet.progress import SILENT, Progress
from discreet.queries.answers import GRID, Answers, differences
from discreet.queries.expand import Lookup
from discreet.queries.threshold import Attributes, Query, Threshold, at_cells
from discreet.queries.workload import Workload

Ints = NDArray[np.int64]
Signed = tuple[Query, int]
"""A query, and in which direction."""

NUMBER_OF_ROWS, CERTIFICATE = "number of rows", "certificate"
"""What the ledger calls the two steps that no mechanism makes."""

PRICES = ("jointly", "singly")
"""How cells measured together are priced: by what one person can change in all of them, or each on its own."""


class Counted(Protocol):
    """What the gate needs of a table."""

    @property
    def domain(self) -> Domain:
        """Public."""

    def rows(self) -> int:
        """Exact number of rows."""

    def counts(self, sets: Sequence[Attributes], *, progress: Progress = SILENT) -> list[Sparse]:
        """Exact counts of some marginals."""


class Curator:
    """Private verbs over one table, under one budget.

    Args:
        table: Private.
        budget: What may be spent.
        neighbours: Whose data is protected.
        entropy: Where noise comes from.
        progress: Hears which threshold is being looked at: public facts only.
    """

    def __init__(
        self,
        table: Counted,
        *,
        budget: Budget,
        neighbours: Neighbours,
        entropy: Entropy,
        progress: Progress = SILENT,
    ) -> None:
        self._table = table
        self._progress = progress
        self._counts: dict[Attributes, Sparse] = {}
        self._noisy_total: int | None = None
        self._total_variance = Fraction(0)
        self._entropy = entropy
        self.budget = budget
        self.neighbours = neighbours

    @property
    def domain(self) -> Domain:
        """Public."""
        return self._table.domain

    @property
    def total(self) -> int:
        """Number of rows: the true one where it is public, else the noisy one paid for by `measure_total`."""
        if self.neighbours.total_is_public:
            return self._table.rows()
        if self._noisy_total is None:
            raise BadSetting("Under add-remove the number of rows is private: call measure_total first.")
        return self._noisy_total

    @property
    def total_variance(self) -> Fraction:
        """Parameter of the noise in `total`; zero where that is the true one."""
        return self._total_variance

    def measure_total(self, *, rho: Fraction, label: str = NUMBER_OF_ROWS) -> None:
        """The number of rows plus noise; it stands for n from here on (at least 1).

        Privacy:
            One person adds or removes at most C rows, so noise of variance C^2 / (2 rho) costs `rho`.
        """
        _check.positive("rho", rho)
        sigma_squared = Fraction(self.neighbours.single**2) / (2 * Fraction(rho))
        self._charge_gaussian([(self.neighbours.single**2, sigma_squared)], label)
        drawn = noise.draw(DiscreteGaussian(sigma_squared), 1, self._entropy)
        self._noisy_total = max(1, self._table.rows() + int(drawn[0]))
        self._total_variance = sigma_squared

    def measure(
        self,
        marginals: Sequence[Attributes],
        *,
        rho: Fraction,
        weights: Sequence[float] | None = None,
        priced: str = "jointly",
        label: str = "marginals",
    ) -> list[Measurement]:
        """Count whole marginals and add integer Gaussian noise to every cell.

        Privacy:
            One person moves each marginal by a squared L2 distance of at most D (2 C^2 under replace-one, C^2
            under add-remove), so noise of variance sigma_i^2 on the i-th costs the sum of D / (2 sigma_i^2).
            The budget is shared in proportion to the weights, which minimises the sum of w_i^2 sigma_i^2 for a
            given cost. `priced="singly"` charges every cell on its
            own, as the RAP papers do: the noise is then larger than the charge requires.

        Args:
            marginals: Public; distinct, attributes in the domain's order.
            rho: Loss to spend.
            weights: How much an error on each marginal matters; equal by default.
            priced: `jointly` or `singly`.
            label: What the ledger calls this step.
        """
        _check.positive("rho", rho)
        _check.one_of("priced", priced, PRICES)
        sizes = [self.domain.project(attributes).size for attributes in marginals]
        _require_distinct("marginal", marginals)
        require_measurable(self.domain, marginals)
        joint, single = self.neighbours.marginal_squared, self.neighbours.single**2
        costs = [joint if priced == "jointly" else single * size for size in sizes]
        parts = shares(weights, costs)
        sigmas = [cost / (2 * Fraction(rho) * share) for cost, share in zip(costs, parts, strict=True)]
        self._charge_gaussian(zip(costs, sigmas, strict=True), label)
        self._read(marginals)
        return [
            Measurement(Threshold(attributes), None, self._noisy(attributes, size, sigma), sigma)
            for attributes, size, sigma in zip(marginals, sizes, sigmas, strict=True)
        ]

    def measure_sparse(
        self,
        marginals: Sequence[Attributes],
        *,
        rho: Fraction,
        weights: Sequence[float] | None = None,
        label: str = "marginals",
    ) -> list[Measurement]:
        """Count whole marginals of any size and add noise to every cell, but list only what stands out.

        Privacy:
            That of `measure`, followed by leaving out every noisy count below `least`, cell by cell, which is
            post-processing. `least` is public: from the scale of the noise and the number of cells, such that about
            `SURVIVORS` cells of nothing but noise are listed. Noise on the zeros is not drawn one by one but has that
            very distribution (`discreet.privacy.rare`), and cells leave sorted, whether they were zeros or not.

        Args:
            marginals: Public; distinct, attributes in the domain's order.
            rho: Loss to spend.
            weights: How much an error on each marginal matters; equal by default.
            label: What the ledger calls this step.
        """
        _require_distinct("marginal", marginals)
        scales = of_sparse(self.domain, self.neighbours, marginals, rho, weights)
        cost = self.neighbours.marginal_squared
        self._charge_gaussian([(cost, each.sigma_squared) for each, _ in scales], label)
        self._read(marginals)
        sizes = [self.domain.project(attributes).size for attributes in marginals]
        self._progress.stage(f"{label} ({sum(sizes):,} cells)", len(marginals))
        measured = []
        for at, (attributes, size, (each, least)) in enumerate(zip(marginals, sizes, scales, strict=True)):
            self._progress.step(at)
            cells, counts = self._standing_out(attributes, size, each, least)
            measured.append(Measurement(Threshold(attributes), cells, counts, each.sigma_squared, least))
        return measured

    def measure_residuals(
        self,
        marginals: Sequence[Attributes],
        *,
        rho: Fraction,
        weights: Sequence[float] | None = None,
        label: str = "residuals",
    ) -> list[Measurement]:
        """Count what marginals say beyond their sub-marginals, and add integer Gaussian noise to every entry.

        Privacy:
            The residual of the i-th marginal, times its number of cells n_i, is a vector of integers. Noise of variance
            n_i^2 sigma_i^2 on every entry costs (squared L2 change of the residual) / (2 sigma_i^2), and all of them
            together what the same person can change in all at once: half of `Neighbours.residuals_squared` with weights
            1 / sigma_i^2, exactly. Those are in proportion to the weights given, and scaled such that this is `rho`.
            (Should integers overflow all the same, they do so after the noise as it were: addition and
            multiplication modulo 2^64 are post-processing of the exact sum.)

        Args:
            marginals: Public; distinct, attributes in the domain's order, each of at least two values.
            rho: Loss to spend.
            weights: Precisions 1 / sigma_i^2, relative to each other; equal by default.
            label: What the ledger calls this step.
        """
        _require_distinct("residual", marginals)
        noises, charged = of_residuals(self.domain, self.neighbours, marginals, rho, weights)
        sizes = [self.domain.project(attributes).sizes for attributes in marginals]
        require_measurable(self.domain, marginals)
        residual.require_whole(max(map(prod, sizes)), self.total)
        self.budget.charge(GaussianEvent(charged), label)
        self._read(marginals)
        self._progress.stage(f"{label} ({sum(map(prod, sizes)):,} cells)", len(marginals))
        measured = []
        for at, (attributes, each, added) in enumerate(zip(marginals, sizes, noises, strict=True)):
            self._progress.step(at)
            counts = residual.scaled(self._counts[attributes].dense(prod(each)), each)
            for start in range(0, len(counts), residual.DRAWN):
                part = counts[start : start + residual.DRAWN]
                part += added.reject(len(part), self._entropy)  # a scale of its own: a table would not pay
            measured.append(Measurement(Threshold(attributes), None, counts, added.sigma_squared, residual=True))
        return measured

    def measure_queries(
        self, queries: Sequence[Query], *, rho: Fraction, priced: str = "jointly", label: str = "queries"
    ) -> list[Measurement]:
        """Count single queries and add integer Gaussian noise of one scale to each.

        Privacy:
            The squared L2 sensitivity D of the whole batch is `Neighbours.batch_squared`: one person moves few
            queries of each threshold, two of a marginal. Noise of variance D / (2 rho) costs `rho`.
            `priced="singly"` takes D as the number of queries times C^2, the papers' split.
        """
        _check.positive("rho", rho)
        _check.one_of("priced", priced, PRICES)
        _require_distinct("query", queries)
        for query in queries:
            if not 0 <= query.cell < query.threshold.cells(self.domain):
                raise BadWorkload(f"{query.threshold} has no query number {query.cell}.")
        if priced == "jointly":
            squared = self.neighbours.batch_squared((q.threshold, q.threshold.met(self.domain)) for q in queries)
        else:
            squared = len(queries) * self.neighbours.single**2
        sigma_squared = Fraction(squared) / (2 * Fraction(rho))
        self._charge_gaussian([(squared, sigma_squared)], label)
        by_threshold: dict[Threshold, list[int]] = {}
        for query in queries:
            by_threshold.setdefault(query.threshold, []).append(query.cell)
        self._read(subset for threshold in by_threshold for _, subset in threshold.terms())
        return [
            self._noisy_queries(threshold, np.sort(np.array(cells, dtype=np.int64)), sigma_squared)
            for threshold, cells in by_threshold.items()
        ]

    def select(
        self,
        workload: Workload,
        *,
        against: Answers,
        picks: int,
        rho: Fraction,
        without: Iterable[Query] = (),
        label: str = "selection",
    ) -> list[Query]:
        """Pick distinct queries on which the public answers err most, by the exponential mechanism.

        Privacy:
            The score of a query is its weight times |count - answer * total|, with answers rounded to a public
            grid. One person moves a count by at most C, so a score moves by at most C times the largest weight;
            `picks` draws at epsilon each cost picks * epsilon^2 / 8, so epsilon = sqrt(8 rho / picks). This is
            the distribution of Gumbel noise of scale sqrt(picks / (2 rho)) on counts: with half of a round's
            budget spent here, sqrt(K / rho_round), as Aydore et al. (2021) have it. (Algorithm 4 of Avent and
            Korolova (2023) prints sqrt(K / (2 rho_round)), which spends half as much again.)

        Args:
            workload: Public.
            against: Public answers.
            picks: How many queries.
            rho: Loss to spend.
            without: Queries that are out of the draw.
            label: What the ledger calls this step.
        """
        _check.positive("rho", rho)
        _check.whole("picks", picks)
        number = {threshold: position for position, threshold in enumerate(workload)}
        excluded = {(number[query.threshold], query.cell) for query in without if query.threshold in number}
        sizes = [threshold.cells(self.domain) for threshold in workload]
        if any(not 0 <= cell < sizes[position] for position, cell in excluded):
            raise BadWorkload("A query that is out of the draw names a cell that its threshold does not have.")
        if picks > workload.size - len(excluded):
            raise BadSetting(f"{picks} queries cannot be picked from {workload.size - len(excluded):,}.")
        epsilon, weights, grid, exponent = self._drawing(workload, picks, rho)
        self.budget.charge(SelectionEvent(picks, epsilon), label)
        self._read(workload.marginals)
        self._progress.stage(f"{label} {picks} of {workload.size:,} queries", len(workload))

        def pieces(index: int) -> Iterator[Piece]:
            for piece in differences(against, workload.thresholds[index], self._in_units(grid), grid=grid):
                yield piece.magnitudes(weights[index])

        scores = Scores(sizes, pieces, self._progress.step)
        drawn = select(scores, picks=picks, exponent=exponent, without=excluded, entropy=self._entropy)
        return [Query(workload.thresholds[position], cell) for position, cell in drawn]

    def draw(
        self, workload: Workload, *, against: Answers, picks: int, rho: Fraction, label: str = "draws"
    ) -> list[Signed]:
        """Draw queries with a sign, independently: those that the public answers get wrong in that direction.

        Privacy:
            Each query stands twice in the draw, once with the score weight * (count - answer * total) and once with
            its negative. One person moves either by at most C times the largest weight, so `picks` independent draws
            at epsilon each cost picks * epsilon^2 / 8.

        Returns:
            Queries with 1 where the count is the larger one, and -1 where the answer is; some perhaps several times.
        """
        _check.positive("rho", rho)
        _check.whole("picks", picks)
        epsilon, weights, grid, exponent = self._drawing(workload, picks, rho)
        self.budget.charge(DrawsEvent(picks, epsilon), label)
        self._read(workload.marginals)
        self._progress.stage(f"{label} {picks} of {workload.size:,} queries", 2 * len(workload))

        def pieces(index: int) -> Iterator[Piece]:
            at, below = divmod(index, 2)
            for piece in differences(against, workload.thresholds[at], self._in_units(grid), grid=grid):
                yield piece.times(weights[at] if below else -weights[at])

        sizes = [threshold.cells(self.domain) for threshold in workload for _ in (1, -1)]
        scores = Scores(sizes, pieces, self._progress.step)
        drawn = select(scores, picks=picks, exponent=exponent, again=True, entropy=self._entropy)
        return [(Query(workload.thresholds[at // 2], cell), -1 if at % 2 else 1) for at, cell in drawn]

    def select_marginals(
        self,
        marginals: Sequence[Attributes],
        *,
        against: Answers,
        picks: int = 1,
        rho: Fraction,
        weights: Sequence[float] | None = None,
        handicaps: Sequence[float] | None = None,
        label: str = "selection",
    ) -> list[Attributes]:
        """Pick distinct marginals that the public answers get most wrong in all, by the exponential mechanism.

        Privacy:
            The score of a marginal is its weight times (the sum over its cells of |count - answer * total|, less its
            handicap), with answers rounded to a public grid. One person moves the sum by at most the L1 distance by
            which it moves the counts (2 C under replace-one, C under add-remove), so `picks` draws at epsilon each,
            with that times the largest weight as sensitivity, cost picks * epsilon^2 / 8.

        Args:
            marginals: Public; distinct.
            against: Public answers.
            picks: How many.
            rho: Loss to spend.
            weights: How much an error on each marginal matters; equal by default.
            handicaps: What is taken off each sum, in rows: the error that measuring it would leave, say. Public.
            label: What the ledger calls this step.
        """
        _check.positive("rho", rho)
        _check.whole("picks", picks)
        if picks > len(marginals) or len(set(marginals)) != len(marginals):
            raise BadWorkload(f"{picks} marginals cannot be picked from {len(set(marginals))} distinct ones.")
        whole = whole_weights(weights or [1.0] * len(marginals))
        off = [round(rows * SELECTION_GRID) for rows in handicaps or [0.0] * len(marginals)]
        epsilon = root_below(8 * Fraction(rho) / picks)
        exponent = epsilon / (2 * self.neighbours.marginal_absolute * SELECTION_GRID * max(whole))
        self.budget.charge(SelectionEvent(picks, epsilon), label)
        self._read(marginals)
        self._progress.stage(f"{label} {picks} of {len(marginals):,} marginals", len(marginals))
        values = np.zeros(len(marginals), dtype=np.int64)
        for at, (attributes, weight) in enumerate(zip(marginals, whole, strict=True)):
            self._progress.step(at)
            lookup = self._in_units(SELECTION_GRID)
            found = differences(against, Threshold(attributes), lookup, grid=SELECTION_GRID)
            values[at] = weight * (sum(int(np.abs(piece.values).sum()) for piece in found) - off[at])
        scores = Scores([len(marginals)], lambda _: [Run(0, values)])
        return [marginals[at] for _, at in select(scores, picks=picks, exponent=exponent, entropy=self._entropy)]

    def worst(self, workload: Workload, *, against: Answers, rho: Fraction, label: str = CERTIFICATE) -> NoisyMaximum:
        """The largest |count - answer * total| over a workload, rounded up to a whole number, plus noise.

        Privacy:
            The answers are public and fixed. One person moves each count by at most C, hence the largest
            difference by at most C, and rounding up to integers keeps that (C is an integer). Discrete Gaussian
            noise of variance C^2 / (2 rho) costs `rho`.
        """
        _check.positive("rho", rho)
        sigma_squared = Fraction(self.neighbours.single**2) / (2 * Fraction(rho))
        self._charge_gaussian([(self.neighbours.single**2, sigma_squared)], label)
        self._read(workload.marginals)
        largest = 0
        self._progress.stage(f"{label}: largest of {workload.size:,} errors", len(workload))
        for number, threshold in enumerate(workload):
            self._progress.step(number)
            for piece in differences(against, threshold, self._in_units(GRID)):
                largest = max(largest, int(np.abs(piece.values).max(initial=0)))
        drawn = noise.draw(DiscreteGaussian(sigma_squared), 1, self._entropy)
        return NoisyMaximum(ceil(Fraction(largest, GRID)) + int(drawn[0]), sigma_squared)

    def _drawing(self, workload: Workload, picks: int, rho: Fraction) -> tuple[Fraction, list[int], int, Fraction]:
        """Epsilon of each draw, whole weights of the thresholds, the grid of scores, and the exponent of a unit."""
        epsilon = root_below(8 * Fraction(rho) / picks)
        weights, grid = whole_weights(workload.weights), grid_of(workload)
        return epsilon, weights, grid, epsilon / (2 * self.neighbours.single * grid * max(weights))

    # What follows reads the table; every caller above has charged first.

    def _charge_gaussian(self, costs: Iterable[tuple[int, Fraction]], label: str) -> None:
        weighted = Fraction(0)
        for squared, sigma_squared in costs:
            DiscreteGaussian(sigma_squared)  # refuses a scale that cannot be drawn
            weighted += squared / sigma_squared
        self.budget.charge(GaussianEvent(weighted), label)

    def _read(self, sets: Iterable[Attributes]) -> None:
        missing = [attributes for attributes in dict.fromkeys(sets) if attributes not in self._counts]
        if missing:
            self._counts.update(zip(missing, self._table.counts(missing, progress=self._progress), strict=True))

    def _noisy(self, attributes: Attributes, size: int, sigma_squared: Fraction) -> Ints:
        drawn = noise.draw(DiscreteGaussian(sigma_squared), size, self._entropy)
        exact = self._counts[attributes]
        drawn[exact.cells] += exact.values
        return drawn

    def _standing_out(
        self, attributes: Attributes, size: int, added: DiscreteGaussian, least: int
    ) -> tuple[Ints, Ints]:
        exact = self._counts[attributes]
        counts = exact.values + noise.draw(added, len(exact.cells), self._entropy)
        kept = counts >= least
        ranks, values = rare.exceeding(added, size - len(exact.cells), least, self._entropy)
        # Before the j-th cell c_j that is not zero lie c_j - j zeros.
        zeros = ranks + np.searchsorted(exact.cells - np.arange(len(exact.cells)), ranks, side="right")
        cells = np.concatenate([exact.cells[kept], zeros])
        order = np.argsort(cells)
        return cells[order], np.concatenate([counts[kept], values])[order]

    def _noisy_queries(self, threshold: Threshold, cells: Ints, sigma_squared: Fraction) -> Measurement:
        counts = noise.draw(DiscreteGaussian(sigma_squared), len(cells), self._entropy)
        counts += at_cells(threshold, cells, self.domain, lambda subset, part: self._counts[subset].at(part))
        return Measurement(threshold, cells, counts, sigma_squared)

    def _in_units(self, grid: int) -> Lookup:
        """Exact counts, in units of 1/grid of a row."""
        return lambda attributes: self._counts[attributes].times(grid)


def _require_distinct(what: str, asked: Sequence[Attributes] | Sequence[Query]) -> None:
    if not asked or len(set(asked)) != len(asked):
        raise BadWorkload(f"Measure at least one {what}, and each only once.")
