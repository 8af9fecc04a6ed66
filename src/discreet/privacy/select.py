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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice

import numpy as np
from numpy.typing import NDArray

from discreet.data.sparse import Piece
from discreet.errors import BadSetting, Bug
from discreet.privacy.entropy import Entropy, below, exp_minus, happens

Ints = NDArray[np.int64]
Pick = tuple[int, int]
"""A query as (number of its threshold, cell)."""

_Place = tuple[int, int, int]
"""A member of a group as (group, number of its threshold, rank among the cells of that threshold with its score)."""

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
        counting: Hears which threshold is being counted, one after the other. Which are looked at later is private.
    """

    sizes: Sequence[int]
    pieces: Callable[[int], Iterable[Piece]]
    counting: Callable[[int], None] = lambda _: None

    def survey(self, number: int, cells: Sequence[int] = ()) -> tuple[Histogram, Ints]:
        """The histogram of one threshold, and the scores of some of its cells, for the price of one look at it."""
        self.counting(number)
        tally = _Tally()
        wanted = np.array(cells, dtype=np.int64)
        found = np.zeros(len(wanted), dtype=np.int64)
        for piece in self.pieces(number):
            tally.add(piece.values)
            found += piece.at(wanted)
        return tally.result(), found

    def members(self, number: int, ranks: Mapping[int, Ints]) -> dict[int, Ints]:
        """For each score, the cells of these ranks (from 0, ascending) among the cells of a threshold that have it."""
        found = {score: np.full(len(wanted), -1, dtype=np.int64) for score, wanted in ranks.items()}
        passed = dict.fromkeys(ranks, 0)
        wanting = list(ranks)
        for piece in self.pieces(number):
            for score in wanting:
                wanted, before = ranks[score], passed[score]
                if score:
                    places = np.flatnonzero(piece.values == score)
                    here = (wanted >= before) & (wanted < before + len(places))
                    found[score][here] = piece.cells[places[wanted[here] - before]]
                else:  # before the j-th cell c_j that is not zero lie c_j - j zeros
                    places = np.flatnonzero(piece.values)
                    scored = piece.cells[places]
                    behind = np.searchsorted(scored - np.arange(before, before + len(scored)), wanted, side="right")
                    here = (found[0] < 0) & (behind < len(scored))
                    found[0][here] = wanted[here] + before + behind[here]
                passed[score] += len(places)
            wanting = [score for score in wanting if (found[score] < 0).any()]
            if not wanting:
                return found
        if 0 in found:
            found[0] = np.where(found[0] < 0, ranks[0] + passed[0], found[0])
        if any((cells < 0).any() for cells in found.values()):
            raise Bug("A score has fewer queries than were counted.")
        return found


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
    out = set(without)
    left = sum(scores.sizes) - len(out)
    if left < (1 if again else picks):
        raise BadSetting(f"{picks} queries cannot be picked from {left}.")
    return _Urn(scores, exponent, out, entropy).draw(picks, again=again)


class _Urn:
    """All queries grouped by score."""

    def __init__(self, scores: Scores, exponent: Fraction, out: set[Pick], entropy: Entropy) -> None:
        self._scores = scores
        self._exponent = exponent
        self._entropy = entropy
        self._out = out
        cells: dict[int, list[int]] = {}
        for number, cell in out:
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
        self._free = list(self._many)
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

    def draw(self, picks: int, *, again: bool) -> list[Pick]:
        """Some queries, each of them once unless they may be drawn again.

        Which scores are drawn depends on how many queries have each, not on which these are. So scores are drawn
        first, and then the queries of all of them are found together, with one look at each threshold: the members of
        each group in random order, of which those that are in the draw count.
        """
        groups = [self._draw_group(again=again) for _ in range(picks)]
        found: dict[int, list[Pick]] = {group: [] for group in groups}
        missing = Counter(groups)
        order = {group: self._in_random_order(group, again=again) for group in groups}
        while missing:
            proposed = [
                place
                for group, many in missing.items()
                for place in islice(order[group], many * (self._counted[group] // self._free[group]))
            ]
            for group, pick in self._find(proposed):
                if missing[group] and pick not in self._out:
                    found[group].append(pick)
                    missing[group] -= 1
            missing = +missing
        members = {group: iter(drawn) for group, drawn in found.items()}
        return [next(members[group]) for group in groups]

    def _draw_group(self, *, again: bool) -> int:
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
                break
            rejected += 1
        if not again:
            self._many[group] -= 1
            self._gone[group] += 1
        return group

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

    def _in_random_order(self, group: int, *, again: bool) -> Iterator[_Place]:
        """The members of a group: a shuffle that is made as far as it is asked for; or independent draws."""
        bounds = list(accumulate(self._spread(group)))
        moved: dict[int, int] = {}
        left = bounds[-1]
        while left:
            at = below(self._entropy, left)
            rank = moved.get(at, at)
            number = bisect_right(bounds, rank)
            yield group, number, rank - (bounds[number - 1] if number else 0)
            if not again:
                left -= 1
                moved[at] = moved.pop(left, left)

    def _spread(self, group: int) -> list[int]:
        """How many members of a group each threshold has."""
        score = self._values[group]
        return [
            size - int(histogram[1].sum()) if not score else _count_of(histogram, score)
            for size, histogram in zip(self._scores.sizes, self._per_threshold, strict=True)
        ]

    def _find(self, places: Sequence[_Place]) -> Iterator[tuple[int, Pick]]:
        """The queries at these places in their groups, with one look at each threshold."""
        ranks: dict[int, dict[int, list[int]]] = {}
        for group, number, rank in places:
            ranks.setdefault(number, {}).setdefault(self._values[group], []).append(rank)
        cells = {}
        for number, wanted in ranks.items():
            listed = {score: np.array(some, dtype=np.int64) for score, some in wanted.items()}
            cells[number] = {
                score: iter(found.tolist()) for score, found in self._scores.members(number, listed).items()
            }
        for group, number, _ in places:
            yield group, (number, next(cells[number][self._values[group]]))


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
