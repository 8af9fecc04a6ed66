"""Selection of the queries with the largest scores, from a histogram of the scores.

The exponential mechanism gives equal scores equal chances. So it is enough to count how many queries have each
score, draw a score s with probability proportional to (number of queries with it) * exp(exponent * s), and then one
of its queries uniformly. Repeating this without replacement has the distribution of one-shot Gumbel top-k over
all queries (the Plackett-Luce distribution), at a cost that depends on the number of non-zero and of distinct
scores, not on the number of queries: the group of the zeros is counted by subtraction, and a member of it is found by
its rank among the cells that are not listed.

Exactness: scores are integers. A score is proposed with integer weights that bound exp(-exponent * (best - s)) *
2^60 from above, and accepted with the exact ratio, decided by enclosures and as many random bits as it takes. No
floating-point number decides anything.

Privacy:
    If scores have sensitivity D (in units of the grid they are counted in), each pick with exponent
    = epsilon / (2 D) is the exponential mechanism at epsilon, so `picks` of them cost picks * epsilon^2 / 8 of
    zCDP.

References: McSherry, Talwar (2007); Durfee, Rogers (2019), for top-k; Cesar, Rogers (2021), for the cost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from discreet.data.sparse import Piece
from discreet.errors import BadSetting, Bug
from discreet.privacy.entropy import Entropy, below, exp_minus, happens

Ints = NDArray[np.int64]
Pick = tuple[int, int]
"""A query as (number of its threshold, cell)."""

Histogram = tuple[Ints, Ints]
"""Distinct scores that are not zero, ascending, and how many queries have each."""

_SCALE = 60
_PATIENCE = 64
"""Rejections in a row after which a slower, certain way is taken."""

_DENSE = 2**24
"""Scores below this may be counted in an array."""


@dataclass(frozen=True)
class Scores:
    """Integer scores of very many queries, of which most may be zero.

    Attributes:
        sizes: Number of queries of each threshold.
        pieces: Gives the scores of a threshold again, in stretches of cells in order; always the same.
    """

    sizes: Sequence[int]
    pieces: Callable[[int], Iterable[Piece]]

    def survey(self, number: int, cells: Sequence[int] = ()) -> tuple[Histogram, Ints]:
        """The histogram of one threshold, and the scores of some of its cells, for the price of one look at it."""
        tally = _Tally()
        wanted = np.array(cells, dtype=np.int64)
        found = np.zeros(len(wanted), dtype=np.int64)
        for piece in self.pieces(number):
            tally.add(piece.values)
            found += piece.at(wanted)
        return tally.result(), found

    def members(self, number: int, score: int, ranks: Ints) -> Ints:
        """The cells of these ranks (from 0, ascending) among the cells of one threshold with a given score."""
        found = np.full(len(ranks), -1, dtype=np.int64)
        passed = 0
        for piece in self.pieces(number):
            if score:
                places = np.flatnonzero(piece.values == score)
                here = (ranks >= passed) & (ranks < passed + len(places))
                found[here] = piece.cells[places[ranks[here] - passed]]
                passed += len(places)
            else:  # before the j-th cell c_j that is not zero lie c_j - j zeros
                scored = piece.cells[np.flatnonzero(piece.values)]
                behind = np.searchsorted(scored - np.arange(passed, passed + len(scored)), ranks, side="right")
                here = (found < 0) & (behind < len(scored))
                found[here] = ranks[here] + passed + behind[here]
                passed += len(scored)
            if (found >= 0).all():
                return found
        if score:
            raise Bug("A score has fewer queries than were counted.")
        return np.where(found < 0, ranks + passed, found)


def select(
    scores: Scores,
    *,
    picks: int,
    exponent: Fraction,
    without: Iterable[Pick] = (),
    again: bool = False,
    entropy: Entropy,
) -> list[Pick]:
    """Draw `picks` queries, each with chances proportional to exp(exponent * score).

    Args:
        scores: Private; only the returned picks leave.
        picks: How many, at most the number of queries that are not in `without`.
        exponent: epsilon / (2 * sensitivity), for scores in the units they are counted in.
        without: Queries that are out of the draw: public.
        again: Whether a drawn query goes back, so that draws are independent; else they are distinct.
        entropy: Random bits.
    """
    taken = set(without)
    left = sum(scores.sizes) - len(taken)
    if left < (1 if again else picks):
        raise BadSetting(f"{picks} queries cannot be picked from {left}.")
    urn = _Urn(scores, exponent, taken, entropy)
    return [urn.draw(again=again) for _ in range(picks)]


class _Urn:
    """All queries grouped by score."""

    def __init__(self, scores: Scores, exponent: Fraction, taken: set[Pick], entropy: Entropy) -> None:
        self._scores = scores
        self._exponent = exponent
        self._entropy = entropy
        self._taken = taken
        cells: dict[int, list[int]] = {}
        for number, cell in taken:
            cells.setdefault(number, []).append(cell)
        surveyed = [scores.survey(number, cells.get(number, ())) for number in range(len(scores.sizes))]
        self._per_threshold = [histogram for histogram, _ in surveyed]
        values, many = _merge(self._per_threshold)
        zeros = sum(scores.sizes) - int(many.sum())
        self._values = [0, *values.tolist()]
        self._counted = [zeros, *many.tolist()]
        self._many = list(self._counted)
        group_of = {score: group for group, score in enumerate(self._values)}
        for score in np.concatenate([found for _, found in surveyed]).tolist():
            self._many[group_of[score]] -= 1
        self._refresh()

    def _refresh(self) -> None:
        """Weigh the groups as they are now, relative to the best that is left."""
        self._best = max(score for score, many in zip(self._values, self._many, strict=True) if many)
        drop = np.minimum(0.0, np.array(self._values, dtype=np.float64) - self._best) * float(self._exponent)
        # An upper bound of exp(drop) * 2^60 with a margin far above the error of floating-point exp.
        bound = np.floor(np.exp(drop) * (1 + 2.0**-30) * 2.0**_SCALE) + 1
        self._weights = [int(weight) for weight in bound]
        weighted = (many * weight for many, weight in zip(self._many, self._weights, strict=True))
        self._cumulative = list(accumulate(weighted))
        self._gone: Counter[int] = Counter()

    def draw(self, *, again: bool) -> Pick:
        """One more query; it is taken out unless it may be drawn again."""
        group = self._draw_group()
        pick = self._draw_member(group)
        if again:
            return pick
        self._taken.add(pick)
        self._many[group] -= 1
        self._gone[group] += 1
        return pick

    def _draw_group(self) -> int:
        rejected = 0
        while True:
            if rejected > _PATIENCE:
                self._refresh()
                rejected = 0
            ticket = below(self._entropy, self._cumulative[-1])
            group = bisect_right(self._cumulative, ticket)
            start = self._cumulative[group - 1] if group else 0
            weight = self._weights[group]
            if (ticket - start) // weight >= self._gone[group] and self._accept(group, weight):
                return group
            rejected += 1

    def _accept(self, group: int, weight: int) -> bool:
        """True with probability exp(-exponent * (best - score)) * 2^60 / weight, exactly."""
        gap = self._exponent * (self._best - self._values[group])
        exact = exp_minus(gap)

        def ratio(bits: int) -> tuple[int, int]:
            low, high = exact(bits + _SCALE)
            if low > weight << bits:
                raise Bug("A selection weight lies above its bound.")
            return low // weight, -(-high // weight)

        return happens(self._entropy, ratio)

    def _draw_member(self, group: int) -> Pick:
        score = self._values[group]
        many = [
            size - int(histogram[1].sum()) if not score else _count_of(histogram, score)
            for size, histogram in zip(self._scores.sizes, self._per_threshold, strict=True)
        ]
        if self._many[group] * _PATIENCE < self._counted[group]:
            return self._draw_listed(score, many)
        while True:
            rank = below(self._entropy, sum(many))
            number = bisect_right(list(accumulate(many)), rank)
            inside = np.array([rank - sum(many[:number])])
            pick = number, int(self._scores.members(number, score, inside)[0])
            if pick not in self._taken:
                return pick

    def _draw_listed(self, score: int, many: Sequence[int]) -> Pick:
        """A query with this score, uniformly among the few that are left: nearly all of the group are taken."""
        left = [
            (number, int(cell))
            for number, here in enumerate(many)
            for cell in self._scores.members(number, score, np.arange(here))
            if (number, int(cell)) not in self._taken
        ]
        return left[below(self._entropy, len(left))]


class _Tally:
    """A histogram that grows by pieces: dense over scores from zero to a limit, sparse otherwise."""

    def __init__(self) -> None:
        self._dense = np.zeros(0, dtype=np.int64)
        self._sparse: list[Histogram] = []

    def add(self, values: NDArray[np.integer]) -> None:
        highest = int(values.max(initial=0))
        if highest <= 8 * len(values) and highest < _DENSE and values.min(initial=0) >= 0:
            many = np.bincount(values)
            if len(many) > len(self._dense):
                many[: len(self._dense)] += self._dense
                self._dense = many
            else:
                self._dense[: len(many)] += many
            return
        self._sparse.append(np.unique(values, return_counts=True))
        if len(self._sparse) > _PATIENCE:
            self._sparse = [_merge(self._sparse)]

    def result(self) -> Histogram:
        """All that was added."""
        distinct = np.flatnonzero(self._dense)
        values, many = _merge([(distinct, self._dense[distinct]), *self._sparse])
        scored = values != 0
        return values[scored], many[scored]


def _merge(histograms: Sequence[Histogram]) -> Histogram:
    """One histogram from several."""
    if len(histograms) == 1:
        return histograms[0]
    values = np.concatenate([values for values, _ in histograms])
    many = np.concatenate([many for _, many in histograms])
    distinct, inverse = np.unique(values, return_inverse=True)
    summed = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(summed, inverse, many)
    return distinct, summed


def _count_of(histogram: Histogram, score: int) -> int:
    values, many = histogram
    position = int(np.searchsorted(values, score))
    return int(many[position]) if position < len(values) and values[position] == score else 0
