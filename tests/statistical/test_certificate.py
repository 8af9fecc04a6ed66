"""The certificate covers the true largest error as often as it says, and a wrong one would be noticed."""

from fractions import Fraction

import numpy as np
from tests.readable import small_table
from tests.tables import DOMAIN, brute_force, random_table

from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import Entropy, SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.publish.certificate import upper_bound
from discreet.publish.make import release
from discreet.queries import parse
from discreet.queries.answers import Zeros

REPLAYS = 10_000
WORKLOAD = parse.workload("all:2", DOMAIN)


def coverage(confidence: Fraction, entropy: Entropy) -> float:
    """Share of replays of the certificate's step that cover the truth."""
    table = random_table(400)
    truth = max(int(brute_force(table, t.attributes, t.r).max()) for t in WORKLOAD)
    rho = Fraction(1, 2 * 20**2)  # noise of 20 rows
    curator = Curator(table, budget=Budget(rho * REPLAYS), neighbours=Neighbours(), entropy=entropy)
    zeros = Zeros(DOMAIN, 400)
    bounds = [upper_bound(curator.worst(WORKLOAD, against=zeros, rho=rho), confidence) for _ in range(REPLAYS)]
    return float(np.mean(np.array(bounds) >= truth))


def test_the_step_covers_the_truth_between_94_5_and_97_percent() -> None:
    assert 0.945 <= coverage(Fraction(95, 100), SeededEntropy(0)) <= 0.97


def test_a_certificate_that_is_too_short_would_be_noticed() -> None:
    assert coverage(Fraction(93, 100), SeededEntropy(0)) < 0.945


def test_whole_runs_are_covered() -> None:
    from discreet.compare.errors import errors

    table = small_table(2000)
    covered = 0
    for seed in range(100):
        made = release(table, "all:2", epsilon=1.0, rows=200, seed=seed)
        assert made.certificate is not None
        found = errors(made.answers, table, made.workload, made.schema)
        covered += found.max_error <= made.certificate.bound
    assert covered >= 89
