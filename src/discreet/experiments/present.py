"""Present error of every mechanism by epsilon and workload size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.experiments import trial
from discreet.experiments.chart import adaptive, best, line, lines_of, over_seeds, spread, values, where
from discreet.experiments.claim import NOT_PRIVATE, Finding, judged, pairs, ratio
from discreet.experiments.experiment import Experiment, Row, Setting
from discreet.publish.svg import lines

_EPSILONS = {"tiny": (1.0,), "quick": (0.1, 1.0), "default": (0.01, 0.1, 1.0), "full": (0.01, 0.1, 1.0)}
_THRESHOLDS = {"tiny": (2,), "quick": (1, 4, 16), "default": (1, 4, 16), "full": (1, 4, 16, 64, 256)}
_SCHEDULES: dict[str, tuple[tuple[int, int], ...]] = {
    "tiny": ((2, 2),),
    "quick": ((4, 4), (4, 16)),
    "default": ((4, 4), (4, 16)),
    "full": trial.PAPER_GRID,
}
_PLACE = ("dataset", "epsilon", "thresholds")
_CELL = (*_PLACE, "seed")


def _grid(size: str, datasets: Sequence[str]) -> Iterator[tuple[str, Setting]]:
    mechanisms = [trial.baseline(name) for name in ("all-zero", "gaussian-paper", "gaussian")]
    mechanisms += [trial.ours(size), trial.published(size, (1, None))]
    mechanisms += [trial.published(size, schedule) for schedule in _SCHEDULES[size]]
    for dataset in datasets:
        for epsilon in _EPSILONS[size]:
            for many in _THRESHOLDS[size]:
                for mechanism in mechanisms:
                    yield dataset, {"epsilon": epsilon, "k": 3, "thresholds": many, **mechanism}


def _kinds(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The lines of Figure 2, and ours."""
    return {
        "rap-paper, adaptive (least over T, K)": best(adaptive(rows), *_PLACE),
        "rap-paper, not adaptive": where(rows, mechanism="rap-paper", per_round=None),
        "gaussian-paper": where(rows, mechanism="gaussian-paper"),
        "all-zero": where(rows, mechanism="all-zero"),
        "gaussian": where(rows, mechanism="gaussian"),
        "rap": where(rows, mechanism="rap"),
    }


def _pictures(rows: Sequence[Row]) -> dict[str, str]:
    made = {}
    for dataset in values(rows, "dataset"):
        for epsilon in reversed(values(rows, "epsilon")):
            some = where(rows, dataset=dataset, epsilon=epsilon)
            series = lines_of(line(name, found, "thresholds") for name, found in _kinds(some).items())
            words = over_seeds(
                f"Largest error on random 3-way marginals of {dataset}, epsilon {epsilon:g}",
                "marginals in the workload",
            )
            if series:
                made[f"{dataset}-epsilon-{epsilon:g}"] = lines(series, words, log_x=True, log_y=True)
    return made


def _findings(rows: Sequence[Row]) -> list[Finding]:
    kinds = list(_kinds(rows).values())
    chosen, alone, gaussian_paper, zero, gaussian, rap = kinds
    wide = [row for row in alone if row["thresholds"] > 1]
    return [
        judged(
            "Adaptivity is crucial: selecting queries gives far lower error than measuring all of them.",
            f"Largest error of adaptive `rap-paper`, {spread(chosen, 'max_error')}, over not adaptive",
            ratio(pairs(chosen, alone, *_CELL)),
            below=1,
        ),
        judged(
            "Without adaptivity RAP is about as bad as answering zero, but for the smallest workloads.",
            "Not adaptive `rap-paper` over `all-zero`, workloads of more than one marginal",
            ratio(pairs(wide, zero, *_CELL)),
            above=0.8,
        ),
        judged(
            "Adaptive RAP beats the Gaussian baseline of the paper, which pays for each query alone.",
            "Adaptive `rap-paper` over `gaussian-paper`",
            ratio(pairs(chosen, gaussian_paper, *_CELL)),
            below=1,
        ),
        judged(
            "That baseline is a straw man. Charged for what one person can change, Gaussian "
            "noise on whole marginals beats adaptive RAP.",
            f"`gaussian`, {spread(gaussian, 'max_error')}, over adaptive `rap-paper`",
            ratio(pairs(gaussian, chosen, *_CELL)),
            below=1,
            whose="We",
        ),
        judged(
            "What adaptivity buys there can be had without it. `rap`, which measures whole marginals at once, charged "
            "jointly and fitted better, selects nothing and beats adaptive RAP at its best (T, K).",
            f"`rap`, {spread(rap, 'max_error')}, over adaptive `rap-paper`",
            ratio(pairs(rap, chosen, *_CELL)),
            below=1,
            whose="We",
        ),
    ]


EXPERIMENT = Experiment(
    name="present",
    title="Present error",
    source="Avent and Korolova (2023), Figure 2 and Table 3",
    grid=_grid,
    measure=trial.present,
    pictures=_pictures,
    findings=_findings,
    remarks=(NOT_PRIVATE,),
)
