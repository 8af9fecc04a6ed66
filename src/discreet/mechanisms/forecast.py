"""What each mechanism will take: cells, memory and time, from public facts.

Every forecast writes down the work of a run (marginals times rows that are counted, cells times relaxed rows that are
multiplied, rounds times queries that are scored) and multiplies it by constants. These were measured on one core of two
servers, on the tables of docs/plan.md; `discreet.publish.planning` scales them to the machine at hand. On the
tables of `discreet experiment family` time and memory come out within a factor of two, but for what docs/plan.md lists.
`python -m benchmarks plan` compares them with what happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import exp, log, prod, sqrt

from discreet.data.domain import Domain
from discreet.mechanisms import allotment, answering, auto, rap, residual, search
from discreet.mechanisms.cover import cells_at, cells_of, cover
from discreet.mechanisms.expected import of_fit, of_noise, of_others
from discreet.mechanisms.facts import Cost, Facts
from discreet.mechanisms.weights import MwemSettings
from discreet.models import smooth, tiles
from discreet.models.fit import FitSettings
from discreet.models.support import BYTES_EACH
from discreet.privacy.measurement import MOST_CELLS
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.noise import tabled
from discreet.privacy.shares import shares
from discreet.queries.threshold import Attributes
from discreet.queries.workload import Workload

BASE = 0.33e9
"""Bytes of Python and the libraries that read and count."""

COMPILED = 0.47e9
"""The same once code has been compiled."""

_MARGINAL, _ROW = 6e-4, 2e-8
"""Seconds to count a marginal: for each, and for each row of the table."""

_PAIR = 12.0
"""Bytes of a cell that is not empty, in exact counts."""

_DRAW, _REJECT, _PACK = 6e-8, 7e-7, 4e-7
"""Seconds to draw noise on a cell from a table, or by rejection, and to draw it and make a tile of it."""

_ENTRY, _WIDE = 6e-5, 4e-7
"""Seconds that a table takes for each unit of its scale, and a draw of noise that is too wide for one."""

_FLOP, _TOUCH, _BIT = 2e-11, 4.4e-9, 5.6e-9
"""Seconds of an operation in a matrix product, of an entry gathered for one, and of an entry of the rows in a step."""

_COMPILING, _WIDTH = 4.5, 0.7
"""Seconds to compile a fit, and more for each width of tiles."""

_KERNEL = 88
"""Bytes for each pair of values while a matrix that smooths steps is made."""

_SCORE, _WEIGHT, _SORT = 4e-11, 4e-9, 8e-8
"""Seconds to answer a query from a relaxed row, a marginal from a weight, and a marginal from an ordinary row."""


def all_zero(_: Facts) -> Cost:
    """Nothing is measured; anything may be wrong."""
    return Cost(0, BASE, 0.05, 1.0)


def gaussian(facts: Facts, priced: str = "jointly") -> Cost:
    """Noise on every marginal."""
    needed = facts.workload.marginals
    sizes = facts.sizes(needed)
    joint, single = facts.neighbours.marginal_squared, facts.neighbours.single**2
    costs = [joint if priced == "jointly" else single * size for size in sizes]
    parts = shares(list(needed.values()), costs)
    deviations = [sqrt(cost / (2 * facts.rho * part)) for cost, part in zip(costs, parts, strict=True)]
    listed = sum(sizes) if sum(sizes) <= MOST_CELLS else 0  # larger ones keep what stands out
    wide = max(deviations)
    drawing = _ENTRY * wide + _DRAW * listed if tabled(wide, sum(sizes)) else _WIDE * listed
    return Cost(
        sum(sizes),
        BASE + _counts(facts, needed) + 16 * listed,
        _counting(facts, needed) + drawing + _certifying(facts, 1.3 * _DRAW * listed),
        of_noise((deviation / facts.rows, size) for deviation, size in zip(deviations, sizes, strict=True)),
    )


def gaussian_paper(facts: Facts) -> Cost:
    """The same with every cell charged on its own."""
    return gaussian(facts, "singly")


def residual_planner(facts: Facts) -> Cost:
    """Noise on every residual, and the marginals put together from them."""
    needed = facts.workload.marginals
    planned = residual.plan(facts.workload, facts.neighbours, objective=facts.settings.objective)
    found = residual.variances(planned, needed, domain=facts.domain, neighbours=facts.neighbours, rho=facts.rho)
    every = residual.residuals_of(facts.workload)
    cells = cells_of(facts.domain, every)
    scoring = 5 * _DRAW * facts.workload.size
    return Cost(
        cells,
        BASE + _counts(facts, every) + 44 * cells,
        _counting(facts, every) + _MARGINAL * len(every) + _REJECT * cells + _certifying(facts, scoring),
        of_noise(
            (sqrt(found[names]) / facts.rows, size) for names, size in zip(needed, facts.sizes(needed), strict=True)
        ),
    )


def of_auto(facts: Facts) -> Cost:
    """Everything is measured and fitted once."""
    wanted = allotment.needed(facts.workload, facts.settings.order)
    deviation = _noise_of_auto(facts.workload, facts.rows, facts.neighbours, facts.rho, facts.settings)
    name = "auto, residuals" if _by_residuals(facts, wanted) else "auto"
    return _fitted(facts, list(wanted), _steps(facts, 0.045), auto.FIT, of_fit(deviation, name))


def of_rap(facts: Facts) -> Cost:
    """The same without smaller marginals; or rounds, each with a fit of what was selected so far."""
    settings: rap.Settings = facts.settings
    picks, order = rap.picks_of(settings), rap.order_of(facts.workload, settings)
    constants = FitSettings(max_steps=settings.max_steps)
    covering = cover(facts.workload.marginals, order)
    if picks is None:
        least = min(covering.values()) / sum(covering.values())
        deviation = facts.deviation / sqrt(least) / facts.rows
        return _fitted(facts, list(covering), _steps(facts, 0.115), constants, of_fit(deviation, "rap"))
    measured = sorted(covering, key=lambda names: facts.domain.project(names).size)[-settings.rounds * picks :]
    deviation = facts.deviation * sqrt(2 * len(measured)) / facts.rows
    steps = _steps(facts, 0.115) * (settings.rounds + 1) / 2  # a round fits what came before too
    once = _fitted(facts, measured, steps, constants, of_fit(deviation, "rap"))
    seconds = once.seconds + settings.rounds * _scoring_relaxed(facts) + _counting(facts, facts.workload.marginals)
    return Cost(once.cells, once.bytes + _counts(facts, facts.workload.marginals), seconds, once.largest_error)


def projected(facts: Facts, name: str) -> Cost:
    """Rounds of single queries, each followed by thousands of small steps; or all queries at once."""
    settings: rap.PaperSettings = facts.settings
    picks = rap.picks_of(settings)
    if picks is None:
        return _projected(facts, 1, facts.workload.size, settings, name)
    if settings.whole:
        picks = cells_at(facts.workload, facts.workload.widest, picks)
    return _projected(facts, settings.rounds, picks, settings, name)


def searched(facts: Facts) -> Cost:
    """Five trials and a release: as often as not one of each pair of the middle, and one of the larger end."""
    settings: search.Settings = facts.settings
    allowed = search.feasible(facts.workload, settings)
    rounds, picks = sorted(allowed)[len(allowed) // 2]
    once = _projected(facts, rounds, picks, settings.at((rounds, picks)), "rap-search")
    return Cost(once.cells, once.bytes, 6 * once.seconds, once.largest_error)


def generated(facts: Facts, name: str) -> Cost:
    """Rounds in which a network is trained."""
    settings = facts.settings
    widths = [settings.inputs, *settings.layers]
    weights = sum(sum(widths[:at]) * widths[at] for at in range(1, len(widths))) + sum(widths) * facts.domain.bits
    cells = settings.rounds * settings.per_round
    step = 6 * _FLOP * weights * settings.rows
    learned = settings.learning * step if facts.public else 0.0
    if settings.whole:
        shapes = facts.shapes(facts.workload.marginals)
        lines = cells * sum(prod(shape) // max(shape) for shape in shapes) // len(shapes)
        cells = cells * sum(map(prod, shapes)) // len(shapes)
        step += (8 * _FLOP * cells + 4 * _TOUCH * lines) / 2 * settings.rows
        taken = 0.75
    else:
        taken = min(1.0, 0.1 + 60 * facts.deviation / facts.rows)  # answers that noise moved far are not reached soon
    return Cost(
        cells,
        COMPILED
        + (0.65e9 if settings.whole else 0.4e9)
        + 40 * weights
        + 38 * cells
        + _counts(facts, facts.workload.marginals),
        _counting(facts, facts.workload.marginals)
        + settings.rounds * (_scoring_relaxed(facts) + taken * settings.steps * step)
        + learned
        + 2 * _COMPILING
        + _certifying(facts, _scoring_relaxed(facts)),
        _beside_auto(facts, name),
    )


def weighed(facts: Facts, name: str) -> Cost:
    """Rounds in which every weight is looked at for every marginal."""
    settings = facts.settings
    support = facts.public or facts.domain.size
    needed = facts.workload.marginals
    scoring = len(needed) * (1.2 * _MARGINAL + (_SORT if facts.public else _WEIGHT) * support)
    moved = settings.passes if isinstance(settings, MwemSettings) else settings.steps
    cells = held = settings.rounds * settings.per_round
    if settings.whole:
        cells = settings.rounds * cells_at(facts.workload, facts.workload.widest, settings.per_round)
    touched = support * (1.0 if settings.whole else _matching(facts.workload))  # rows that a measurement speaks of
    gone_over = held / 2 if moved else settings.per_round  # of the measurements so far, on average; or new ones alone
    moved_once = 1e-4 + gone_over * _WEIGHT * touched
    averaged = 4 * _WEIGHT * support  # a round's weights are brought to a sum of one, and added up
    moving = settings.rounds * (max(1, moved) * moved_once + averaged)
    return Cost(
        cells,
        BASE + BYTES_EACH * support + _counts(facts, needed) + (4 if settings.whole else 8) * touched * held,
        _counting(facts, needed) + settings.rounds * scoring + moving + _certifying(facts, scoring),
        _beside_auto(facts, "pep" if name == "mwem" and moved else name),  # past measurements make it as good
    )


def _matching(workload: Workload) -> float:
    """Share of all combinations of values that match a query, on average over thresholds."""
    domain = workload.domain
    return sum(threshold.met(domain) / threshold.cells(domain) for threshold in workload) / len(workload)


def programmed(facts: Facts, name: str) -> Cost:
    """Rounds of draws and integer programs."""
    settings = facts.settings
    needed = facts.workload.marginals
    if name == "dualquery":
        rounds, asked = settings.affordable(facts.rho, facts.rows)
        solved = rounds
    else:
        rounds, asked = settings.rounds, settings.rounds * settings.per_round / 2
        solved = rounds * settings.samples / (2 if settings.perturb == "laplace" else 1)  # an easier program
    scoring = len(needed) * _MARGINAL + _ROW * _occupied(facts, needed)
    seconds = rounds * scoring + solved * program(facts.domain, asked)
    return Cost(
        0,
        BASE + _PROGRAM * facts.domain.bits + _counts(facts, needed),
        _counting(facts, needed) + seconds + _certifying(facts, scoring),
        _beside_auto(facts, name),
    )


def program(domain: Domain, asked: float) -> float:
    """Seconds of an integer program about so many queries."""
    return _ASKED * asked + _CHOICE * domain.bits + _RIVALS * sum(size**2 for size in domain.sizes)


_ASKED, _CHOICE, _RIVALS, _PROGRAM = 6.5e-4, 2.7e-5, 2e-8, 1500
"""Seconds that each query of an integer program adds to it, each value that a row may have, and each two values of an
attribute, of which it may have one; and bytes of a value."""


_SELECTED, _STEP, _SHAPE = 2e-3, 2e-3, 3.0
"""Seconds to project a graphical model onto a marginal, of a step of its fit, and to compile it."""

_TREE, _EDGE = 7.0, 1.3
"""Seconds to compile both fits of a tree, and more for each shape of a pair."""

_CLIQUE, _GROWN = 4e-8, 1.5e-4
"""Seconds that a cell of its marginals adds to a step, and that a marginal does where they overlap."""


def of_mst(facts: Facts) -> Cost:
    """Two fits, and every pair of attributes looked at for each edge of the tree."""
    settings, many = facts.settings, len(facts.domain)
    looked = 0.6 * (many - 1) * many * (many - 1) / 2
    largest, kinds = sorted(facts.domain.sizes)[-2:], len(set(facts.domain.sizes))
    cells = facts.domain.bits + (many - 1) * prod(largest) // 4
    return Cost(
        cells,
        COMPILED + 0.6e9 + 16 * settings.draws * many + 60 * prod(largest) * many,
        _counting(facts, combinations(facts.domain, 2))
        + looked * _SELECTED
        + _TREE
        + _EDGE * min(many - 1, kinds * (kinds + 1) // 2)
        + 2 * settings.steps * (_STEP + _CLIQUE * cells)
        + _certifying(facts, _scoring_rows(facts, settings.draws)),
        _beside_auto(facts, "mst"),
    )


def of_aim(facts: Facts) -> Cost:
    """Rounds with a fit and every candidate looked at: more of them with many small attributes and little noise."""
    settings, domain = facts.settings, facts.domain
    usual = exp(sum(map(log, domain.sizes)) / len(domain))
    rounds = max(1, round(8.4 * sqrt(len(domain)) * (facts.rows / facts.deviation / 1000) ** 0.27 / usual**0.25))
    candidates = allotment.needed(facts.workload, facts.workload.widest)
    cells = domain.bits + sum(sorted(facts.sizes(candidates))[:rounds])
    return Cost(
        cells,
        COMPILED + 0.6e9 + 16 * settings.draws * len(domain) + 8e6 * settings.megabytes,
        _counting(facts, candidates)
        + rounds * (len(candidates) * _SELECTED + _SHAPE + settings.steps * _GROWN * rounds)
        + _certifying(facts, _scoring_rows(facts, settings.draws)),
        _beside_auto(facts, "aim"),
    )


def _counting(facts: Facts, marginals: Iterable[Attributes]) -> float:
    """Seconds to count marginals of the table, and to begin with each."""
    return len(list(marginals)) * (_MARGINAL + _ROW * facts.rows)


def _counts(facts: Facts, marginals: Iterable[Attributes]) -> float:
    """Bytes of their exact counts."""
    return _PAIR * _occupied(facts, marginals) / 2


def _occupied(facts: Facts, marginals: Iterable[Attributes]) -> int:
    """Most cells of them that hold a row."""
    return sum(min(facts.rows, size) for size in facts.sizes(marginals))


def _certifying(facts: Facts, scoring: float) -> float:
    """Seconds for the certificate: one pass for the answers, and one for the synthetic rows."""
    return 2 * (scoring + len(facts.workload) * _MARGINAL) if facts.certified else 0.0


def _scoring_relaxed(facts: Facts) -> float:
    """Seconds to compare the answers of relaxed rows, or of rows drawn from them, with all counts."""
    settings = facts.settings
    if answering.rounds(facts.workload, settings):
        return _scoring_rows(facts, settings.rows * settings.copies)
    return len(facts.workload.marginals) * 1.5 * _MARGINAL + _SCORE * float(settings.rows * facts.workload.size)


def _scoring_rows(facts: Facts, rows: int) -> float:
    """The same by counting ordinary rows."""
    return len(facts.workload.marginals) * (_MARGINAL + _SORT * rows)


def _fitted(facts: Facts, marginals: list[Attributes], steps: float, constants: FitSettings, error: float) -> Cost:
    """Whole marginals, and rows fitted to batches of them in so many steps, with a look at all now and then."""
    shapes, rows, domain = facts.shapes(marginals), facts.settings.rows, facts.domain
    cells = sum(map(prod, shapes))
    small = [shape for shape in shapes if prod(shape) <= constants.large or len(shape) == 1]  # of others, few rows
    fitted = sum(map(prod, small))
    lines = sum(prod(shape) // max(shape) for shape in small)
    share = min(1.0, max(constants.batch_share, constants.batch_cells / fitted))
    looks = steps / 8 if steps <= 128 else 16 + 16 * log(steps / 128)
    widths = len(tiles.widths_of(domain, {max(names, key=domain.size_of) for names in marginals}))
    kernels = [prod(shape) ** 2 for shape in shapes if constants.smooth and len(shape) == 1 and _smoothed(*shape)]
    multiplied = 2 * rows * (fitted * (3 * share * steps + looks) + sum(kernels) * steps)
    gathered = lines * rows * (share * steps + looks)
    seconds = _FLOP * multiplied + _TOUCH * gathered + _BIT * domain.bits * rows * steps
    return Cost(
        cells,
        COMPILED
        + 22e6 * widths
        + 38 * cells
        + 4 * domain.bits * rows * (12 + looks)
        + 4 * sum(kernels)
        + _KERNEL * max(kernels, default=0)
        + _counts(facts, marginals),
        _counting(facts, marginals)
        + _PACK * cells
        + _COMPILING
        + _WIDTH * widths
        + seconds
        + _certifying(facts, _scoring_relaxed(facts)),
        error,
    )


def _smoothed(size: int) -> bool:
    """Whether steps along an attribute with so many values may be smoothed, if an order is found in them."""
    return smooth.MANY <= size <= smooth.MOST


def _steps(facts: Facts, precision: float) -> float:
    """Steps of a fit: the smaller the noise of the whole budget, as a fraction of the rows, the longer it pays."""
    return min(float(facts.settings.max_steps), 40 + precision * facts.rows / facts.deviation)


_HELD = {"box": 80, "sparsemax": 200, "softmax": 260}
"""Bytes for each entry of the rows in a projection, by what keeps them distributions."""


def _projected(facts: Facts, rounds: int, picks: int, settings: rap.PaperSettings, name: str) -> Cost:
    """The published recipe: `rounds` projections, of `picks` more queries each."""
    asked = rounds * picks
    bit, taken = _BIT, 0.7  # most projections stop early, softmax's the earlier the more noise there is
    if settings.transform == "softmax":
        bit, taken = 1.25 * _BIT, min(1.0, 0.33 * (facts.rows / facts.deviation / 600) ** 0.28)
    step = settings.rows * (bit * facts.domain.bits + 1e-10 * asked / 2 * facts.workload.widest)
    shaped = Facts(facts.workload, facts.rows, facts.neighbours, facts.rho, settings)
    scoring = _scoring_relaxed(shaped)
    return Cost(
        asked,
        COMPILED
        + 0.15e9
        + (_HELD[settings.transform] * facts.domain.bits + 16 * asked) * settings.rows
        + _counts(facts, facts.workload.marginals),
        _counting(facts, facts.workload.marginals)
        + rounds * (scoring + taken * settings.steps * step)
        + _COMPILING / 2 * max(1, log(asked / 16, 2))
        + _certifying(facts, scoring),
        _beside_auto(facts, name),
    )


def _beside_auto(facts: Facts, name: str) -> float:
    """Expected error of a mechanism by that of `auto` on marginals."""
    settings = auto.Settings(measures="marginals")
    return of_others(name, of_fit(_noise_of_auto(facts.workload, facts.rows, facts.neighbours, facts.rho, settings)))


@lru_cache(maxsize=4)
def _noise_of_auto(
    workload: Workload, rows: int, neighbours: Neighbours, rho: Fraction, settings: auto.Settings
) -> float:
    """Deviation of the noise on the least precise marginal that no other contains, as a fraction of the rows.

    Of residuals, on the widest marginals that are put together from them.
    """
    facts = Facts(workload, rows, neighbours, rho, settings)
    wanted = allotment.needed(workload, facts.settings.order)
    if _by_residuals(facts, wanted):
        given = allotment.precisions(workload.domain, wanted)
        widest = [names for names in given if len(names) == max(map(len, given))]
        each = residual.variances(given, widest, domain=workload.domain, neighbours=neighbours, rho=rho)
        return sqrt(max(each.values())) / rows
    parts = allotment.shares(workload.domain, wanted, total=rows, sigma=facts.deviation)
    least = min(parts[names] for names in allotment.largest_of(wanted))
    return facts.deviation / sqrt(least) / rows


def _by_residuals(facts: Facts, wanted: Mapping[Attributes, float]) -> bool:
    return allotment.by_residuals(facts.domain, wanted, facts.settings.measures, sigma=facts.deviation)
