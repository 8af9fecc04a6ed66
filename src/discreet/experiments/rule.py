"""What `rap` should measure when it is not told: everything at once or in rounds, and marginals of which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from discreet.experiments import trial
from discreet.experiments.chart import grouped, line, lines_of, over_seeds, values, where
from discreet.experiments.claim import Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Row, Setting
from discreet.publish.svg import lines

_EPSILONS = {"tiny": (0.1, 1.0), "quick": (0.01, 0.1, 1.0), "default": (0.01, 0.1, 1.0), "full": (0.01, 0.1, 1.0, 10.0)}
_KINDS = {
    "tiny": ((3, 3, 2),),
    "quick": ((3, 3, 16), (3, 3, 64)),
    "default": ((3, 3, 16), (3, 3, 256), (4, 1, 16)),
    "full": ((3, 3, 1), (3, 3, 16), (3, 3, 64), (3, 3, 256), (4, 1, 16), (4, 2, 16), (4, 4, 64)),
}
_SCHEDULES = {
    "tiny": ((2, 1),),
    "quick": ((4, 16), (16, 4)),
    "default": ((4, 16), (16, 4)),
    "full": tuple(product((1, 4, 16, 64), (4, 16, 64))),
}
_ORDERS = {"tiny": (1,), "quick": (1, 2), "default": (1, 2), "full": (1, 2, 3)}
_CELL = ("dataset", "k", "r", "thresholds", "epsilon", "seed")


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    rows = {"rows": 1000} if size in ("default", "full") else {}
    choices = [trial.ours(size), *(trial.ours(size) | {"order": order} for order in _ORDERS[size])]
    choices += [trial.ours(size, schedule) for schedule in _SCHEDULES[size]]
    for dataset in datasets:
        for k, r, many in _KINDS[size]:
            for epsilon in _EPSILONS[size]:
                for choice in choices:
                    yield dataset, {"epsilon": epsilon, "k": k, "r": r, "thresholds": many, **choice, **rows}


def _choices(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The default first."""
    named: dict[str, list[Row]] = {}
    for (order, rounds, per_round), some in grouped(rows, "order", "rounds", "per_round").items():
        what = "default" if order is None else f"order {order}"
        named[what if per_round is None else f"T = {rounds}, K = {per_round}"] = some
    return {"default": named.pop("default", []), **named}


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for (dataset, k, r, many), some in grouped(rows, "dataset", "k", "r", "thresholds").items():
        what = f"{many} {k}-way marginals" if r == k else f"{many} {r}-of-{k} thresholds"
        series = lines_of(line(name, found, "epsilon") for name, found in _choices(some).items())
        words = over_seeds(f"rap: largest error on {what} of {dataset}, by what is measured", "epsilon")
        made[f"{dataset}-{r}-of-{k}-{many}"] = lines(series, words, log_x=True, log_y=True)
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    default, *_ = _choices(rows).values()
    found = []
    for name, some in list(_choices(rows).items())[1:]:
        each = {
            epsilon: ratio(pairs(where(default, epsilon=epsilon), where(some, epsilon=epsilon), *_CELL))
            for epsilon in values(some, "epsilon")
        }
        listed = "; ".join(f"epsilon {epsilon:g}: {one}" for epsilon, one in each.items() if one is not None)
        found.append(
            judged(
                f"The default of `rap` has a lower largest error than {name}.",
                f"Default over {name}, {listed}; all of them",
                ratio(pairs(default, some, *_CELL)),
                below=1,
                whose="We",
            )
        )
    return found


EXPERIMENT = Experiment(
    name="rule",
    title="What rap measures by default",
    source="our own; Avent and Korolova (2023), section 3.4.2, leave T and K to a search",
    grid=_grid,
    measure=trial.present,
    pictures=_pictures,
    findings=_findings,
    remarks=(
        "The default is a rule of public facts alone: on a private table nothing is tuned. The constants of the fit "
        "were chosen on ADULT, seeds 0 and 1.",
    ),
)
