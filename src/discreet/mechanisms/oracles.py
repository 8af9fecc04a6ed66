"""DualQuery and FEM: rows from an integer program, chosen to be right where the rows before were wrong.

Neither measures anything. Queries are drawn with a sign by the exponential mechanism (`Curator.draw`): those that the
rows so far answer too low, which the next rows should match, and those answered too high, which they should not. The
rows are solutions of an integer program (`discreet.models.oracle`), and all of them together are the release.

DualQuery plays multiplicative weights over the queries: in round t a query has weight exp(eta * (t - 1) * error), its
error that of the average of all rows so far, and the next row is the one that matches most of `samples` queries drawn
by these weights. The scale grows with t, so round t costs in proportion to (t - 1)^2, and T rounds of s samples cost
s eta^2 T (T - 1) (2 T - 1) / (12 n^2) in all: the budget decides how many rounds there are. The first round draws
uniformly, for nothing. Where there would be more rounds than `rounds`, more queries are drawn in each.

FEM plays follow-the-perturbed-leader: each round draws one query by the error of the last rows, and the next
`samples` rows match most of all queries drawn so far, each with fresh exponential noise on every value. A round costs
rho / T. sepFEM (`perturb=laplace`) has Laplace noise on the queries of a separator set, such that any two rows differ
in one of them: here those about a single value, so that it too is noise on every value.

References: Gaboardi et al. (2014), "Dual Query: practical private query release for high dimensional data"; Vietri et
al. (2020), "New oracle-efficient algorithms for private synthetic data release"; Liu, Vietri, Wu (2021), appendix A.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _check
from discreet.errors import BadSetting, BadWorkload
from discreet.mechanisms.adaptive import Outcome
from discreet.mechanisms.job import Job
from discreet.models.oracle import Oracle, solver
from discreet.models.rounded import RoundedRows
from discreet.privacy.curator import Curator, Signed
from discreet.queries.threshold import Query
from discreet.queries.workload import Workload

_MOST_VALUES = 2**16
"""Values of all attributes together, each a variable of the program (`python -m benchmarks programs`)."""

_MOST_SAMPLES = 2**20
"""Most queries drawn in a round of DualQuery."""


@dataclass(frozen=True)
class DualQuerySettings:
    """Settings of `dualquery`.

    Attributes:
        eta: How fast queries gain weight by their errors.
        samples: s, the least number of queries drawn in each round.
        rounds: Most rounds; there are as many rows.
    """

    eta: float = 3.0
    samples: int = 50
    rounds: int = 500

    def __post_init__(self) -> None:
        _check.positive("eta", self.eta)
        _check.whole("rounds", self.rounds, least=2)
        _check.whole("samples", self.samples)

    def affordable(self, rho: Fraction, total: int, *, late: bool = False) -> tuple[int, int]:
        """T and s that spend a budget: as many rounds as it pays for, then as many samples.

        More samples than can be drawn are refused; where it is too late to refuse, because the number of rows had to be
        paid for, as many are drawn as can be. The same budget then buys a larger eta.
        """
        squares, rounds = 1, 2
        paid = 2 * rho * total**2 / Fraction(self.eta) ** 2  # samples times the sum of squares of 1 .. T - 1
        while rounds < self.rounds and (squares + rounds**2) * self.samples <= paid:
            squares, rounds = squares + rounds**2, rounds + 1
        samples = max(self.samples, int(paid / squares))
        if samples > _MOST_SAMPLES and not late:
            raise BadSetting(
                f"With eta {self.eta:g} the budget would be spent by {samples:.3g} queries in each of {rounds} rounds; "
                f"at most {_MOST_SAMPLES:,} are drawn. Raise --set eta, or --rounds."
            )
        return rounds, min(samples, _MOST_SAMPLES)


@dataclass(frozen=True)
class FemSettings:
    """Settings of `fem`.

    Attributes:
        rounds: T.
        per_round: K, queries drawn in each round.
        samples: s, rows made in each round.
        noise: Scale of the noise on values, in queries; the mean of exponential noise.
        perturb: exponential, or laplace for sepFEM.
    """

    rounds: int = 50
    per_round: int = 1
    samples: int = 20
    noise: float = 2.0
    perturb: str = "exponential"

    def __post_init__(self) -> None:
        for name in ("rounds", "per_round", "samples"):
            _check.whole(name, getattr(self, name))
        _check.positive("noise", self.noise)
        _check.one_of("perturb", self.perturb, ("exponential", "laplace"))

    def perturbation(self, draws: np.random.Generator, bits: int) -> np.ndarray:
        """What is added to the weight of each value; public noise, which protects nobody."""
        return (
            draws.laplace(0.0, self.noise, bits) if self.perturb == "laplace" else -draws.exponential(self.noise, bits)
        )


def check(workload: Workload, _: DualQuerySettings | FemSettings) -> None:
    """Refuse to start without a solver, or with programs that are too large for it."""
    solver()
    if workload.domain.bits > _MOST_VALUES:
        raise BadWorkload(
            "Rows come from an integer program with a variable for every value of an attribute, and there are "
            f"{workload.domain.bits:,} values, where at most {_MOST_VALUES:,} are taken. Give the largest attributes "
            "coarser bins."
        )


def run_dualquery(curator: Curator, job: Job) -> Outcome:
    """Multiplicative weights over queries, and the best row against each sample of them."""
    settings: DualQuerySettings = job.settings
    oracle = Oracle(curator.domain)
    rounds, samples = settings.affordable(job.rho, curator.total, late=not curator.neighbours.total_is_public)
    shares = [turn**2 for turn in range(1, rounds)]
    drawn = _anything(job.workload, samples, np.random.default_rng(job.seed))
    rows = [oracle.best(_tally(drawn))]
    for turn, share in enumerate(shares, start=2):
        drawn = curator.draw(
            job.workload,
            against=RoundedRows(curator.domain, curator.total, np.array(rows)),
            picks=samples,
            rho=job.rho * share / sum(shares),
            label=f"round {turn} of {rounds}: draw",
        )
        rows.append(oracle.best(_tally(drawn)))
    return _outcome(curator, rows, oracle, drawn_each_round=samples)


def run_fem(curator: Curator, job: Job) -> Outcome:
    """Follow the perturbed leader: the best rows against all queries so far, and the query on which they err most."""
    settings: FemSettings = job.settings
    oracle, noise = Oracle(curator.domain), np.random.default_rng(job.seed)
    sizes = curator.domain.sizes
    latest = [noise.integers(sizes) for _ in range(settings.samples)]
    drawn: list[Signed] = []
    rows: list[np.ndarray] = []
    for turn in range(1, settings.rounds + 1):
        drawn += curator.draw(
            job.workload,
            against=RoundedRows(curator.domain, curator.total, np.array(latest)),
            picks=settings.per_round,
            rho=job.rho / settings.rounds,
            label=f"round {turn} of {settings.rounds}: draw",
        )
        wanted = _tally(drawn)
        latest = [
            oracle.best(wanted, settings.perturbation(noise, curator.domain.bits)) for _ in range(settings.samples)
        ]
        rows += latest
    return _outcome(curator, rows, oracle)


def _outcome(curator: Curator, rows: Sequence[np.ndarray], oracle: Oracle, **notes: int) -> Outcome:
    answers = RoundedRows(curator.domain, curator.total, np.array(rows))
    return Outcome(answers, [], {"rows_made": oracle.solved, "rows_not_proved_best": oracle.cut_short, **notes})


def _tally(drawn: Sequence[Signed]) -> Counter[Query]:
    """How often more each query was drawn as too low than as too high."""
    tally: Counter[Query] = Counter()
    for query, sign in drawn:
        tally[query] += sign
    return tally


def _anything(workload: Workload, count: int, draws: np.random.Generator) -> list[Signed]:
    """Queries and signs, all equally likely: nothing private is looked at."""
    sizes = [threshold.cells(workload.domain) for threshold in workload]
    parts = np.array(sizes, dtype=np.float64)
    chosen = draws.choice(len(sizes), size=count, p=parts / parts.sum())
    return [
        (Query(workload.thresholds[at], int(draws.integers(sizes[at]))), int(draws.choice([-1, 1]))) for at in chosen
    ]
