"""The loop: what it measures, and how often."""

from fractions import Fraction
from typing import Any

from tests.tables import DOMAIN, random_table

from discreet.mechanisms.adaptive import Model, Schedule, adaptive
from discreet.privacy.budget import Budget
from discreet.privacy.curator import Curator
from discreet.privacy.entropy import SeededEntropy
from discreet.privacy.measurement import Measurement
from discreet.privacy.neighbours import Neighbours
from discreet.queries import parse
from discreet.queries.answers import Answers, Zeros
from discreet.queries.threshold import Attributes


class Nothing(Model):
    """Learns nothing, so that the same marginals are picked again and again."""

    def answers(self) -> Answers:
        return Zeros(DOMAIN, 50)

    def fit(self, *_: object) -> None:
        pass


class Noted(Curator):
    """Remembers which marginals were measured together."""

    together: list[list[Attributes]]

    def measure(self, marginals: Any, **asked: Any) -> list[Measurement]:
        self.together.append(list(marginals))
        return super().measure(marginals, **asked)


def test_marginals_are_measured_again_only_in_rounds_that_need_nothing_new() -> None:
    workload = parse.workload("all:2@1", DOMAIN)
    budget = Budget(Fraction(10**4))
    curator = Noted(random_table(50), budget=budget, neighbours=Neighbours(), entropy=SeededEntropy(0))
    curator.together = []
    schedule = Schedule(rounds=12, per_round=2, order=2)
    adaptive(curator, workload, Nothing(), rho=Fraction(10**4), schedule=schedule)
    seen: set[Attributes] = set()
    new = []
    for together in curator.together:
        new.append(sum(subset not in seen for subset in together) / len(together))
        seen.update(together)
    assert len(new) == 12
    assert set(new) == {0.0, 1.0}  # no round mixes new ones with known ones
    assert 10**4 - 1 < budget.spent <= 10**4
