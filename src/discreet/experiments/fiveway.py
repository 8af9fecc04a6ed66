"""3-way and 5-way marginals and 1-of-3 thresholds by epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from discreet.experiments import trial
from discreet.experiments.chart import adaptive, best, grouped, line, lines_of, over_seeds, spread, values, where
from discreet.experiments.claim import NOT_PRIVATE, Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Row, Setting
from discreet.publish.svg import lines

_EPSILONS = {"tiny": (1.0,), "quick": (0.1, 1.0), "default": (0.1, 0.5, 1.0), "full": (0.05, 0.1, 0.15, 0.2, 0.5, 1.0)}
_THRESHOLDS = {"tiny": (2,), "quick": (16,), "default": (16,), "full": (2, 4, 8, 16, 32, 64, 128, 256, 512)}
_SCHEDULES: dict[str, tuple[tuple[int, int], ...]] = {
    "tiny": ((1, 2),),
    "quick": ((4, 16),),
    "default": ((4, 16),),
    "full": tuple(product((2, 5, 10, 25, 50), (5, 10, 25, 50, 100))),
}
_KINDS = ((5, 5, True), (3, 3, True), (3, 1, False))
_PLACE = ("dataset", "k", "r", "filtered", "epsilon", "thresholds")
_CELL = (*_PLACE, "seed")


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    mechanisms = [trial.baseline("all-zero"), trial.baseline("gaussian"), trial.ours(size)]
    mechanisms += [trial.published(size, schedule) for schedule in _SCHEDULES[size]]
    for dataset in datasets:
        for k, r, filtered in _KINDS:
            for many in _THRESHOLDS[size]:
                for epsilon in _EPSILONS[size]:
                    for mechanism in mechanisms:
                        asked = {"k": k, "r": r, "thresholds": many, "filtered": filtered}
                        yield dataset, {"epsilon": epsilon, **asked, **mechanism}


def _kinds(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {
        "rap-paper (least over T, K)": best(adaptive(rows), *_PLACE),
        "rap": where(rows, mechanism="rap"),
        "gaussian": where(rows, mechanism="gaussian"),
        "all-zero": where(rows, mechanism="all-zero"),
    }


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for (dataset, k, r, many), some in grouped(rows, "dataset", "k", "r", "thresholds").items():
        what = f"{many} {k}-way marginals (filtered)" if k == r else f"{many} {r}-of-{k} thresholds"
        words = over_seeds(f"Largest error on {what} of {dataset}", "epsilon")
        series = lines_of(line(name, found, "epsilon") for name, found in _kinds(some).items())
        made[f"{dataset}-{r}-of-{k}-{many}"] = lines(series, words, log_x=True, log_y=True)
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    found = []
    chosen, rap, gaussian, zero = _kinds(rows).values()
    for name, some in (("rap-paper", chosen), ("rap", rap)):
        for k, r, _ in _KINDS:
            here = where(some, k=k, r=r)
            what = f"{k}-way marginals" if k == r else f"{r}-of-{k} thresholds"
            listed = "; ".join(
                f"epsilon {epsilon:g}: {spread(where(here, epsilon=epsilon), 'max_error')}"
                for epsilon in values(here, "epsilon")
            )
            found.append(
                judged(
                    f"RAP answers {what} well at every epsilon: better than its rivals, of which all-zero stands here.",
                    f"`{name}`, {listed}. Over `all-zero`",
                    ratio(pairs(here, zero, *_CELL)),
                    below=1,
                )
            )
    for name, some in (("rap-paper", chosen), ("rap", rap)):
        found.append(
            judged(
                "The model is worth its trouble beside Gaussian noise on whole marginals.",
                f"`{name}` over `gaussian`, all kinds of workloads",
                ratio(pairs(some, gaussian, *_CELL)),
                below=1,
                whose="We",
            )
        )
    return found


EXPERIMENT = Experiment(
    name="fiveway",
    title="5-way marginals",
    source="Aydore et al. (2021), Figures 2, 3, 4 and 10",
    grid=_grid,
    measure=trial.present,
    pictures=_pictures,
    findings=_findings,
    remarks=(
        NOT_PRIVATE,
        "Marginals with more queries than the table has rows are filtered out, as in the paper.",
        "FEM and HDMM, the paper's rivals, are not run here.",
    ),
)
