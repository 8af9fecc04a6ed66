"""The loop: what it measures, and how often."""

from fractions import Fraction

from tests.tables import DOMAIN, random_table

from discreet.mechanisms.adaptive import Model, Schedule, adaptive
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.neighbours import Neighbours
from discreet.queries import parse
from discreet.queries.answers import Answers, Zeros


class Nothing(Model):
    """Learns nothing, so that the same marginals are picked again and again."""

    def answers(self) -> Answers:
        return Zeros(DOMAIN, 50)

    def fit(self, *_: object) -> None:
        pass


def test_marginals_are_measured_again_only_where_nothing_new_is_needed() -> None:
    workload = parse.workload("all:2@1", DOMAIN)
    budget = Budget(Fraction(10**4))
    curator = Curator(random_table(50), budget=budget, neighbours=Neighbours(), entropy=SeededEntropy(0))
    schedule = Schedule(rounds=6, per_round=2, order=2)
    outcome = adaptive(curator, workload, Nothing(), rho=Fraction(10**4), schedule=schedule)
    names = [found.threshold.attributes for found in outcome.measurements]
    needed = set(workload.marginals)
    first = next(at for at in range(len(names) + 1) if set(names[:at]) == needed or at == len(names))
    assert len(set(names[:first])) == first
    assert budget.spent == 10**4
